#include "records.h"
#include "jscan.h"
#include "subject.h"
#include <assert.h>
#include <string.h>

enum { RECORDS_MIN = 64, TOKEN_EXECUTION = 5 };

static thole_status records_make_room(struct records *records)
{
    if (records->len < records->cap)
        return THOLE_OK;
    size_t const cap = records->cap == 0 ? RECORDS_MIN : records->cap * 2;
    struct log_record *grown = arena_array(records->arena, cap, sizeof *grown);
    if (grown == NULL)
        return THOLE_NOMEM;
    if (records->len > 0)
        memcpy(grown, records->items, records->len * sizeof *grown);
    records->items = grown;
    records->cap = cap;
    return THOLE_OK;
}

thole_status records_add(struct records *records, uint64_t sequence, thole_slice subject, thole_slice body)
{
    THOLE_TRY(records_make_room(records));
    assert(records->len < records->cap);
    struct log_record *record = &records->items[records->len];
    record->sequence = sequence;
    if (!json_uint(subject_nth(subject, TOKEN_EXECUTION), &record->execution))
        record->execution = 0; /* no turn's */
    record->bytes = body;
    records->len++;
    if (records->ns != NULL && subject.len > 0 && !subject_is_of_log(subject, records->ns, records->p)) {
        *record = (struct log_record){.sequence = sequence};
        records->foreign++;
        records->foreign_sequence = sequence;
    }
    return THOLE_OK;
}

static thole_status records_on_record(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct records *const records = arg;
    thole_slice copy;
    THOLE_TRY(arena_dup(records->arena, body, &copy));
    return records_add(records, sequence, subject, copy);
}

thole_status records_read(struct records *records, struct connection *connection, const char *stream,
                          const char *filter, uint64_t from, uint64_t to, thole_error *reterr)
{
    if (from > to)
        return THOLE_OK;
    return stream_read(connection, stream, filter, from, to, records_on_record, records, reterr);
}
