/* The worker machine and time: deadlines of tries, what is completed later, and since when an activity is
 * cancelled (see worker_story.h). */
#include "proofs.h"
#include "thole_cunit.h"
#include "worker_machine.h"
#include "worker_story.h"

static const struct story stories[] = {
    {"a result in time",
     {{"msg 1 a", "claim 1"},
      {"claimed t", "run 1#6"},
      {"+4999;done 1", "want 2 | begin 1"},
      {"+9000", "wpi 1"}}},
    {"the deadline passes: the token fires, and what it returns is a timeout",
     {{"msg 1 a", "claim 1"},
      {"claimed t", "run 1#6"},
      {"+4999", ""},
      {"+1", "fire 1 timeout timeout"},
      {"+5000", "wpi 1 | renew 1"}, /* keeps its lease while it has grace */
      {"renewed m", ""},
      {"done 1", "want 2 | begin 1"},
      {"begun m", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ok", "ack 1 completed"}}},
    {"grace over after the deadline: abandoned, and completed all the same",
     {{"msg 1 a", "claim 1"},
      {"claimed t", "run 1#6"},
      {"+5000", "fire 1 timeout timeout"},
      {"+5000", "wpi 1 | renew 1"},
      {"renewed m", ""},
      {"+4999", ""},
      {"+1", "abandon 1 | begin 1"},
      {"begun m;done 1", "publish 1"}, /* whatever it says now */
      {"slot", "want 2"},
      {"published 1 ok", "commit"},
      {"committed ok", "ack 1 completed"}}},
    {"the engine was faster: the row is missing, nothing is published",
     {{"msg 1 a", "claim 1"},
      {"claimed t", "run 1#6"},
      {"+5000", "fire 1 timeout timeout"},
      {"push a try=1", "renew 1"},
      {"renewed x", ""},
      {"done 1 cancelled", "ack 1 cancelled | want 2"}}},
    {"the engine was faster, and the handler ignores its token",
     {{"msg 1 a", "claim 1"},
      {"claimed t", "run 1#6"},
      {"+5000", "fire 1 timeout timeout"},
      {"push a", "renew 1"},
      {"renewed x", ""},
      {"+5000", "wpi 1"},
      {"+5000", "abandon 1 | ack 1 cancelled"}}},
    {"cancelled before the deadline: it is that",
     {{"msg 1 a", "claim 1"},
      {"claimed t", "run 1#6"},
      {"push a", "fire 1 push requested: too late | renew 1"},
      {"renewed x", ""},
      {"+5000", ""},
      {"done 1 cancelled", "ack 1 cancelled | want 2"}}},
    {"stolen after the deadline: nothing is sent",
     {{"msg 1 a", "claim 1"},
      {"claimed t", "run 1#6"},
      {"+5000", "fire 1 timeout timeout"},
      {"+5000", "wpi 1 | renew 1"},
      {"renewed s", "not lost a"},
      {"done 1", "drop 1 stolen | want 2"}}},
    {"claimed after the deadline: not run, and takes no slot",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"claimed et", "expired 1#6 | run 2#7 | want 1 | begin 1"},
      {"begun m", "publish 1"},
      {"published 1 ?", "rollback"},
      {"+50", "begin 1"},
      {"begun m", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ok", "ack 1 completed"}}},
    {"claimed after the deadline, which the engine has seen as well",
     {{"msg 1 a", "claim 1"},
      {"claimed e", "expired 1#6 | want 2 | begin 1"},
      {"begun x", "ack 1 refused | rollback"}}},
    {"pushed before the claim, which comes after the deadline: the row decides",
     {{"msg 1 a;push a", "claim 1"}, {"claimed e", "want 2 | renew 1"}, {"renewed x", "ack 1 cancelled"}}},
    {"the deadline passes between claim and start: not run, no token, the slot is free",
     {{"msg 1 a", "claim 1"},
      {"claimed t;+5000", "expired 1#6 | want 2 | begin 1"},
      {"begun m", "publish 1"}}},
    {"lease and deadline end together, as after a pause: nothing is sent",
     {{"msg 1 a", "claim 1"},
      {"claimed t", "run 1#6"},
      {"+28000", "fire 1 lease_lost lease_lost | not lost a"},
      {"done 1", "drop 1 lease_lost | want 2"}}},
    {"stop: a timeout is a result",
     {{"msg 1 a", "claim 1"},
      {"claimed t", "run 1#6"},
      {"stop 60000", "want 0"},
      {"+5000", "fire 1 timeout timeout"},
      {"done 1 failed", "begin 1"},
      {"begun m", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ok", "ack 1 completed | stopped"}}},
    {"stop: the grace after a timeout is cut short, and the next claim completes it",
     {{"msg 1 a", "claim 1"},
      {"claimed t", "run 1#6"},
      {"+5000", "fire 1 timeout timeout"},
      {"stop 0", "hurry 1 until 1007000 | want 0"},
      {"+2000", "abandon 1 | release 1"},
      {"released", "nak 1 handed_back | stopped"}}},
    {"stop: told to stop before the deadline: handed back, and the next claim completes it",
     {{"msg 1 a", "claim 1"},
      {"claimed t", "run 1#6"},
      {"+4000;stop 0", "fire 1 shutdown shutdown | want 0"},
      {"+1500;done 1 cancelled", "release 1"},
      {"released", "nak 1 handed_back | stopped"}}},
    {"stop: what is past its deadline is not completed here",
     {{"msg 1 a", "claim 1"},
      {"stop 5000", "want 0"},
      {"claimed e", "release 1"},
      {"released", "nak 1 handed_back | stopped"}}},

    {"a push for another try is not meant",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"push a try=2", ""},
      {"done 1", "want 2 | begin 1"}}},

    {"later: the row is left to others, then the message is done with",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"claimed mm", "run 1#6 | run 2#7"},
      {"done 1 later", "want 1 | leave 1"},
      {"done 2 later", "want 2"},
      {"left m", "ack 1 later | leave 2"},
      {"left m", "ack 2 later"},
      {"+60000", ""}}},
    {"later: completed before the row could be left",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"done 1 later", "want 2 | leave 1"},
      {"left x", "ack 1 later"}}},
    {"later: another claim holds the row",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"done 1 later", "want 2 | leave 1"},
      {"left s", "drop 1 stolen | not lost a"}}},
    {"later: unknown is tried again",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+9990;done 1 later", "want 2 | leave 1"},
      {"left ?", ""},
      {"+10", "wpi 1 | renew 1"},
      {"renewed m", ""},
      {"+40", "leave 1"},
      {"left m", "ack 1 later"}}},
    {"later: no row, and the database may have lost it: tried again",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"done 1 later", "want 2 | leave 1"},
      {"left n", ""},
      {"+50", "leave 1"},
      {"left x", "ack 1 later"}}},
    {"later: a renewal finds it completed before it is tried again",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+9999;done 1 later", "want 2 | leave 1"},
      {"left ?", ""},
      {"+1", "wpi 1 | renew 1"},
      {"renewed x", "ack 1 later"}}},
    {"later: cancelled meanwhile",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"push a", "fire 1 push requested: too late | renew 1"},
      {"renewed x", ""},
      {"done 1 later", "ack 1 cancelled | want 2"}}},
    {"later: after the deadline it is a timeout",
     {{"msg 1 a", "claim 1"},
      {"claimed t", "run 1#6"},
      {"+5000", "fire 1 timeout timeout"},
      {"done 1 later", "want 2 | begin 1"}}},
    {"stop: later is a result, and stopping waits for it",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"stop 0", "fire 1 shutdown shutdown | want 0"},
      {"done 1 later", "leave 1"},
      {"left m", "ack 1 later | stopped"}}},
    {"stop: what waits to be left is handed back",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"claimed mm", "run 1#6 | run 2#7"},
      {"done 1 later", "want 1 | leave 1"},
      {"done 2 later;stop 0;+2000", "want 0 | release 2"},
      {"released", "nak 2 handed_back"},
      {"left m", "ack 1 later | stopped"}}},
    {"stop: a row that cannot be left in time is handed back",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"stop 0;done 1 later", "want 0 | leave 1"},
      {"+1990;left ?", ""},
      {"+10", "release 1"},
      {"released", "nak 1 handed_back | stopped"}}},
};

static void test_stories(void)
{
    for (size_t i = 0; i < ARRAY_LEN(stories); i++)
        story_tell(&stories[i]);
}

/* For leases short and long: the margin before the end, the renewals, what is waited after an unknown answer
 * and before a first, a third and a hundredth repetition. */
static void what_a_lease_says(void)
{
    static const struct {
        uint64_t lease_ms, renew_ms, margin_ms, every_ms, ask_ms, backoff_ms[3];
    } rows[] = {
        {1000, 0, 200, 333, 67, {25, 100, 125}},        {3000, 700, 600, 700, 201, {25, 100, 375}},
        {9000, 0, 1800, 3000, 601, {25, 100, 1125}},    {10000, 0, 2000, 3333, 667, {25, 100, 1250}},
        {30000, 0, 2000, 10000, 1000, {25, 100, 2000}}, {600000, 0, 2000, 200000, 1000, {25, 100, 2000}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct worker_options options;
        worker_options_init(&options);
        options.lease_ms = rows[i].lease_ms;
        options.renew_ms = rows[i].renew_ms;
        struct worker_machine *w = worker_create(&options);
        CU_ASSERT_PTR_NOT_NULL_FATAL(w);
        CU_ASSERT_EQUAL(worker_margin_ms(w), rows[i].margin_ms);
        CU_ASSERT_EQUAL(worker_renew_every_ms(w), rows[i].every_ms);
        CU_ASSERT_EQUAL(worker_ask_again_ms(w), rows[i].ask_ms);
        CU_ASSERT_EQUAL(worker_backoff_ms(w, 0), rows[i].backoff_ms[0]);
        CU_ASSERT_EQUAL(worker_backoff_ms(w, 2), rows[i].backoff_ms[1]);
        CU_ASSERT_EQUAL(worker_backoff_ms(w, 99), rows[i].backoff_ms[2]);
        worker_destroy(w);
    }
}

/* The next output of a kind; others are dropped. */
static struct worker_out next_of(struct worker_machine *w, enum worker_out_kind kind)
{
    struct worker_out out = {.kind = WORKER_OUT_STOPPED};
    while (out.kind != kind && worker_poll(w, &out))
        ;
    CU_ASSERT_EQUAL_FATAL(out.kind, kind);
    return out;
}

/* An answer with the only row in that state. */
static void answer(struct worker_machine *w, enum worker_in_kind kind, enum worker_row_state state,
                   uint64_t now_ms)
{
    struct worker_row const row = {.id = 1, .key = story_key('a'), .attempt = 1, .state = state};
    struct worker_in const in = {.kind = kind, .rows = &row, .rows_len = 1};
    CU_ASSERT_EQUAL(worker_input(w, &in, now_ms), THOLE_OK);
}

/* Claimed at 100 ms, it runs. */
static struct worker_machine *one_runs(void)
{
    struct worker_options options;
    worker_options_init(&options);
    struct worker_machine *const w = worker_create(&options);
    struct worker_in const in = {.kind = WORKER_IN_DELIVERED, .id = 1, .key = story_key('a'), .known = true};
    CU_ASSERT_EQUAL(worker_input(w, &in, 100), THOLE_OK);
    (void)next_of(w, WORKER_OUT_CLAIM);
    answer(w, WORKER_IN_CLAIMED, WORKER_ROW_MINE, 103);
    (void)next_of(w, WORKER_OUT_RUN);
    return w;
}

/* The time of a cancellation, as each way to learn of it reports it. */
static void test_since_when(void)
{
    struct worker_machine *w = one_runs();
    uint64_t id = story_key('a').activity_id, proof;
    struct worker_in in = {.kind = WORKER_IN_PUSHED,
                           .key = story_key('a'),
                           .activity_ids = &id,
                           .activity_ids_len = 1,
                           .since_ms = 180};
    in = test_with_proofs(in, THOLE_STR(""), &proof);
    CU_ASSERT_EQUAL(worker_input(w, &in, 200), THOLE_OK);
    in.since_ms = 190; /* the second one tells nothing new */
    CU_ASSERT_EQUAL(worker_input(w, &in, 201), THOLE_OK);
    CU_ASSERT_EQUAL(next_of(w, WORKER_OUT_FIRE).since_ms, 180);
    worker_destroy(w);

    w = one_runs();
    worker_advance(w, worker_next_deadline_ms(w));
    uint64_t now_ms = 100;
    for (int i = 0; i < 2; i++) {
        struct worker_out out = {.kind = WORKER_OUT_STOPPED};
        for (now_ms++; out.kind != WORKER_OUT_RENEW; now_ms++) {
            worker_advance(w, now_ms);
            while (worker_poll(w, &out) && out.kind != WORKER_OUT_RENEW)
                ;
        }
        if (i == 0)
            answer(w, WORKER_IN_RENEWED, WORKER_ROW_MINE, now_ms);
    }
    answer(w, WORKER_IN_RENEWED, WORKER_ROW_MISSING, now_ms);
    struct worker_out const fire = next_of(w, WORKER_OUT_FIRE);
    CU_ASSERT_EQUAL(fire.path, WORKER_PATH_RENEWAL);
    CU_ASSERT_TRUE(fire.since_ms > 1000 && fire.since_ms < now_ms - 1000); /* the renewal between */
    worker_destroy(w);

    w = one_runs();
    in = (struct worker_in){.kind = WORKER_IN_FINISHED, .id = 1, .status = THOLE_OK};
    CU_ASSERT_EQUAL(worker_input(w, &in, 300), THOLE_OK);
    (void)next_of(w, WORKER_OUT_COMPLETE_BEGIN);
    answer(w, WORKER_IN_BEGUN, WORKER_ROW_MISSING, 302);
    struct worker_out const end = next_of(w, WORKER_OUT_ACK);
    CU_ASSERT_EQUAL(end.end, WORKER_END_REFUSED);
    CU_ASSERT_EQUAL(end.since_ms, 100); /* the claim */
    worker_destroy(w);
}

static const struct thole_test tests[] = {
    {"stories", test_stories}, {"what a lease says", what_a_lease_says}, {"since when", test_since_when}};
THOLE_TEST_MAIN("worker_time", tests)
