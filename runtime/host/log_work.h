/* The fields of a log line about an activity, as its message in WORK names it. */
#ifndef THOLE_LOG_WORK_H
#define THOLE_LOG_WORK_H
#include "log.h"
#include "work.h"

static inline struct log_fields log_work(const struct work_item *item)
{
    return (struct log_fields){.instance = item->instance,
                               .execution = item->execution,
                               .activity = item->activity,
                               .activity_id = item->activity_id,
                               .try_number = item->try_number,
                               .traceparent = item->trace.parent};
}

/* For the owner of partition @p p. */
static inline struct log_fields log_work_of(uint32_t p, const struct work_item *item)
{
    struct log_fields fields = log_work(item);
    fields.of_partition = true;
    fields.partition = p;
    return fields;
}
#endif
