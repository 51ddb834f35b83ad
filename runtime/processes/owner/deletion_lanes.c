#include "deletion_lanes.h"
#include <assert.h>

enum {
    ITEMS_EXPECTED = 8, /* in a lane, by how far apart deletions stood before */
    ARENA_BYTES_MAX = 256 * 1024 * 1024,
};

static void lane_begin(struct deletion_lanes *lanes, uint64_t from, uint64_t end)
{
    struct deletion_lane *const lane = &lanes->lanes[lanes->len++];
    lane->next = from;
    lane->end = end;
    lane->beyond = 0;
    lane->ended = from > end;
    lane->len = 0;
}

void deletion_lanes_init(struct deletion_lanes *lanes, uint64_t from, uint64_t to)
{
    lanes->from = from;
    lanes->to = to;
    lanes->items_max = ITEMS_EXPECTED;
    lanes->young = false;
    lanes->len = 0;
    arena_init(&lanes->arena, ARENA_BYTES_MAX);
    lane_begin(lanes, from, to);
}

void deletion_lanes_release(struct deletion_lanes *lanes)
{
    arena_release(&lanes->arena);
}

/* Ends lanes: later ones have found nothing that counts. */
static void lane_end_last(struct deletion_lanes *lanes, size_t at)
{
    lanes->lanes[at].ended = true;
    lanes->len = at + 1;
}

size_t deletion_lanes_ask(struct deletion_lanes *lanes, struct deletion_question ret[DELETION_QUESTIONS_MAX])
{
    size_t n = 0;
    for (size_t k = 0; k < lanes->len; k++) {
        struct deletion_lane *const lane = &lanes->lanes[k];
        if (!lane->ended)
            ret[n++] = (struct deletion_question){.lane = k, .from = lane->next};
        struct deletion_item *const newest = lane->len == 0 ? NULL : &lane->items[lane->len - 1];
        if (newest == NULL || newest->asked)
            continue;
        newest->asked = true;
        ret[n++] = (struct deletion_question){
            .lane = k, .item = lane->len - 1, .last = true, .subject = newest->subject};
    }
    assert(n <= DELETION_QUESTIONS_MAX);
    return n;
}

static thole_status lane_add(struct deletion_lanes *lanes, size_t at, uint64_t sequence, thole_slice subject,
                             thole_slice bytes)
{
    struct deletion_lane *const lane = &lanes->lanes[at];
    struct deletion_item *const item = &lane->items[lane->len];
    assert(lane->len < DELETION_LANE_ITEMS && sequence >= lane->next);
    *item = (struct deletion_item){.sequence = sequence};
    THOLE_TRY(arena_dup(&lanes->arena, subject, &item->subject));
    THOLE_TRY(arena_dup(&lanes->arena, bytes, &item->bytes));
    lane->len++;
    lane->next = sequence + 1;
    lane->ended = lane->next > lane->end;
    lane->beyond = lane->next;
    return THOLE_OK;
}

thole_status deletion_lanes_answer(struct deletion_lanes *lanes, const struct deletion_question *question,
                                   uint64_t sequence, enum dispensable_age age, thole_slice subject,
                                   thole_slice bytes)
{
    struct deletion_lane *const lane = &lanes->lanes[question->lane];
    if (question->lane >= lanes->len)
        return THOLE_OK;
    if (question->last) {
        struct deletion_item *const item = &lane->items[question->item];
        item->last = item->sequence == sequence;
        return THOLE_OK;
    }
    if (sequence == 0 || sequence > lane->end) {
        lane->ended = true;
        lane->beyond = sequence;
        return THOLE_OK;
    }
    if (age == DISPENSABLE_AGE_YOUNG) {
        lanes->young = true;
        lane_end_last(lanes, question->lane);
        return THOLE_OK;
    }
    THOLE_TRY(lane_add(lanes, question->lane, sequence, subject, bytes));
    lane->items[lane->len - 1].asked = age != DISPENSABLE_AGE_OLD; /* stays, whatever follows it */
    if (!lane->ended && lane->len == lanes->items_max) {
        lanes->young = false; /* the young one was in a later lane, which starts over */
        lane_end_last(lanes, question->lane);
    }
    return THOLE_OK;
}

const struct deletion_item *deletion_lanes_item(const struct deletion_lanes *lanes, size_t at)
{
    for (size_t k = 0; k < lanes->len; k++) {
        if (at < lanes->lanes[k].len)
            return &lanes->lanes[k].items[at];
        at -= lanes->lanes[k].len;
    }
    return NULL;
}

static size_t lanes_items(const struct deletion_lanes *lanes)
{
    size_t n = 0;
    for (size_t k = 0; k < lanes->len; k++)
        n += lanes->lanes[k].len;
    return n;
}

bool deletion_lanes_advance(struct deletion_lanes *lanes)
{
    uint64_t const from = lanes->lanes[lanes->len - 1].beyond;
    size_t const n = lanes_items(lanes);
    if (lanes->young || from == 0 || from > lanes->to)
        return false;
    assert(from > lanes->from);
    uint64_t const apart = (from - lanes->from) / (n + 1) + 1;
    uint64_t const length = apart < UINT64_MAX / ITEMS_EXPECTED ? apart * ITEMS_EXPECTED : UINT64_MAX;
    arena_release(&lanes->arena);
    arena_init(&lanes->arena, ARENA_BYTES_MAX);
    lanes->from = from;
    lanes->items_max = DELETION_LANE_ITEMS;
    lanes->len = 0;
    for (uint64_t at = from; lanes->len < DELETION_LANES && at <= lanes->to;) {
        uint64_t const end = lanes->to - at < length ? lanes->to : at + length - 1;
        lane_begin(lanes, at, end);
        if (end == lanes->to)
            break;
        at = end + 1;
    }
    return true;
}
