/* From records to turns. */
#include "turn_list.h"
#include <assert.h>
#include <string.h>

static bool turn_list_continues(const struct record *a, const struct record *b)
{
    return a->turn.more && b->epoch == a->epoch && b->n == a->n + 1 && b->turn.number == a->turn.number;
}

/*
 * Holds the first turn of a newer execution until it is complete: if its writer crashed between the parts, an
 * owner continues with the older execution.
 */
static void take_newer(struct turn_list *list, const struct record *record)
{
    if (list->held > 0 && !turn_list_continues(&list->records[list->len + list->held - 1], record))
        list->held = 0;
    list->records[list->len + list->held++] = *record;
    if (record->turn.more)
        return;
    memmove(list->records, list->records + list->len, list->held * sizeof *list->records);
    list->len = list->held;
    list->held = 0;
}

void turn_list_take(struct turn_list *list, const struct record *record)
{
    const struct turn *turn = &record->turn;
    assert(record->kind == RECORD_TURN);
    if (list->len > 0 && (turn->execution < list->records[0].turn.execution ||
                          record->epoch < list->records[list->len + list->held - 1].epoch))
        return;
    if (list->len > 0 && turn->execution > list->records[0].turn.execution) {
        take_newer(list, record);
        return;
    }
    list->held = 0;
    while (list->len > 0) {
        const struct record *last = &list->records[list->len - 1];
        if (last->turn.number < turn->number || last->epoch >= record->epoch)
            break;
        list->len--; /* replaced by the record of a newer owner */
    }
    list->records[list->len++] = *record;
}

size_t turn_list_join(const struct turn_list *list, size_t first, struct arena *arena, struct turn *ret)
{
    assert(first < list->len);
    const struct record *records = list->records + first;
    size_t parts = 1, events = records[0].turn.events_len;
    while (first + parts < list->len && turn_list_continues(&records[parts - 1], &records[parts]))
        events += records[parts++].turn.events_len;
    *ret = records[parts - 1].turn;
    if (parts == 1)
        return 1;
    struct event *all = arena_array(arena, events, sizeof *all);
    if (all == NULL)
        return 0;
    ret->events = all;
    ret->events_len = events;
    for (size_t i = 0; i < parts; i++) {
        const struct turn *part = &records[i].turn;
        if (part->events_len > 0)
            memcpy(all, part->events, part->events_len * sizeof *all);
        all += part->events_len;
    }
    return parts;
}
