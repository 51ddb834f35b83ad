/* Quick handlers in the worker machine: claimed, run and completed in one batch, or claimed like any other.
 */
#include "thole_cunit.h"
#include "worker_story.h"

/* Each world starts with: want 2. */
static const struct story stories[] = {
    {"claimed, run and completed in one batch",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"begun m", "run quick 1#1"},
      {"done 1", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ok", "ack 1 completed"}}},
    {"those that come meanwhile wait for the next batch",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"msg 2 b quick;msg 3 c quick", ""},
      {"begun m", "run quick 1#1"},
      {"done 1", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ok", "ack 1 completed | begin 2,3 quick quick | want 2"},
      {"begun mm", "run quick 2#1 | run quick 3#1"},
      {"done 2", ""},
      {"done 3", "publish 2,3"}}},
    {"beside a result that waits: the handler runs before anything is published",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"msg 2 b quick;done 1", "want 1 | begin 1,2 quick | want 2"},
      {"begun mm", "run quick 2#1"},
      {"done 2 failed", "publish 1,2"},
      {"published 1 ok;published 2 ok", "commit"},
      {"committed ok", "ack 1 completed | ack 2 completed"}}},
    {"somebody has claimed it, or it is gone: its claim says",
     {{"msg 1 a quick;msg 2 b quick", "begin 1,2 quick quick | want 2"},
      {"begun sm", "want 1 | claim 1 | run quick 2#1"},
      {"claimed x", "ack 1 gone | want 2"},
      {"done 2", "publish 2"}}},
    {"no answer: claimed first",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"begun ?", "want 1 | claim 1"},
      {"claimed m", "run 1#6"},
      {"done 1", "want 2 | begin 1"}}},
    {"delivered before: claimed first", {{"msg 1 a quick n=2", "claim 1"}}},
    {"a failure is a result as well",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"begun m", "run quick 1#1"},
      {"done 1 cancelled", "publish 1"}}},
    {"an answer that comes late runs nothing",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"+1000;begun m", "rollback | want 1 | claim 1"},
      {"claimed m", "run 1#6"}}},
    {"a handler that is slow: nothing is published, the result is kept",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"begun m", "run quick 1#1"},
      {"+1000;done 1", "rollback | begin 1"},
      {"begun m", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ok", "ack 1 completed"}}},
    {"the host stops in the midst: the others are claimed, the result of the first is kept",
     {{"msg 1 a quick;msg 2 b quick", "begin 1,2 quick quick | want 2"},
      {"begun mm", "run quick 1#1 | run quick 2#1"},
      {"done 1", ""},
      {"done 2 unrun", "rollback | want 1 | claim 2 | begin 1"},
      {"begun m", "publish 1"},
      {"claimed m", "run 2#7"}}},
    {"Postgres is slow: for a while they are claimed first, and results do not wait for them",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"+1000;begun m", "rollback | want 1 | claim 1"},
      {"claimed m", "run 1#6"},
      {"msg 2 b quick", "claim 2"},
      {"claimed m", "run 2#7"},
      {"+4000;done 1;done 2", "want 2 | begin 1,2"},
      {"+500;msg 3 c quick", "claim 3"},
      {"begun mm", "publish 1,2"},
      {"published 1 ok;published 2 ok", "commit"},
      {"+500;committed ok;msg 4 d quick", "ack 1 completed | ack 2 completed | begin 4 quick | want 1"}}},
    {"its result was not stored: kept as that of a claim",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"begun m", "run quick 1#1"},
      {"done 1", "publish 1"},
      {"published 1 ?", "rollback"},
      {"+10000", "wpi 1 | renew 1 | begin 1"},
      {"renewed m", ""},
      {"begun m", "publish 1"}}},
    {"the commit was not answered, and was made",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"begun m", "run quick 1#1"},
      {"done 1", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ?", ""},
      {"+50", "begin 1"},
      {"begun x", "ack 1 completed | rollback"}}},
    {"the commit was not answered, and another worker has it now",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"begun m", "run quick 1#1"},
      {"done 1", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ?", ""},
      {"+50", "begin 1"},
      {"begun s", "drop 1 stolen | rollback"}}},
    {"a push before it is begun: claimed first",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"msg 2 b quick", ""},
      {"push b", "claim 2"},
      {"claimed m", "want 2 | renew 2"},
      {"renewed x", "ack 2 cancelled"}}},
    {"a push while it is begun changes nothing: the row says",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"push a", ""},
      {"begun m", "run quick 1#1"},
      {"done 1", "publish 1"}}},
    {"the message comes again: adopted",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"msg 2 a quick", "same as 1 | want 2"},
      {"begun m", "run quick 1#1"}}},
    {"two messages that say different things: both claimed, one after the other",
     {{"msg 1 c quick", "begin 1 quick | want 2"},
      {"msg 2 a quick", ""},
      {"msg 3 a quick says=1", "claim 2"},
      {"claimed m", "run 2#7 | term 3 forged | want 1"}}},
    {"another one while it is begun waits",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"msg 2 a quick says=1", "nak 2 held for 1000 | want 2"},
      {"begun m", "run quick 1#1"},
      {"done 1", "publish 1"},
      {"msg 3 a says=1", "term 3 forged | want 2"}}},
    {"while claims fail none is tried",
     {{"msg 1 a", "claim 1"},
      {"claimed ?", "want 0"},
      {"msg 2 b quick", ""},
      {"+50", "claim 1,2"},
      {"claimed mm", "run 1#6 | run 2#7"}}},
    {"a stop hands back what waits and ends what is begun",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"msg 2 b quick", ""},
      {"stop 60000", "nak 2 handed_back | want 0"},
      {"begun m", "run quick 1#1"},
      {"done 1", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ok", "ack 1 completed | stopped"}}},
    {"a stop hands back what the batch could not claim",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"stop 60000", "want 0"},
      {"begun s", "nak 1 handed_back | rollback | stopped"}}},
    {"what waits too long is handed back",
     {{"msg 1 a quick", "begin 1 quick | want 2"},
      {"msg 2 b quick", ""},
      {"+28000", "nak 2 unclaimed | want 2"}}},
    {"a poison candidate waits until the batch has run its handlers",
     {{"msg 1 a", "claim 1"},
      {"msg 2 b quick", "begin 2 quick | want 1"},
      {"claimed u", "want 0"},
      {"begun m", "run quick 2#1"},
      {"done 2", "claim 1 isolated | publish 2"}}},
    {"beside a poison candidate none runs",
     {{"msg 1 a", "claim 1"},
      {"claimed u", "want 0 | claim 1 isolated"},
      {"claimed 3", "run 1#6"},
      {"msg 2 b quick", "nak 2 deferred"}}},
};

static void test_stories(void)
{
    for (size_t i = 0; i < ARRAY_LEN(stories); i++)
        story_tell(&stories[i]);
}

/* A batch keeps the loop for a moment only. */
static void test_at_most(void)
{
    struct worker_options options;
    struct worker_out out;
    size_t begun = 0;
    worker_options_init(&options);
    options.slots = 2 * WORKER_QUICK_MAX;
    struct worker_machine *const w = worker_create(&options);
    for (uint64_t i = 1; i <= options.slots; i++) {
        struct worker_in const in = {.kind = WORKER_IN_DELIVERED,
                                     .id = i,
                                     .key = {THOLE_STR("order-1"), 1, i, 1},
                                     .known = true,
                                     .quick = true,
                                     .deliveries = 1};
        CU_ASSERT_EQUAL(worker_input(w, &in, 1), THOLE_OK);
    }
    while (worker_poll(w, &out)) {
        CU_ASSERT_PTR_NULL(worker_check(w));
        CU_ASSERT_NOT_EQUAL(out.kind, WORKER_OUT_CLAIM);
        begun += out.kind == WORKER_OUT_COMPLETE_BEGIN ? out.rows_len : 0;
    }
    CU_ASSERT_EQUAL(begun, WORKER_QUICK_MAX);
    worker_destroy(w);
}

static const struct thole_test tests[] = {
    {"stories", test_stories},
    {"a batch runs so many at most", test_at_most},
};
THOLE_TEST_MAIN("worker_quick", tests)
