/*
 * Random orchestrations fed with random events: see random_program.h. After each run the recorded history
 * must
 *   - be well formed: nothing resolved twice, all resolved at the end, the end last, tries in order;
 *   - replay at every prefix, go on from there with the same bytes, and mean the same without code;
 *   - have each event told to one task at most, or carried into the next execution, or neither, never both;
 * and however it is damaged, it must be refused in words or accepted, never more.
 */
#include "random_program.h"
#include "told.h"
#include <stdlib.h>

enum { SEEDS = 600, DAMAGES = 12 };

struct count {
    size_t turns, ended, cancelled, continued, terminated, tries, given_back, refused, accepted;
    struct told told; /* recorded, carried and refused events */
};

/* ---- events: who has them ---- */

static size_t serial_of(thole_slice data)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(data));
    return text[0] == 'e' ? (size_t)strtoul(text + 1, NULL, 10) : 0;
}

/* All that was accepted is told of or carried, once. */
static void check_conservation(const struct random_run *run, const struct event *carried, size_t n)
{
    uint8_t seen[RANDOM_SERIALS_MAX] = {0};
    uint64_t last = 0;
    for (size_t i = 0; i < run->played.len; i++) {
        struct arena arena;
        struct record r;
        arena_init(&arena, 4 << 20);
        CU_ASSERT_EQUAL(record_decode(buf_bytes(&run->played.records[i]), &arena, &r, NULL), THOLE_OK);
        for (size_t k = 0; k < r.turn.events_len; k++)
            if (r.turn.events[k].kind == EVENT_EVENT_RECEIVED)
                seen[serial_of(r.turn.events[k].data)] = 1;
        arena_release(&arena);
    }
    for (size_t i = 0; i < n; i++) {
        if (carried[i].kind != EVENT_EVENT_RECEIVED)
            continue;
        size_t const serial = serial_of(carried[i].data);
        CU_ASSERT(seen[serial] == 1 && random_told_to(serial) == 0);
        CU_ASSERT(serial > last); /* in order */
        last = serial;
        seen[serial] = 2;
    }
    for (size_t serial = 1; serial < RANDOM_SERIALS_MAX; serial++)
        CU_ASSERT(seen[serial] != 1 || random_told_to(serial) != 0);
}

/* ---- damage ---- */

static void damage_event(struct event *e, uint64_t r)
{
    switch (r % 9) {
    case 0: e->kind = (enum event_kind)(r >> 8 & 63); break;
    case 1: e->ref = r >> 8 & 31; break;
    case 2: e->ref ^= 1u << (r >> 8 & 7); break;
    case 3: e->try_number = r >> 8 & 3; break;
    case 4: e->code = r >> 8 & 15; break;
    case 5: e->name = r & 1 ? THOLE_STR("a") : (thole_slice){NULL, 0}; break;
    case 6: e->data = THOLE_STR("damaged"); break;
    case 7: e->id += (r >> 8) % 3; break;
    default: e->target = (thole_slice){NULL, 0}; break;
    }
}

/* Numbers follow what was moved, mostly: else a gap is all that is ever found. */
static void renumber(struct turn *turns, size_t n, uint64_t r)
{
    uint64_t id = 1;
    for (size_t i = 0; i < n && r % 8 != 0; i++)
        for (size_t k = 0; k < turns[i].events_len; k++)
            ((struct event *)turns[i].events)[k].id = id++;
}

static void damage(struct turn *turns, size_t n, uint64_t *random)
{
    uint64_t const r = random_next(random);
    struct turn *turn = &turns[r % n];
    struct event *events = (struct event *)turn->events;
    size_t const at = turn->events_len == 0 ? 0 : (r >> 16) % turn->events_len;
    switch (r >> 8 & 7) {
    case 0: turn->ran = !turn->ran; break;
    case 1: turn->time_ms = r; break;
    case 2:
        if (turn->events_len > 1)
            events[at] = events[(r >> 24) % turn->events_len];
        break;
    case 3:
        if (turn->events_len > 0)
            memmove(&events[at], &events[at + 1], (--turn->events_len - at) * sizeof *events);
        break;
    default:
        if (turn->events_len > 0)
            damage_event(&events[at], r >> 16);
        break;
    }
    renumber(turns, n, r >> 40);
}

static void replay_damaged(struct instance *instance, const struct turn *turns, size_t n, struct count *count)
{
    thole_status status = THOLE_OK;
    thole_error err = {.text = ""};
    for (size_t i = 0; i < n && status == THOLE_OK; i++)
        status = instance_replay(instance, &turns[i], &err);
    if (status == THOLE_OK)
        count->accepted++;
    else
        count->refused++;
    bool const known = status == THOLE_OK || status == THOLE_CORRUPT || status == THOLE_NONDETERMINISM ||
                       status == THOLE_UNSUPPORTED || status == THOLE_LIMIT;
    CU_ASSERT(known);
    told_number(&count->told, "damaged", status);
    told_bytes(&count->told, "why", thole_slice_from(err.text));
    CU_ASSERT_EQUAL(status != THOLE_OK, err.text[0] != '\0');
    if (status == THOLE_OK && !instance_ended(instance)) { /* goes on with what it believes */
        struct event const stop = {.kind = EVENT_TERMINATE_REQUESTED};
        struct turn_in const in = {.received = &stop, .received_len = 1};
        struct turn_out out;
        CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, &err), THOLE_OK);
        CU_ASSERT(out.ended);
    }
    instance_destroy(instance);
}

static void check_damaged(const struct random_run *run, uint64_t *random, struct count *count)
{
    struct turn turns[PLAY_TURNS_MAX];
    struct arena arena;
    size_t n = 0;
    arena_init(&arena, 4 << 20);
    for (; n < run->played.len; n++) {
        struct record r;
        CU_ASSERT_EQUAL(record_decode(buf_bytes(&run->played.records[n]), &arena, &r, NULL), THOLE_OK);
        turns[n] = r.turn;
    }
    damage(turns, n, random);
    if (random_next(random) % 2 == 0)
        damage(turns, n, random);
    run->played.before_replay();
    random_damaged(true);
    replay_damaged(play_instance(run->played.play), turns, n, count);
    replay_damaged(play_codeless(run->played.play), turns, n, count);
    random_damaged(false);
    arena_release(&arena);
}

/* ---- a run ---- */

static void tell_run(struct told *told, const struct random_run *run, const struct event *carried, size_t n)
{
    for (size_t i = 0; i < run->played.len; i++) {
        told_line(told, "record");
        told_bytes(told, "bytes", buf_bytes(&run->played.records[i]));
    }
    for (size_t i = 0; i < n; i++)
        told_event(told, &carried[i]);
}

static void count_run(const struct random_run *run, struct count *count)
{
    const struct outside *o = &run->outside;
    count->turns += run->played.len;
    count->ended += o->ended;
    count->cancelled += o->cancelled;
    count->continued += o->continued;
    count->terminated += o->terminated;
    for (uint64_t id = 1; id <= o->events; id++) {
        count->tries += o->kind_of[id] == EVENT_ACTIVITY_TRY_STARTED;
        count->given_back += o->kind_of[id] == EVENT_EVENT_AWAIT_CANCELLED;
    }
}

static void check_run(struct random_run *run, uint64_t *random, struct count *count)
{
    for (size_t prefix = 0; prefix <= run->played.len; prefix += prefix / 4 + 1)
        play_check_prefix(&run->played, prefix);
    for (int i = 0; i < DAMAGES; i++)
        check_damaged(run, random, count);
    count_run(run, count);
}

/* An execution, and those that it continues as. */
static void run_executions(const struct play *play, uint64_t seed, struct count *count)
{
    struct arena carried;
    struct event *first = NULL;
    size_t first_len = 0;
    uint64_t random = seed;
    arena_init(&carried, 16 << 20);
    for (uint64_t execution = 1; execution <= 3; execution++) {
        struct random_run *run = malloc(sizeof *run);
        random_run_init(run, play, seed * 8 + execution);
        run->outside.serials = (execution - 1) * (RANDOM_SERIALS_MAX / 3);
        struct instance *instance = random_run_live(run, first, first_len);
        bool const goes_on = instance_continued(instance);
        first_len = 0;
        if (goes_on) {
            struct buf text;
            buf_init(&text, PLAY_TEXT_MAX);
            CU_ASSERT_EQUAL(instance_carry(instance, &carried, &first, &first_len), THOLE_OK);
            check_conservation(run, first, first_len);
            play_check_carried(&run->played, instance, &text);
            buf_release(&text);
        }
        instance_destroy(instance);
        tell_run(&count->told, run, first, first_len);
        check_run(run, &random, count);
        random_run_release(run);
        free(run);
        if (!goes_on)
            break;
    }
    arena_release(&carried);
}

static void random_programs(void)
{
    struct count c = {0};
    struct told_book book;
    CU_ASSERT_TRUE_FATAL(told_book_open(&book, "instance_random"));
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        unsigned const failures = CU_get_number_of_failures();
        struct play play = play_of(random_program);
        play.payload_max = 4096;
        told_begin(&c.told, told_reader(seed));
        run_executions(&play, seed, &c);
        told_book_check(&book, seed, c.told.hash);
        CU_ASSERT_EQUAL(stack_pool_in_use(play.stacks), 0);
        play_release(&play);
        if (CU_get_number_of_failures() != failures) {
            fprintf(stderr, "\n  seed %llu\n", (unsigned long long)seed);
            break;
        }
    }
    CU_ASSERT_TRUE(told_book_close(&book));
    printf("\n    %zu turns; %zu ended, %zu cancelled, %zu terminated, %zu continued; %zu further tries, %zu "
           "waits "
           "cancelled; damaged: %zu refused, %zu accepted ",
           c.turns, c.ended, c.cancelled, c.terminated, c.continued, c.tries, c.given_back, c.refused,
           c.accepted);
    CU_ASSERT(c.ended > SEEDS / 2 && c.cancelled > SEEDS / 10 && c.terminated > SEEDS / 20);
    CU_ASSERT(c.continued > SEEDS / 10 && c.tries > SEEDS / 10 && c.given_back > SEEDS / 10);
    CU_ASSERT(c.refused > c.accepted / 4 && c.accepted > 0);
}

static const struct thole_test tests[] = {
    {"random programs", random_programs},
};
THOLE_TEST_MAIN("instance_random", tests)
