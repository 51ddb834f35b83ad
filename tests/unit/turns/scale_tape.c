#include "scale_tape.h"
#include <stdlib.h>
#include <time.h>

enum { PART = 50000, TIME_MAX_MS = 10000 };

static uint64_t cpu_ms(void)
{
    return (uint64_t)clock() * 1000 / CLOCKS_PER_SEC;
}

struct play scale_play(thole_orchestration_fn *code)
{
    struct play play = play_of(code);
    play.memory_max = 64 << 20; /* the limit that an engine has unless told otherwise */
    return play;
}

void tape_init(struct tape *tape)
{
    *tape = (struct tape){.begin_ms = cpu_ms()};
}

static struct buf *next_record(struct tape *tape)
{
    if (tape->len == tape->cap) {
        tape->cap = tape->cap == 0 ? 64 : tape->cap * 2;
        tape->records = realloc(tape->records, tape->cap * sizeof *tape->records);
        if (tape->records == NULL)
            abort();
    }
    struct buf *record = &tape->records[tape->len++];
    buf_init(record, RECORD_BYTES_MAX);
    return record;
}

/* In parts, as no record holds the largest turns. */
static void record(struct tape *tape, const struct turn_out *out)
{
    size_t from = 0;
    do {
        size_t const n = out->events_len - from < PART ? out->events_len - from : PART;
        struct record const r = {.kind = RECORD_TURN,
                                 .epoch = 1,
                                 .n = out->number,
                                 .turn = {.instance = THOLE_STR("order-1"),
                                          .execution = 1,
                                          .number = out->number,
                                          .time_ms = out->time_ms,
                                          .ran = out->ran,
                                          .more = from + n < out->events_len,
                                          .events = out->events + from,
                                          .events_len = n}};
        CU_ASSERT_EQUAL(record_encode(&r, next_record(tape)), THOLE_OK);
        from += n;
    } while (from < out->events_len);
}

bool tape_feed(struct tape *tape, struct instance *instance, const struct event *events, size_t n)
{
    struct turn_in const in = {.time_ms = 1000, .received = events, .received_len = n, .run = true};
    struct turn_out out = {0};
    thole_error err = {.text = ""};
    thole_status const status = instance_turn(instance, &in, &out, &err);
    CHECK_STR("turn", err.text, "");
    CU_ASSERT_EQUAL(status, THOLE_OK);
    if (status == THOLE_OK)
        record(tape, &out);
    tape->completed = out.ended && out.events[out.events_len - 1].kind == EVENT_COMPLETED;
    return status == THOLE_OK && !out.ended;
}

/* ---- replay ---- */

/* One turn, all its parts joined; returns how many there were. */
static size_t read_turn(const struct tape *tape, size_t at, struct arena *arena, struct turn *ret)
{
    size_t parts = 0;
    struct record r;
    do {
        CU_ASSERT_EQUAL_FATAL(record_decode(buf_bytes(&tape->records[at + parts]), arena, &r, NULL),
                              THOLE_OK);
        if (parts > 0) {
            size_t const n = ret->events_len + r.turn.events_len;
            struct event *events = arena_array(arena, n, sizeof *events);
            memcpy(events, ret->events, ret->events_len * sizeof *events);
            memcpy(events + ret->events_len, r.turn.events, r.turn.events_len * sizeof *events);
            r.turn.events = events;
            r.turn.events_len = n;
        }
        *ret = r.turn;
        parts++;
    } while (r.turn.more);
    return parts;
}

static void replay_tape(const struct play *play, struct tape *tape)
{
    struct instance *instance = play_instance(play);
    thole_error err = {.text = ""};
    thole_status status = THOLE_OK;
    for (size_t i = 0; i < tape->len;) {
        struct arena arena;
        struct turn turn;
        arena_init(&arena, 256 << 20);
        i += read_turn(tape, i, &arena, &turn);
        if (status == THOLE_OK)
            status = instance_replay(instance, &turn, &err);
        arena_release(&arena);
    }
    CHECK_STR("replay", err.text, "");
    CU_ASSERT(instance_ended(instance));
    instance_destroy(instance);
}

void tape_finish(const char *name, const struct play *play, struct tape *tape)
{
    struct play facts = *play;
    facts.code = NULL;
    uint64_t const live = cpu_ms();
    replay_tape(play, tape);
    uint64_t const replayed = cpu_ms();
    replay_tape(&facts, tape);
    uint64_t const end = cpu_ms();
    CU_ASSERT(end - tape->begin_ms < TIME_MAX_MS);
    printf("\n    %-36s live %4llu ms, replayed %4llu ms, without code %4llu ms ", name,
           (unsigned long long)(live - tape->begin_ms), (unsigned long long)(replayed - live),
           (unsigned long long)(end - replayed));
    for (size_t i = 0; i < tape->len; i++)
        buf_release(&tape->records[i]);
    free(tape->records);
}

/* ---- numbers ---- */

struct event scale_start(size_t n)
{
    static char text[24];
    (void)snprintf(text, sizeof text, "%zu", n);
    return (struct event){.kind = EVENT_STARTED, .name = THOLE_STR("t"), .data = thole_slice_from(text)};
}

size_t scale_number(thole_slice input)
{
    size_t n = 0;
    for (size_t i = 0; i < input.len; i++)
        n = n * 10 + (size_t)(input.ptr[i] - '0');
    return n;
}
