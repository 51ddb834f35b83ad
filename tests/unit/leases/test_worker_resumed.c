/* A worker machine that goes on with what another worker has claimed: its handlers run already. */
#include "thole_cunit.h"
#include "worker.h"
#include "worker_story.h"

enum { LEASE_MS = 30000, SENT_MS = 99000, NOW_MS = 100000 };
static const char nonce[] = "0af7651916cd43dd0af7651916cd43dd";

static struct worker_machine *machine(uint32_t slots, uint32_t resumed_max)
{
    struct worker_options options;
    worker_options_init(&options);
    options.slots = slots;
    options.completions_max = 2;
    options.resumed_max = resumed_max;
    return worker_create(&options);
}

static struct worker_row row_of(enum worker_row_state state, uint64_t left_ms)
{
    return (struct worker_row){.attempt = 7, .claimed_us = 900, .state = state, .left_ms = left_ms};
}

static thole_status resume(struct worker_machine *w, uint64_t id, const struct worker_row *row)
{
    struct worker_in const in = {.kind = WORKER_IN_RESUMED,
                                 .id = id,
                                 .key = story_key((char)('a' + id)),
                                 .nonce = thole_slice_from(nonce),
                                 .arrived_ms = SENT_MS,
                                 .rows = row,
                                 .rows_len = 1};
    thole_status const status = worker_input(w, &in, NOW_MS);
    CU_ASSERT_PTR_NULL(worker_check(w));
    return status;
}

/* The next output, which must be of that kind. */
static struct worker_out next(struct worker_machine *w, enum worker_out_kind kind)
{
    struct worker_out out = {.kind = WORKER_OUT_STOPPED};
    CU_ASSERT_TRUE(worker_poll(w, &out));
    CU_ASSERT_EQUAL(out.kind, kind);
    CU_ASSERT_PTR_NULL(worker_check(w));
    return out;
}

static void nothing(struct worker_machine *w)
{
    struct worker_out out;
    CU_ASSERT_FALSE(worker_poll(w, &out));
}

static void give(struct worker_machine *w, const struct worker_in *in, uint64_t now_ms)
{
    CU_ASSERT_EQUAL(worker_input(w, in, now_ms), THOLE_OK);
    CU_ASSERT_PTR_NULL(worker_check(w));
}

/* A resumed handler has a slot, is renewed under its former claim, and is completed. */
static void test_goes_on(void)
{
    struct worker_machine *const w = machine(2, 1);
    struct worker_row const mine = row_of(WORKER_ROW_MINE, 0);
    CU_ASSERT_EQUAL(resume(w, 1, &mine), THOLE_OK);
    CU_ASSERT_EQUAL(resume(w, 1, &mine), THOLE_CONFLICT);
    CU_ASSERT_EQUAL(next(w, WORKER_OUT_WANT).count, 1);
    nothing(w);
    worker_advance(w, SENT_MS + LEASE_MS / 3);
    struct worker_out out = next(w, WORKER_OUT_PROGRESS);
    out = next(w, WORKER_OUT_RENEW);
    CU_ASSERT_EQUAL(out.rows_len, 1);
    CU_ASSERT_EQUAL(out.rows[0].attempt, 7);
    CU_ASSERT_EQUAL(out.rows[0].claimed_us, 900);
    give(w, &(struct worker_in){.kind = WORKER_IN_FINISHED, .id = 1, .status = THOLE_OK}, NOW_MS + 20000);
    CU_ASSERT_EQUAL(next(w, WORKER_OUT_WANT).count, 2);
    out = next(w, WORKER_OUT_COMPLETE_BEGIN);
    CU_ASSERT_EQUAL(out.rows[0].attempt, 7);
    CU_ASSERT_EQUAL(worker_counters(w).resumed, 1);
    worker_destroy(w);
}

/* From when the rows were asked, not from when that was answered. */
static void test_its_lease(void)
{
    struct worker_machine *const w = machine(1, 1);
    struct worker_row const mine = row_of(WORKER_ROW_MINE, 0);
    CU_ASSERT_EQUAL(resume(w, 1, &mine), THOLE_OK);
    worker_advance(w, SENT_MS + LEASE_MS - 2000 - 1);
    CU_ASSERT_EQUAL(worker_counters(w).lease_lost, 0);
    worker_advance(w, SENT_MS + LEASE_MS - 2000);
    CU_ASSERT_EQUAL(worker_counters(w).lease_lost, 1);
    CU_ASSERT_EQUAL(next(w, WORKER_OUT_FIRE).path, WORKER_PATH_LEASE_LOST);
    worker_destroy(w);
}

static void test_cancelled_meanwhile(void)
{
    struct worker_machine *const w = machine(1, 1);
    struct worker_row const missing = row_of(WORKER_ROW_MISSING, 0);
    CU_ASSERT_EQUAL(resume(w, 1, &missing), THOLE_OK);
    CU_ASSERT_EQUAL(next(w, WORKER_OUT_FIRE).path, WORKER_PATH_RENEWAL);
    give(w, &(struct worker_in){.kind = WORKER_IN_FINISHED, .id = 1, .status = THOLE_OK}, NOW_MS + 1);
    CU_ASSERT_EQUAL(next(w, WORKER_OUT_ACK).end, WORKER_END_CANCELLED);
    worker_destroy(w);
}

static void test_deadlines(void)
{
    struct worker_machine *const w = machine(2, 2);
    struct worker_row later = row_of(WORKER_ROW_MINE, 500), over = row_of(WORKER_ROW_MINE, 0);
    over.expired = true;
    CU_ASSERT_EQUAL(resume(w, 1, &later), THOLE_OK);
    CU_ASSERT_EQUAL(resume(w, 2, &over), THOLE_OK);
    worker_advance(w, NOW_MS);
    struct worker_out const first = next(w, WORKER_OUT_FIRE);
    CU_ASSERT_TRUE(first.id == 2 && first.path == WORKER_PATH_TIMEOUT);
    worker_advance(w, NOW_MS + 500);
    CU_ASSERT_EQUAL(next(w, WORKER_OUT_FIRE).id, 1);
    worker_destroy(w);
}

/* More run than there are slots: nothing is wanted until there are fewer. */
static void test_more_than_slots(void)
{
    struct worker_machine *const w = machine(1, 3);
    struct worker_row const mine = row_of(WORKER_ROW_MINE, 0);
    for (uint64_t id = 1; id <= 3; id++)
        CU_ASSERT_EQUAL(resume(w, id, &mine), THOLE_OK);
    nothing(w);
    for (uint64_t id = 1; id <= 3; id++)
        give(w, &(struct worker_in){.kind = WORKER_IN_FINISHED, .id = id, .unknown = true}, NOW_MS);
    CU_ASSERT_EQUAL(next(w, WORKER_OUT_WANT).count, 1);
    CU_ASSERT_EQUAL(next(w, WORKER_OUT_RELEASE).rows_len, 3); /* they do not run, after all */
    give(w, &(struct worker_in){.kind = WORKER_IN_RELEASED}, NOW_MS);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(next(w, WORKER_OUT_NAK).end, WORKER_END_HANDED_BACK);
    CU_ASSERT_EQUAL(worker_held(w), 0);
    worker_destroy(w);
}

/* The message of the running handler comes. */
static void test_its_message_comes(void)
{
    struct worker_machine *const w = machine(2, 1);
    struct worker_row const mine = row_of(WORKER_ROW_MINE, 0);
    struct worker_in in = {.kind = WORKER_IN_DELIVERED,
                           .id = 9,
                           .key = story_key('b'),
                           .nonce = thole_slice_from(nonce),
                           .known = true};
    CU_ASSERT_EQUAL(resume(w, 1, &mine), THOLE_OK);
    CU_ASSERT_EQUAL(worker_input(w, &in, NOW_MS), THOLE_CONFLICT);
    CU_ASSERT_EQUAL(worker_holds(w, &in.key, &in.digest), 1);
    in.digest.bytes[0] = 1; /* another digest */
    CU_ASSERT_EQUAL(worker_input(w, &in, NOW_MS), THOLE_OK);
    CU_ASSERT_EQUAL(next(w, WORKER_OUT_TERM).end, WORKER_END_FORGED);
    worker_destroy(w);
}

static const struct thole_test tests[] = {
    {"goes on", test_goes_on},
    {"its lease", test_its_lease},
    {"cancelled meanwhile", test_cancelled_meanwhile},
    {"deadlines", test_deadlines},
    {"more than slots", test_more_than_slots},
    {"its message comes", test_its_message_comes},
};
THOLE_TEST_MAIN("worker_resumed", tests)
