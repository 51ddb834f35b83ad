/* Activities that no worker of the queue knows: the row is marked, and the message acknowledged. */
#include "thole_cunit.h"
#include "worker_story.h"

/* Each world starts with: want 2. */
static const struct story stories[] = {
    {"what no worker of the queue knows is shelved, and the message acknowledged",
     {{"msg 1 a unserved;msg 2 b unserved", "want 2 | shelve 1,2"},
      {"msg 3 c unserved", "want 2"},   /* one statement at a time */
      {"msg 4 d;msg 5 e", "claim 4,5"}, /* they take no slots */
      {"shelved mx", "ack 1 unserved | ack 2 gone | shelve 3"},
      {"shelved m", "ack 3 unserved"},
      {"claimed mm", "run 4#9 | run 5#10"}}},
    {"its row is another's, or not what the message says, or of nobody knows what",
     {{"msg 1 a unserved;msg 2 b unserved", "want 2 | shelve 1,2"},
      {"shelved hf", "nak 1 held for 4000 | term 2 forged"},
      {"msg 1 a unserved;msg 2 b unserved", "want 2 | shelve 1,2"},
      {"shelved ns", "nak 1 unknown for 1000 | nak 2 unknown for 1000"}}},
    {"none is shelved while the database does not answer: they are handed back like unknown ones",
     {{"msg 1 a unserved", "want 2 | shelve 1"},
      {"shelved ?", "nak 1 unknown for 1000"},
      {"msg 1 a unserved", "want 2"},
      {"+49", ""},
      {"+51", "nak 1 unknown"},
      {"msg 1 a unserved", "want 2 | shelve 1"},
      {"shelved m", "ack 1 unserved"}}},
    {"two messages of one activity are shelved one after the other",
     {{"msg 1 a unserved;msg 2 a says=2 unserved", "want 2 | shelve 1"},
      {"shelved m", "ack 1 unserved | shelve 2"},
      {"shelved f", "term 2 forged"}}},
    {"a statement that lasts too long: what waits for the next one is handed back",
     {{"msg 1 a unserved", "want 2 | shelve 1"},
      {"msg 2 b unserved", "want 2"},
      {"+27999", ""},
      {"+1", "nak 2 unknown"},
      {"shelved m", "ack 1 unserved"}}},
    {"stop: what waits to be shelved is handed back, and the statement is waited for",
     {{"msg 1 a unserved", "want 2 | shelve 1"},
      {"msg 2 b unserved", "want 2"},
      {"stop 1000", "nak 2 handed_back | want 0"},
      {"msg 3 c unserved", "nak 3 handed_back"},
      {"shelved m", "ack 1 unserved | stopped"}}},
};

/* While some are on their way to the shelf no more are wanted than there is room for; further ones are
 * parked.
 */
static void test_the_shelf_has_room(void)
{
    struct worker_options options;
    worker_options_init(&options);
    struct worker_machine *const w = worker_create(&options);
    struct worker_out out;
    struct worker_row rows[WORKER_SHELVED_MAX];
    uint32_t wanted = 0;
    size_t len = 0, acked = 0;
    for (uint64_t id = 1; id <= WORKER_SHELVED_MAX + 1; id++) {
        struct worker_in const in = {.kind = WORKER_IN_DELIVERED,
                                     .id = id,
                                     .key = {THOLE_STR("i"), 1, id, 1},
                                     .unserved = true,
                                     .deliveries = 1};
        CU_ASSERT_EQUAL(worker_input(w, &in, 1000), THOLE_OK);
        CU_ASSERT_PTR_NULL(worker_check(w));
        wanted -= wanted > 0;
        while (worker_poll(w, &out)) {
            wanted = out.kind == WORKER_OUT_WANT ? out.count : wanted;
            len = out.kind == WORKER_OUT_SHELVE ? out.rows_len : len;
            if (out.kind == WORKER_OUT_SHELVE)
                rows[0] = out.rows[0];
        }
        CU_ASSERT_EQUAL(wanted, id >= WORKER_SHELVED_MAX       ? 0
                                : id > WORKER_SHELVED_MAX - 16 ? WORKER_SHELVED_MAX - id
                                                               : 16);
    }
    CU_ASSERT_EQUAL(len, 1);
    rows[0].state = WORKER_ROW_MINE;
    struct worker_in const shelved = {.kind = WORKER_IN_SHELVED, .rows = rows, .rows_len = 1};
    CU_ASSERT_EQUAL(worker_input(w, &shelved, 1000), THOLE_OK);
    while (worker_poll(w, &out)) {
        acked += out.kind == WORKER_OUT_ACK && out.end == WORKER_END_UNSERVED;
        len = out.kind == WORKER_OUT_SHELVE ? out.rows_len : len;
    }
    CU_ASSERT_EQUAL(acked, 1);
    CU_ASSERT_EQUAL(len, WORKER_SHELVED_MAX - 1);
    CU_ASSERT_EQUAL(worker_counters(w).shelved, 1);
    CU_ASSERT_EQUAL(worker_held(w), WORKER_SHELVED_MAX); /* with the one that is parked */
    worker_destroy(w);
}

static void test_shelf_stories(void)
{
    for (size_t i = 0; i < ARRAY_LEN(stories); i++)
        story_tell(&stories[i]);
}

static const struct thole_test tests[] = {
    {"stories", test_shelf_stories},
    {"the shelf has room", test_the_shelf_has_room},
};
THOLE_TEST_MAIN("worker_shelf", tests)
