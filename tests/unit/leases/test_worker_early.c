/* The worker machine and early pushes, which come before the row is deleted (see worker_story.h). */
#include "thole_cunit.h"
#include "worker_story.h"

static const struct story stories[] = {
    {"fires at once, the row is asked when it is deleted",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"push a early", "fire 1 push requested: too late"},
      {"push a early", ""},
      {"push a kind=ended", "renew 1"},
      {"renewed x", ""},
      {"done 1", "ack 1 cancelled | want 2"}}},
    {"the handler is faster than the deletion of the row",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"push a early", "fire 1 push requested: too late"},
      {"done 1 cancelled", "want 2"},
      {"push a early", ""},
      {"push a", "renew 1"},
      {"renewed x", "ack 1 cancelled"}}},
    {"the other one is lost, the next renewal confirms",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"push a early", "fire 1 push requested: too late"},
      {"done 1 cancelled", "want 2"},
      {"+9999", ""},
      {"+1", "wpi 1 | renew 1"},
      {"renewed x", "ack 1 cancelled"}}},
    {"the row is still there at the next renewal, so the message comes back",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"push a early", "fire 1 push requested: too late"},
      {"done 1", "want 2"},
      {"+10000", "wpi 1 | renew 1"},
      {"renewed m", "drop 1 cancelled | not lost a"}}},
    {"an answer that was asked for before it confirms nothing",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+10000", "wpi 1 | renew 1"},
      {"push a early", "fire 1 push requested: too late"},
      {"renewed m", ""},
      {"push a", "renew 1"},
      {"renewed x", ""},
      {"done 1", "ack 1 cancelled | want 2"}}},
    {"before the claim: the row says whether it runs",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"push ab early;claimed mx", "run 1#6 | ack 2 gone | want 1"},
      {"push a", "fire 1 push requested: too late | renew 1"}}},
    {"between claim and start: not run",
     {{"msg 1 a", "claim 1"}, {"claimed m;push a early", "want 2"}, {"push a", "renew 1"}}},
    {"after the handler has returned: its completion is told by the row",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"done 1;push a early", "want 2 | begin 1"},
      {"begun x", "ack 1 refused | rollback"}}}};

static void test_stories(void)
{
    for (size_t i = 0; i < ARRAY_LEN(stories); i++)
        story_tell(&stories[i]);
}

static const struct thole_test tests[] = {{"stories", test_stories}};
THOLE_TEST_MAIN("worker_early", tests)
