#include "lanes.h"
#include "tables.h"
#include <assert.h>

enum {
    TICK_MS = 128,     /* a lane's past use counts half after this time */
    BUSY = 32,         /* used lately, beyond which a lane may be one that rests */
    BESIDE_MS = 10000, /* another lane counts for so long after its last turn */
    PROBES = 8,
    EVENTS_EACH = 8, /* so many events of a turn count as another turn */
    SAY_MS = 1000,
    REST_MS_MAX = 1000, /* whatever else was slow meanwhile */
};

thole_slice lane_name(const struct entry *entry)
{
    const struct pending *const first = entry->first;
    bool const exists = entry->state != ENTRY_ABSENT && entry->state != ENTRY_EARLY;
    if (!exists && first != NULL && first->inbox_sequence != 0 && first->message.kind == MESSAGE_START)
        return first->message.orchestration;
    return entry->orchestration;
}

static bool is_older(const struct lane *a, const struct lane *b)
{
    return b == NULL || a->used_ms < b->used_ms;
}

/* The lane of the name, or an empty one; if there are too many names, some share a lane. */
static struct lane *lane_of(struct lanes *lanes, thole_slice name)
{
    uint64_t const key = key_hash(name, 0, 0);
    struct lane *empty = NULL;
    for (size_t i = 0; i < PROBES; i++) {
        struct lane *const lane = &lanes->all[(key + i) % LANES];
        if (lane->key == key && lane->named)
            return lane;
        if (lane->len == 0 && is_older(lane, empty))
            empty = lane;
    }
    if (empty == NULL)
        return &lanes->all[key % LANES];
    *empty = (struct lane){.key = key, .named = true};
    return empty;
}

static void append_lane(struct lanes *lanes, struct lane *lane)
{
    lane->next = NULL;
    if (lanes->last != NULL)
        lanes->last->next = lane;
    else
        lanes->first = lane;
    lanes->last = lane;
}

static struct lane *take_lane(struct lanes *lanes)
{
    struct lane *const lane = lanes->first;
    lanes->first = lane->next;
    if (lanes->first == NULL)
        lanes->last = NULL;
    return lane;
}

void lanes_add(struct lanes *lanes, struct entry *entry)
{
    struct lane *const lane = lane_of(lanes, lane_name(entry));
    entry->ready_next = NULL;
    if (lane->last != NULL)
        lane->last->ready_next = entry;
    else
        lane->first = entry;
    lane->last = entry;
    if (lane->len++ == 0)
        append_lane(lanes, lane);
}

/* ---- rest ---- */

static uint64_t lane_used(const struct lane *lane, uint64_t now_ms)
{
    uint64_t const ticks = now_ms / TICK_MS - lane->used_ms / TICK_MS;
    return ticks < 64 ? lane->used >> ticks : 0;
}

/* Whether the lane takes most of the turns while another lane has some. */
static bool lane_is_busy(const struct lanes *lanes, const struct lane *lane, uint64_t now_ms)
{
    uint64_t const used = lane_used(lane, now_ms);
    uint64_t others = 0;
    bool beside = false;
    if (used < BUSY)
        return false;
    for (size_t i = 0; i < LANES; i++) {
        const struct lane *const other = &lanes->all[i];
        if (other == lane || other->used_ms + BESIDE_MS <= now_ms)
            continue;
        beside = true;
        others += lane_used(other, now_ms);
    }
    return beside && used > others;
}

static uint64_t least_ms(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool lane_rests(struct lanes *lanes, struct lane *lane, const struct lane_view *view)
{
    struct burst *const burst = &lanes->burst;
    if (view->burst == 0 || lane->len >= view->full || !lane_is_busy(lanes, lane, view->now_ms)) {
        if (burst->lane == lane)
            *burst = (struct burst){.lane = NULL};
        return false;
    }
    if (burst->lane != lane)
        *burst = (struct burst){.lane = lane, .begun_ms = view->now_ms};
    if (view->now_ms < burst->rests_until_ms)
        return true;
    if (burst->len < view->burst)
        return false;
    if (burst->last_n > view->done_n)
        return true;
    uint64_t const took_ms = view->now_ms - burst->begun_ms;
    *burst = (struct burst){.lane = lane};
    burst->rests_until_ms = view->now_ms + least_ms(took_ms > 0 ? took_ms : 1, REST_MS_MAX);
    burst->begun_ms = burst->rests_until_ms;
    return true;
}

struct entry *lanes_take(struct lanes *lanes, const struct lane_view *view)
{
    size_t n = 0;
    for (const struct lane *lane = lanes->first; lane != NULL; lane = lane->next)
        n++;
    for (; n > 0; n--) {
        struct lane *const lane = take_lane(lanes);
        if (lane_rests(lanes, lane, view)) {
            append_lane(lanes, lane);
            continue;
        }
        struct entry *const entry = lane->first;
        lane->first = entry->ready_next;
        if (lane->first == NULL)
            lane->last = NULL;
        if (--lane->len > 0)
            append_lane(lanes, lane);
        lanes->running = lane;
        return entry;
    }
    return NULL;
}

void lanes_ran(struct lanes *lanes, size_t events, uint64_t n, uint64_t now_ms)
{
    struct lane *const lane = lanes->running;
    assert(lane != NULL);
    lane->used = lane_used(lane, now_ms) + 1 + events / EVENTS_EACH;
    lane->used_ms = now_ms;
    if (lanes->burst.lane != lane)
        return;
    lanes->burst.len++;
    lanes->burst.last_n = n;
}

uint64_t lanes_deadline_ms(const struct lanes *lanes)
{
    const struct burst *const burst = &lanes->burst;
    bool const rests = burst->lane != NULL && burst->lane->len > 0 && burst->len == 0;
    return rests && burst->rests_until_ms > 0 ? burst->rests_until_ms : UINT64_MAX;
}

size_t lanes_resting(const struct lanes *lanes)
{
    return lanes->burst.lane == NULL ? 0 : lanes->burst.lane->len;
}

const struct entry *lanes_say_rest(struct lanes *lanes, uint64_t now_ms)
{
    const struct lane *const lane = lanes->burst.lane;
    if (lane == NULL || lane->len == 0 || lanes->burst.rests_until_ms <= now_ms ||
        now_ms < lanes->said_ms + SAY_MS)
        return NULL;
    lanes->said_ms = now_ms;
    return lane->first;
}

bool lanes_empty(const struct lanes *lanes)
{
    return lanes->first == NULL;
}
