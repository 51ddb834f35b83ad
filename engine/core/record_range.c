/* Whether rows can have what a record says. */
#include "event.h"
#include "range.h"

static bool record_number_is_in(enum range range, uint64_t number)
{
    return range_nearest(range, number) == number;
}

bool record_has_rows(const struct record *record)
{
    const struct turn *const turn = &record->turn;
    if (record->kind == RECORD_DELETED)
        return record_number_is_in(RANGE_EXECUTION, record->deletion.execution) &&
               record_number_is_in(RANGE_TIME_MS, record->deletion.time_ms);
    if (record->kind != RECORD_TURN)
        return true;
    for (size_t i = 0; i < turn->events_len; i++)
        if (!record_number_is_in(RANGE_EVENT_ID, turn->events[i].id) ||
            !record_number_is_in(RANGE_EVENT_ID, turn->events[i].ref) ||
            (turn->events[i].kind == EVENT_STARTED && turn->events[i].before >= turn->execution))
            return false;
    return record_number_is_in(RANGE_EXECUTION, turn->execution) &&
           record_number_is_in(RANGE_EVENT_ID, turn->number) &&
           record_number_is_in(RANGE_TIME_MS, turn->time_ms);
}
