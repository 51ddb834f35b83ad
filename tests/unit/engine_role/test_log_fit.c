/* Whether the log of a partition is the one that was there, and when it is noted what it keeps. */
#include "reader.h"
#include "thole_cunit.h"
#include "topology.h"
#include "wrap_shard_world.h"
#include "wrap_submitted.h"
#include <string.h>

static struct {
    const char *id, *fails;
    struct log_there there;
    enum partition_state state;
    unsigned looks, inputs;
    bool no_inbox;
    uint64_t lost; /* counted */
} play;

static thole_status called(const char *name, thole_error *reterr)
{
    if (play.fails != NULL && strcmp(play.fails, name) == 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "%s fails", name);
    return THOLE_OK;
}

thole_status __wrap_topology_read_id(struct connection *connection, const char *ns, struct namespace_id *ret,
                                     thole_error *reterr)
{
    (void)connection, (void)ns;
    (void)snprintf(ret->text, sizeof ret->text, "%s", play.id);
    return called("identity", reterr);
}

thole_status __wrap_topology_look_log(struct connection *connection, const char *ns, uint32_t p,
                                      const struct log_known *known, struct log_there *ret,
                                      thole_error *reterr)
{
    (void)connection, (void)ns, (void)p, (void)known;
    play.looks++;
    *ret = play.there;
    return called("log", reterr);
}

thole_status __wrap_topology_look_inbox(struct connection *connection, const char *ns, uint32_t p,
                                        bool *ret_there, thole_error *reterr)
{
    (void)connection, (void)ns, (void)p;
    *ret_there = !play.no_inbox;
    return called("inbox", reterr);
}

void __wrap_shard_input(struct owned *owned, const struct partition_in *in)
{
    (void)owned, (void)in;
    play.inputs++;
}

enum partition_state __wrap_partition_state(const struct partition *machine)
{
    (void)machine;
    return play.state;
}

uint64_t __wrap_partition_epoch(const struct partition *machine)
{
    (void)machine;
    return 5;
}

/* Nothing is read of a log, or written to it, if it is not the one. */
static const struct {
    const char *id, *rows, *fails, *text;
    struct log_known known;
    struct log_there there;
    enum closed_cause cause;
    uint64_t lacks;
    const char *adopts;
} fits[] = {
    {"a", "a", NULL, NULL, {90, 1, 80, 2, 0}, {true, 90, 1, 2}, CLOSED_OTHER, 0, ""},
    {"a", "", NULL, NULL, {90, 1, 80, 2, 0}, {true, 90, 1, 2}, CLOSED_OTHER, 0, "a"},
    {"a", "a", NULL, NULL, {90, 1, 80, 2, 1700000000000}, {true, 85, 0, 2}, CLOSED_OTHER, 5, ""},
    {"a",
     "a",
     NULL,
     "is older than it was, or another one: record 80 had been",
     {90, 1, 80, 2, 0},
     {true, 79, 0, 0},
     CLOSED_HISTORY_OLDER,
     0,
     ""},
    {"a",
     "a",
     NULL,
     "is gone, and with it the histories",
     {90, 1, 80, 2, 0},
     {false, 0, 0, 0},
     CLOSED_HISTORY_LOST,
     0,
     ""},
    {"a",
     "b",
     NULL,
     "NATS has the namespace a, and Postgres the rows of b",
     {90, 1, 80, 2, 0},
     {true, 90, 1, 2},
     CLOSED_HISTORY_LOST,
     0,
     ""},
    {"",
     "a",
     NULL,
     "bucket CONFIG, are gone",
     {90, 1, 80, 2, 0},
     {true, 90, 1, 2},
     CLOSED_HISTORY_LOST,
     0,
     ""},
    {"a", "a", "identity", "identity fails", {90, 1, 80, 2, 0}, {true, 90, 1, 2}, CLOSED_OTHER, 0, ""},
    {"a", "a", "log", "log fails", {90, 1, 80, 2, 0}, {true, 90, 1, 2}, CLOSED_OTHER, 0, ""},
    {"a", "a", "inbox", "inbox fails", {90, 1, 80, 2, 0}, {true, 90, 1, 2}, CLOSED_OTHER, 0, ""},
    {"a",
     "a",
     NULL,
     "is gone, and with it starts, events and results that were acknowledged and not yet recorded",
     {90, 1, 80, 2, 0},
     {true, 90, 1, 2},
     CLOSED_INBOX_LOST,
     0,
     ""}};

static void test_fits(void)
{
    for (size_t i = 0; i < ARRAY_LEN(fits); i++) {
        play.id = fits[i].id, play.fails = fits[i].fails, play.there = fits[i].there;
        play.inputs = 0;
        play.no_inbox = fits[i].cause == CLOSED_INBOX_LOST;
        shard_world_begin(request_rules);
        struct request *const request = request_create(REQ_READ_TAIL, &world.shard, &world.owned);
        request->tail = (struct asked_tail){.known = fits[i].known};
        (void)snprintf(request->tail.rows.text, sizeof request->tail.rows.text, "%s", fits[i].rows);
        thole_status const status = log_fit_check(&world.engine, request);
        CU_ASSERT_EQUAL(status, fits[i].text == NULL    ? THOLE_OK
                                : fits[i].fails != NULL ? THOLE_UNAVAILABLE
                                                        : THOLE_CONFLICT);
        CU_ASSERT_EQUAL(request->cause, fits[i].cause);
        if (fits[i].text != NULL && strstr(request_error_text(request), fits[i].text) == NULL)
            CHECK_STR("text", request_error_text(request), fits[i].text);
        if (fits[i].cause != CLOSED_OTHER)
            CU_ASSERT_PTR_NOT_NULL(
                strstr(request_error_text(request),
                       "nothing was written. Restore NATS's data, or give up what is lost: "
                       "thole recover"));
        if (status == THOLE_OK)
            tail_answered(&world.owned, request);
        CU_ASSERT_EQUAL(play.inputs, status == THOLE_OK);
        CU_ASSERT_EQUAL(world.owned.lacks, fits[i].lacks);
        CHECK_STR("adopts", world.owned.adopts.text, fits[i].adopts);
        request_destroy(request);
    }
}

/* First what is known is read, then the log. */
static void test_order(void)
{
    shard_world_begin(request_rules);
    struct request *const request = request_create(REQ_KNOW_LOG, &world.shard, &world.owned);
    log_known(&world.owned, request);
    CU_ASSERT_EQUAL(request->kind, REQ_READ_TAIL);
    CU_ASSERT_TRUE(request->again);
    request_destroy(request);
}

/* While it is open, each five minutes, and half an hour longer than something was written. */
static void test_keeps(void)
{
    unsigned asked = 0;
    uint64_t now_ms;
    shard_world_begin(request_rules);
    play.state = PARTITION_OPEN;
    log_keep_run(&world.shard, &world.owned, 1000);
    CU_ASSERT_EQUAL(submitted.len, 0); /* was never open */
    log_keep_begin(&world.owned);
    now_ms = world.owned.keep_ms;
    log_keep_run(&world.shard, &world.owned, now_ms - 1);
    CU_ASSERT_EQUAL(submitted.len, 0);
    for (; world.owned.keep_ms != 0; now_ms = world.owned.keep_ms) {
        log_keep_run(&world.shard, &world.owned, now_ms);
        if (submitted.len == 0)
            break;
        CU_ASSERT_EQUAL(submitted_last(REQ_KEEP_LOG)->store.owner.epoch, 5);
        CU_ASSERT_EQUAL(world.owned.keep_ms - now_ms, LOG_KEPT_MS / 2);
        submitted_clear();
        asked++;
    }
    CU_ASSERT_EQUAL(asked, 6);
    CU_ASSERT_EQUAL(world.owned.keep_ms, 0);
    log_keep_soon(&world.owned);
    CU_ASSERT_NOT_EQUAL(world.owned.keep_ms, 0);
    play.state = PARTITION_CLOSED;
    log_keep_run(&world.shard, &world.owned, world.owned.keep_ms);
    CU_ASSERT_TRUE(submitted.len == 0 && world.owned.keep_ms == 0);
}

static const struct thole_test tests[] = {{"fits", test_fits}, {"order", test_order}, {"keeps", test_keeps}};
THOLE_TEST_MAIN("log_fit", tests)
