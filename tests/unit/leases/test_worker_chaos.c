/*
 * The worker machine under any order of anything: answers of all kinds and ages, lost connections, pushes,
 * handlers that return late or never, and a stop; what must hold in all of it is checked at each output.
 */
#include "proofs.h"
#include "thole_cunit.h"
#include "told.h"
#include "worker.h"
#include <inttypes.h>
#include <stdlib.h>

enum { SEEDS = 300, STEPS = 400, IDS = 4000, IDS_MAX = 64, SLOTS = 3, KEYS = 6 };

struct fate {
    bool ended, runs, fired, abandoned, lost, missing, mine, answered, claimed, late, timed_out, later,
        hurried, candidate, poisoned, held, unserved, shelved;
    struct worker_key key;
};
struct pending { /* a call or a publish in flight */
    enum worker_in_kind kind;
    bool open;
    size_t len;
    struct worker_row rows[IDS_MAX];
};
struct chaos {
    struct worker_machine *w;
    struct told told; /* all that it said */
    uint64_t rng, now_ms, next_id;
    bool stopping, stopped;
    uint32_t wish;
    int running, slots_owed;
    struct pending claim, renew, begin, commit, release, leave, shelve, not_lost;
    uint64_t isolated;                            /* runs isolated and has not settled; 0 = none */
    uint64_t publishing[IDS_MAX], quick[IDS_MAX]; /* quick: handlers that run in the batch */
    size_t publishing_len, quick_len;
    struct fate fates[IDS];
};

static struct worker_key key_of(char letter)
{
    return (struct worker_key){THOLE_STR("order-1"), 1, (uint64_t)letter, 1};
}

static uint64_t dice(struct chaos *c, uint64_t sides)
{
    c->rng = c->rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (c->rng >> 33) % sides;
}

static void give(struct chaos *c, struct worker_in in)
{
    CU_ASSERT_EQUAL(worker_input(c->w, &in, c->now_ms), THOLE_OK);
    CU_ASSERT_PTR_NULL(worker_check(c->w));
}

static void hold(struct pending *call, enum worker_in_kind kind, const struct worker_out *out)
{
    CU_ASSERT_FALSE(call->open); /* one of each kind */
    call->open = true;
    call->kind = kind;
    call->len = out->rows_len;
    for (size_t i = 0; i < out->rows_len; i++)
        call->rows[i] = out->rows[i];
}

/* Nothing starts beside what runs isolated, until a renewal has said that it is settled. */
static void left_alone(struct chaos *c, uint64_t id)
{
    if (c->isolated == id)
        c->isolated = 0;
}

static void ended(struct chaos *c, const struct worker_out *out)
{
    struct fate *const fate = &c->fates[out->id];
    left_alone(c, out->id);
    bool const acked = out->kind == WORKER_OUT_ACK;
    CU_ASSERT_FALSE(fate->ended);
    CU_ASSERT_FALSE(fate->runs && !fate->abandoned);
    if (fate->lost)
        CU_ASSERT_EQUAL(out->kind, WORKER_OUT_DROP); /* nothing is sent after the lease */
    if (acked)                                       /* only when it is sure that the row is gone, or left */
        CU_ASSERT_TRUE(fate->missing || out->end == WORKER_END_COMPLETED || out->end == WORKER_END_LATER ||
                       fate->shelved);
    if (out->end == WORKER_END_LATER)
        CU_ASSERT_TRUE(fate->later && !fate->timed_out);
    if (out->end == WORKER_END_COMPLETED)
        CU_ASSERT_TRUE(fate->answered);
    CU_ASSERT_TRUE(out->delay_ms <= 30000);
    CU_ASSERT_EQUAL(out->end == WORKER_END_HELD, out->kind == WORKER_OUT_NAK && fate->held);
    fate->ended = true;
}

static void hold_claim(struct chaos *c, const struct worker_out *out)
{
    hold(&c->claim, WORKER_IN_CLAIMED, out);
    CU_ASSERT_EQUAL(c->isolated, 0);
    for (size_t i = 0; i < out->rows_len; i++) {
        CU_ASSERT_EQUAL(out->rows[i].isolated, c->fates[out->rows[i].id].candidate);
        CU_ASSERT_TRUE(!out->rows[i].isolated || out->rows_len == 1);
    }
}

/* Each row of the batch that is mine is run before anything of it is published. */
static void run_quick(struct chaos *c, const struct worker_out *out)
{
    CU_ASSERT_EQUAL(c->isolated, 0);
    CU_ASSERT_EQUAL(c->quick_len, 0);
    for (size_t i = 0; i < out->rows_len; i++) {
        struct fate *const fate = &c->fates[out->rows[i].id];
        CU_ASSERT_TRUE(fate->mine && !fate->claimed && !fate->runs && out->rows[i].attempt == 1);
        fate->claimed = true;
        c->quick[c->quick_len++] = out->rows[i].id;
    }
}

static void obey(struct chaos *c, const struct worker_out *out)
{
    struct fate *const fate = &c->fates[out->id];
    switch (out->kind) {
    case WORKER_OUT_WANT: c->wish = out->count; break;
    case WORKER_OUT_CLAIM: hold_claim(c, out); break;
    case WORKER_OUT_NOT_LOST: hold(&c->not_lost, WORKER_IN_NOT_LOST, out); break;
    case WORKER_OUT_POISONED:
        CU_ASSERT_TRUE(fate->poisoned && fate->claimed && !fate->runs && !fate->timed_out);
        break;
    case WORKER_OUT_RENEW: hold(&c->renew, WORKER_IN_RENEWED, out); break;
    case WORKER_OUT_RELEASE: hold(&c->release, WORKER_IN_RELEASED, out); break;
    case WORKER_OUT_COMPLETE_BEGIN: hold(&c->begin, WORKER_IN_BEGUN, out); break;
    case WORKER_OUT_COMPLETE_COMMIT: hold(&c->commit, WORKER_IN_COMMITTED, out); break;
    case WORKER_OUT_COMPLETE_ROLLBACK: CU_ASSERT_FALSE(c->begin.open || c->commit.open); break;
    case WORKER_OUT_COMPLETE_PUBLISH:
        CU_ASSERT_EQUAL(c->quick_len, 0);
        for (size_t i = 0; i < out->ids_len; i++) {
            CU_ASSERT_TRUE(c->fates[out->ids[i]].mine && c->fates[out->ids[i]].claimed); /* the fence */
            c->publishing[c->publishing_len++] = out->ids[i];
        }
        break;
    case WORKER_OUT_COMPLETE_RUN: run_quick(c, out); break;
    case WORKER_OUT_LEAVE: hold(&c->leave, WORKER_IN_LEFT, out); break;
    case WORKER_OUT_SHELVE:
        for (size_t i = 0; i < out->rows_len; i++)
            CU_ASSERT_TRUE(c->fates[out->rows[i].id].unserved);
        hold(&c->shelve, WORKER_IN_SHELVED, out);
        break;
    case WORKER_OUT_EXPIRED:
        CU_ASSERT_FALSE(fate->runs || fate->timed_out);
        CU_ASSERT_TRUE(fate->claimed && out->attempt > 0);
        fate->timed_out = true;
        break;
    case WORKER_OUT_RUN:
        CU_ASSERT_FALSE(fate->runs || fate->late || fate->timed_out || fate->poisoned);
        CU_ASSERT_EQUAL(c->isolated, 0);
        c->isolated = fate->candidate ? out->id : 0;
        CU_ASSERT_TRUE(fate->claimed && out->attempt > 0);
        fate->runs = true;
        CU_ASSERT_TRUE(++c->running + c->slots_owed <= SLOTS);
        break;
    case WORKER_OUT_FIRE:
        CU_ASSERT_FALSE(fate->fired);
        fate->fired = true;
        fate->lost |= out->path == WORKER_PATH_LEASE_LOST;
        fate->timed_out |= out->path == WORKER_PATH_TIMEOUT;
        break;
    case WORKER_OUT_HURRY:
        CU_ASSERT_TRUE(fate->runs && fate->fired && !fate->abandoned && !fate->hurried);
        fate->hurried = true;
        break;
    case WORKER_OUT_ABANDON:
        CU_ASSERT_TRUE(fate->runs && fate->fired && !fate->abandoned);
        fate->abandoned = true;
        left_alone(c, out->id);
        c->running--;
        c->slots_owed++;
        break;
    case WORKER_OUT_PROGRESS:
        for (size_t i = 0; i < out->ids_len; i++)
            CU_ASSERT_FALSE(c->fates[out->ids[i]].lost || c->fates[out->ids[i]].ended);
        break;
    case WORKER_OUT_ACK:
    case WORKER_OUT_NAK:
    case WORKER_OUT_TERM:
    case WORKER_OUT_DROP: ended(c, out); break;
    case WORKER_OUT_STOPPED: c->stopped = true; break;
    }
}

static enum worker_row_state any_state(struct chaos *c, enum worker_in_kind kind)
{
    uint64_t const roll = dice(c, 20);
    if (roll < 2)
        return WORKER_ROW_MISSING;
    if (roll == 3)
        return WORKER_ROW_UNKNOWN;
    if (roll == 4 && (kind == WORKER_IN_CLAIMED || kind == WORKER_IN_SHELVED))
        return WORKER_ROW_HELD;
    return roll == 2 && kind != WORKER_IN_CLAIMED ? WORKER_ROW_STOLEN : WORKER_ROW_MINE;
}

static void reply(struct chaos *c, struct pending *call)
{
    bool const unknown = dice(c, 6) == 0;
    if (!call->open)
        return;
    call->open = false;
    for (size_t i = 0; i < call->len && !unknown; i++) {
        struct worker_row *const row = &call->rows[i];
        struct fate *const fate = &c->fates[row->id];
        row->state = any_state(c, call->kind);
        if (row->quick && row->state != WORKER_ROW_MINE)
            row->state = WORKER_ROW_STOLEN;
        if (row->quick)
            row->attempt = 1;
        fate->missing |= row->state == WORKER_ROW_MISSING;
        if (call->kind == WORKER_IN_RENEWED && row->settled && row->state == WORKER_ROW_MINE)
            left_alone(c, row->id);
        if (call->kind == WORKER_IN_BEGUN)
            fate->mine = row->state == WORKER_ROW_MINE;
        if (call->kind == WORKER_IN_CLAIMED) {
            row->attempt = c->next_id;
            row->left_ms = dice(c, 2) == 0 ? dice(c, 5000) : 0;
            row->expired = fate->late = dice(c, 8) == 0;
            row->lost = (uint32_t)dice(c, 6);
            row->poisoned = fate->poisoned = dice(c, 10) == 0;
            fate->held = row->state == WORKER_ROW_HELD;
            if (!row->isolated && dice(c, 8) == 0) {
                row->state = WORKER_ROW_CANDIDATE;
                fate->candidate = true;
                fate->held = false;
            }
        }
        if (call->kind == WORKER_IN_SHELVED) {
            fate->held = row->state == WORKER_ROW_HELD;
            fate->shelved = row->state == WORKER_ROW_MINE;
        }
        fate->claimed |= call->kind == WORKER_IN_CLAIMED && row->state == WORKER_ROW_MINE;
    }
    give(c, (struct worker_in){.kind = call->kind,
                               .unknown = unknown,
                               .rows = call->rows,
                               .rows_len = unknown ? 0 : call->len});
}

static void finish_one(struct chaos *c)
{
    uint64_t const id = dice(c, c->next_id);
    struct fate *const fate = &c->fates[id];
    if (!fate->runs)
        return;
    fate->runs = false;
    left_alone(c, id);
    if (!fate->abandoned)
        c->running--;
    static thole_status const statuses[] = {THOLE_OK, THOLE_OK, THOLE_CANCELLED, THOLE_LATER};
    thole_status const status = statuses[dice(c, ARRAY_LEN(statuses))];
    fate->later = status == THOLE_LATER;
    give(c, (struct worker_in){.kind = WORKER_IN_FINISHED, .id = id, .status = status});
}

static void finish_quick(struct chaos *c)
{
    static thole_status const statuses[] = {THOLE_OK, THOLE_APP, THOLE_CANCELLED};
    bool const stops = dice(c, 12) == 0; /* this one is not run, nor the others */
    if (c->quick_len == 0)
        return;
    uint64_t const id = c->quick[--c->quick_len];
    for (size_t i = 0; stops && i < c->quick_len; i++)
        c->fates[c->quick[i]].claimed = false;
    c->fates[id].claimed = !stops;
    c->quick_len = stops ? 0 : c->quick_len;
    give(c, (struct worker_in){.kind = WORKER_IN_FINISHED,
                               .id = id,
                               .unknown = stops,
                               .status = statuses[dice(c, ARRAY_LEN(statuses))]});
}

static void publish_one(struct chaos *c)
{
    if (c->publishing_len == 0)
        return;
    uint64_t const id = c->publishing[--c->publishing_len];
    bool const ok = dice(c, 5) != 0;
    c->fates[id].answered |= ok;
    give(c, (struct worker_in){.kind = WORKER_IN_PUBLISHED, .id = id, .ok = ok});
}

static void settle(struct chaos *c)
{
    struct worker_out out;
    worker_advance(c->w, c->now_ms);
    while (worker_poll(c->w, &out)) {
        CU_ASSERT_PTR_NULL(worker_check(c->w));
        told_worker(&c->told, &out);
        obey(c, &out);
    }
    struct worker_counters const counters = worker_counters(c->w);
    told_counters(&c->told, &counters);
    told_number(&c->told, "deadline_ms", worker_next_deadline_ms(c->w));
    CU_ASSERT_TRUE(worker_next_deadline_ms(c->w) > c->now_ms);
}

/* The worker that has that try, and has not ended. */
static const struct fate *holder(const struct chaos *c, const struct worker_key *key)
{
    for (uint64_t id = 1; id < c->next_id; id++)
        if (!c->fates[id].ended && c->fates[id].key.activity_id == key->activity_id &&
            c->fates[id].key.try_number == key->try_number)
            return &c->fates[id];
    return NULL;
}

static void deliver_one(struct chaos *c)
{
    char const letter = (char)('a' + dice(c, KEYS));
    struct worker_in const in = {.kind = WORKER_IN_DELIVERED,
                                 .id = c->next_id,
                                 .key = key_of(letter),
                                 .known = letter != 'a',
                                 .unserved = letter == 'a' && c->next_id % 3 != 0,
                                 .quick = letter >= 'd',
                                 .deliveries = dice(c, 4)};
    if (c->next_id + 1 >= IDS || (c->wish == 0 && dice(c, 30) != 0))
        return;
    if (c->wish > 0)
        c->wish--;
    settle(c);
    if (c->stopped) /* a stopping host takes no more messages */
        return;
    const struct fate *const same = holder(c, &in.key);
    thole_status const status = worker_input(c->w, &in, c->now_ms);
    if (status == THOLE_CONFLICT)
        CU_ASSERT_PTR_EQUAL(same, &c->fates[worker_holds(c->w, &in.key, &in.digest)]);
    if (status != THOLE_OK)
        return;
    c->fates[c->next_id].key = in.key;
    c->fates[c->next_id].unserved = in.unserved;
    c->fates[c->next_id++].held = same != NULL && in.known; /* by a handler that has grace */
}

static void push_one(struct chaos *c)
{
    uint64_t const id = 'a' + dice(c, KEYS);
    uint64_t proof;
    struct worker_in const in = {.kind = WORKER_IN_PUSHED,
                                 .key = key_of('a'),
                                 .activity_ids = &id,
                                 .activity_ids_len = 1,
                                 .early = dice(c, 3) == 0,
                                 .cancel_kind = THOLE_STR("ended")};
    give(c, test_with_proofs(in, THOLE_STR(""), &proof));
}

static void anything(struct chaos *c)
{
    switch (dice(c, 18)) {
    case 0: c->now_ms += dice(c, 3) == 0 ? dice(c, 9000) : dice(c, 100); break;
    case 1: reply(c, &c->claim); break;
    case 2: reply(c, &c->renew); break;
    case 3: reply(c, &c->begin); break;
    case 4: reply(c, &c->commit); break;
    case 5: reply(c, &c->release); break;
    case 13:
        reply(c, &c->shelve);
        reply(c, &c->leave);
        break;
    case 14: reply(c, &c->not_lost); break;
    case 6:
    case 7:
        finish_quick(c);
        publish_one(c);
        break;
    case 8:
    case 9: finish_one(c); break;
    case 10:
        if (dice(c, 4) == 0)
            push_one(c);
        break;
    case 12:
        if (c->slots_owed > 0) {
            c->slots_owed--;
            give(c, (struct worker_in){.kind = WORKER_IN_SLOT});
        }
        break;
    default: deliver_one(c); break;
    }
}

static bool chaos_run(uint64_t seed, FILE *to, uint64_t *ret_told)
{
    static struct chaos c;
    struct worker_options options = {.slots = SLOTS,
                                     .completions_max = 2,
                                     .lease_ms = 3000 + seed % 7 * 4000,
                                     .grace_ms = 100 + seed % 5 * 2000,
                                     .stop_grace_ms = 500,
                                     .poison_after = 2 + seed % 3};
    c = (struct chaos){.rng = seed, .now_ms = 1, .next_id = 1};
    told_begin(&c.told, to);
    c.w = worker_create(&options);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c.w);
    for (int i = 0; i < STEPS * 3 && !c.stopped; i++) {
        if (i == STEPS * 2)
            give(&c, (struct worker_in){.kind = WORKER_IN_STOP, .limit_ms = dice(&c, 5000)});
        anything(&c);
        if (dice(&c, 3) != 0)
            settle(&c);
    }
    for (int i = 0; i < 100000 && !c.stopped; i++) { /* answers come, handlers need not return */
        c.now_ms += 10;
        reply(&c, &c.claim);
        reply(&c, &c.renew);
        reply(&c, &c.begin);
        reply(&c, &c.commit);
        reply(&c, &c.release);
        reply(&c, &c.leave);
        reply(&c, &c.shelve);
        reply(&c, &c.not_lost);
        finish_quick(&c);
        publish_one(&c);
        settle(&c);
    }
    bool good = c.stopped && worker_held(c.w) == 0;
    for (uint64_t id = 1; id < c.next_id; id++)
        good &= c.fates[id].ended;
    worker_destroy(c.w);
    *ret_told = c.told.hash;
    return good;
}

static void test_chaos(void)
{
    struct told_book book;
    uint64_t told = 0;
    CU_ASSERT_TRUE_FATAL(told_book_open(&book, "worker_chaos"));
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        unsigned const before = CU_get_number_of_failures();
        bool const good = chaos_run(seed, told_reader(seed), &told);
        told_book_check(&book, seed, told);
        CU_ASSERT_TRUE(good);
        if (!good || CU_get_number_of_failures() != before) {
            fprintf(stderr, "\n  seed %" PRIu64 "\n", seed);
            break;
        }
    }
    CU_ASSERT_TRUE(told_book_close(&book));
}

static const struct thole_test tests[] = {
    {"any order of anything", test_chaos},
};
THOLE_TEST_MAIN("worker_chaos", tests)
