/* A worker's reading of a cancel notice, and the publishing of a rejected message. */
#include "header_names.h"
#include "link.h"
#include "notice.h"
#include "rejected.h"
#include "thole_cunit.h"

/* ---- cancel notices ---- */

#define SUBJECT "thole.test.cancel.order.2"
#define P "0123456789abcdef"

struct row {
    const char *name, *subject, *activities, *proofs, *kind, *try_number;
    thole_status status;
    uint32_t want_try;
    size_t want_ids;
    bool early;
    const char *decided;
    uint64_t want_decided;
};

static thole_status parse(const struct row *row, struct arena *arena, struct cancel_notice *ret)
{
    natsMsg *message = NULL;
    CU_ASSERT_EQUAL_FATAL(nats_Open(-1), NATS_OK); /* once; its messages need it */
    CU_ASSERT_EQUAL_FATAL(natsMsg_Create(&message, row->subject, NULL, "late", 4), NATS_OK);
    if (row->activities != NULL)
        CU_ASSERT_EQUAL(natsMsgHeader_Set(message, HEADER_ACTIVITIES, row->activities), NATS_OK);
    if (row->proofs != NULL)
        CU_ASSERT_EQUAL(natsMsgHeader_Set(message, HEADER_PROOFS, row->proofs), NATS_OK);
    if (row->kind != NULL)
        CU_ASSERT_EQUAL(natsMsgHeader_Set(message, HEADER_KIND, row->kind), NATS_OK);
    if (row->try_number != NULL)
        CU_ASSERT_EQUAL(natsMsgHeader_Set(message, HEADER_TRY, row->try_number), NATS_OK);
    if (row->decided != NULL)
        CU_ASSERT_EQUAL(natsMsgHeader_Set(message, HEADER_DECIDED, row->decided), NATS_OK);
    if (row->early)
        CU_ASSERT_EQUAL(natsMsgHeader_Set(message, HEADER_EARLY, "1"), NATS_OK);
    struct delivery const delivery = link_delivery(message);
    thole_status const status = cancel_notice_parse(&delivery, arena, ret, NULL);
    natsMsg_Destroy(message);
    return status;
}

/* As long as a reason may be, and one byte more. */
static void test_the_longest_reason(void)
{
    static char reason[REASON_BYTES_MAX + 1];
    memset(reason, 'r', sizeof reason);
    CU_ASSERT_EQUAL_FATAL(nats_Open(-1), NATS_OK);
    for (size_t len = REASON_BYTES_MAX - 1; len <= sizeof reason; len++) {
        natsMsg *message = NULL;
        struct arena arena;
        struct cancel_notice notice = {.execution = 0};
        arena_init(&arena, 100000);
        CU_ASSERT_EQUAL_FATAL(natsMsg_Create(&message, SUBJECT, NULL, reason, (int)len), NATS_OK);
        CU_ASSERT_EQUAL(natsMsgHeader_Set(message, HEADER_ACTIVITIES, "7"), NATS_OK);
        CU_ASSERT_EQUAL(natsMsgHeader_Set(message, HEADER_PROOFS, P), NATS_OK);
        CU_ASSERT_EQUAL(natsMsgHeader_Set(message, HEADER_KIND, "TIMEOUT"), NATS_OK);
        struct delivery const delivery = link_delivery(message);
        thole_status const status = cancel_notice_parse(&delivery, &arena, &notice, NULL);
        CU_ASSERT_EQUAL(status, len <= REASON_BYTES_MAX ? THOLE_OK : THOLE_CORRUPT);
        CU_ASSERT_EQUAL(notice.reason.len, status == THOLE_OK ? len : 0);
        natsMsg_Destroy(message);
        arena_release(&arena);
    }
}

/* A notice for one try must not end the next one, whose number it does not have. */
static void test_what_a_cancel_notice_says(void)
{
    static const struct row rows[] = {
        {"any try", SUBJECT, "7", P, "TIMEOUT", NULL, THOLE_OK, 0, 1},
        {"one try", SUBJECT, "7", P, "TIMEOUT", "2", THOLE_OK, 2, 1},
        {"the largest try", SUBJECT, "7,8,9", P "," P "," P, "TIMEOUT", "2147483647", THOLE_OK, INT32_MAX, 3},
        {"early", SUBJECT, "7", P, "requested", NULL, THOLE_OK, 0, 1, true},
        {"decided then", SUBJECT, "7", P, "requested", NULL, THOLE_OK, 0, 1, true, "1795000000123",
         1795000000123},
        {"decided at the end of time", SUBJECT, "7", P, "requested", NULL, THOLE_OK, 0, 1, true,
         "9007199254740991", 9007199254740991},
        {"decided behind it", SUBJECT, "7", P, "requested", NULL, THOLE_OK, 0, 1, true, "9007199254740992",
         0},
        {"a larger activity", SUBJECT, "9007199254740992", P, "TIMEOUT", NULL, THOLE_CORRUPT, 0, 0},
        {"a larger execution", "thole.test.cancel.order.9007199254740992", "7", P, "TIMEOUT", NULL,
         THOLE_CORRUPT, 0, 0},
        {"decided at no time", SUBJECT, "7", P, "requested", NULL, THOLE_OK, 0, 1, true, "soon", 0},
        {"a larger one", SUBJECT, "7", P, "TIMEOUT", "2147483648", THOLE_CORRUPT, 0, 0},
        {"try 0", SUBJECT, "7", P, "TIMEOUT", "0", THOLE_CORRUPT, 0, 0},
        {"no number", SUBJECT, "7", P, "TIMEOUT", "2x", THOLE_CORRUPT, 0, 0},
        {"no activity", SUBJECT, NULL, P, "TIMEOUT", NULL, THOLE_CORRUPT, 0, 0},
        {"activity 0", SUBJECT, "0", P, "TIMEOUT", NULL, THOLE_CORRUPT, 0, 0},
        {"an empty activity", SUBJECT, "7,", P "," P, "TIMEOUT", NULL, THOLE_CORRUPT, 0, 0},
        {"no proofs", SUBJECT, "7", NULL, "TIMEOUT", NULL, THOLE_CORRUPT, 0, 0},
        {"a proof too few", SUBJECT, "7,8", P, "TIMEOUT", NULL, THOLE_CORRUPT, 0, 0},
        {"a proof too many", SUBJECT, "7", P "," P, "TIMEOUT", NULL, THOLE_CORRUPT, 0, 0},
        {"a short proof", SUBJECT, "7", "0123", "TIMEOUT", NULL, THOLE_CORRUPT, 0, 0},
        {"no digit", SUBJECT, "7", "0123456789abcdeg", "TIMEOUT", NULL, THOLE_CORRUPT, 0, 0},
        {"a capital", SUBJECT, "7", "0123456789ABCDEF", "TIMEOUT", NULL, THOLE_CORRUPT, 0, 0},
        {"no comma", SUBJECT, "7,8", P "0" P, "TIMEOUT", NULL, THOLE_CORRUPT, 0, 0},
        {"no kind", SUBJECT, "7", P, NULL, NULL, THOLE_CORRUPT, 0, 0},
        {"execution 0", "thole.test.cancel.order.0", "7", P, "TIMEOUT", NULL, THOLE_CORRUPT, 0, 0},
        {"another subject", "thole.test.event.order.2", "7", P, "TIMEOUT", NULL, THOLE_CORRUPT, 0, 0},
        {"a longer subject", SUBJECT ".1", "7", P, "TIMEOUT", NULL, THOLE_CORRUPT, 0, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena arena;
        struct cancel_notice notice = {.execution = 0};
        arena_init(&arena, 10000);
        thole_status const status = parse(&rows[i], &arena, &notice);
        CHECK_STR(rows[i].name, thole_status_name(status), thole_status_name(rows[i].status));
        CU_ASSERT_EQUAL(notice.try_number, rows[i].want_try);
        CU_ASSERT_EQUAL(notice.activity_ids_len, rows[i].want_ids);
        if (status == THOLE_OK) {
            CU_ASSERT_EQUAL(notice.execution, 2);
            CU_ASSERT_EQUAL(notice.early, rows[i].early);
            CU_ASSERT_EQUAL(notice.decided_ms, rows[i].want_decided);
            CU_ASSERT_EQUAL(notice.activity_ids[notice.activity_ids_len - 1], 6 + rows[i].want_ids);
            CU_ASSERT_EQUAL(notice.proofs[notice.activity_ids_len - 1], 0x0123456789abcdef);
            CU_ASSERT_TRUE(thole_slice_equal(notice.instance, THOLE_STR("order")));
            CU_ASSERT_TRUE(thole_slice_equal(notice.reason, THOLE_STR("late")));
        }
        arena_release(&arena);
    }
}

/* An arena of any size: all of the notice fits, or the error says that there is no room. */
static void test_no_room(void)
{
    static const struct row row = {"", SUBJECT, "7,8", P "," P, "TIMEOUT", "2", THOLE_OK, 2, 2};
    size_t refused = 0;
    thole_status status = THOLE_LIMIT;
    for (size_t limit = 0; status != THOLE_OK && limit < 2000; limit++, refused++) {
        struct arena arena;
        struct cancel_notice notice = {.execution = 0};
        arena_init(&arena, limit);
        status = parse(&row, &arena, &notice);
        CU_ASSERT_TRUE(status == THOLE_OK || status == THOLE_LIMIT);
        CU_ASSERT_EQUAL(notice.execution, status == THOLE_OK ? 2 : 0);
        if (status == THOLE_OK) {
            CU_ASSERT_TRUE(thole_slice_equal(notice.kind, THOLE_STR("TIMEOUT")));
            CU_ASSERT_TRUE(thole_slice_equal(notice.reason, THOLE_STR("late")));
        }
        arena_release(&arena);
    }
    CU_ASSERT_EQUAL(status, THOLE_OK);
    CU_ASSERT_TRUE(refused > 40);
}

/* ---- live events ---- */

static void test_what_an_event_notice_says(void)
{
    static const struct {
        const char *name, *subject, *execution, *request;
        thole_status status;
    } rows[] = {
        {"of a client", "thole.test.event.checkout.order.completed", "2", "a%2Eb", THOLE_OK},
        {"nobody's request", "thole.test.event.checkout.order.completed", "2", NULL, THOLE_OK},
        {"nobody knows which orchestration", "thole.test.event.-.order.completed", "2", "a%2Eb", THOLE_OK},
        {"a longer subject", "thole.test.event.checkout.order.completed.x", "2", NULL, THOLE_CORRUPT},
        {"a shorter one", "thole.test.event.checkout.order", "2", NULL, THOLE_CORRUPT},
        {"no such kind", "thole.test.event.checkout.order.done", "2", NULL, THOLE_CORRUPT},
        {"another subject", "thole.test.cancel.checkout.order.completed", "2", NULL, THOLE_CORRUPT},
        {"no id", "thole.test.event.checkout.%zz.completed", "2", NULL, THOLE_CORRUPT},
        {"no request id", "thole.test.event.checkout.order.completed", "2", "%zz", THOLE_CORRUPT},
        {"no execution", "thole.test.event.checkout.order.completed", NULL, NULL, THOLE_CORRUPT},
        {"no number", "thole.test.event.checkout.order.completed", "2x", NULL, THOLE_CORRUPT}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena arena;
        struct event_notice notice = {.execution = 0};
        natsMsg *message = NULL;
        arena_init(&arena, 10000);
        CU_ASSERT_EQUAL_FATAL(nats_Open(-1), NATS_OK);
        CU_ASSERT_EQUAL_FATAL(natsMsg_Create(&message, rows[i].subject, NULL, "late", 4), NATS_OK);
        if (rows[i].execution != NULL)
            CU_ASSERT_EQUAL(natsMsgHeader_Set(message, HEADER_EXECUTION, rows[i].execution), NATS_OK);
        if (rows[i].request != NULL)
            CU_ASSERT_EQUAL(natsMsgHeader_Set(message, HEADER_REQUEST, rows[i].request), NATS_OK);
        struct delivery const delivery = link_delivery(message);
        thole_status const status = event_notice_parse(&delivery, &arena, &notice, NULL);
        natsMsg_Destroy(message);
        CHECK_STR(rows[i].name, thole_status_name(status), thole_status_name(rows[i].status));
        if (status == THOLE_OK) {
            CU_ASSERT_EQUAL(notice.execution, 2);
            CHECK_STR(rows[i].name, notice.kind, "completed");
            CU_ASSERT_TRUE(thole_slice_equal(notice.instance, THOLE_STR("order")));
            CU_ASSERT_TRUE(
                thole_slice_equal(notice.orchestration, i < 2 ? THOLE_STR("checkout") : THOLE_STR("-")));
            CU_ASSERT_TRUE(thole_slice_equal(notice.request_id,
                                             rows[i].request == NULL ? THOLE_STR("") : THOLE_STR("a.b")));
            CU_ASSERT_TRUE(thole_slice_equal(notice.data, THOLE_STR("late")));
        }
        arena_release(&arena);
    }
}

/* ---- rejected messages ---- */

static char published_id[128];

thole_status __wrap_requests_publish(struct requests *requests, const struct publish *publish, uint64_t token,
                                     thole_error *reterr)
{
    (void)requests, (void)token, (void)reterr;
    CHECK_STR("subject", publish->subject, "thole.test.rejected.5");
    (void)snprintf(published_id, sizeof published_id, "%s",
                   publish->message_id == NULL ? "none" : publish->message_id);
    return THOLE_OK;
}

/* A restarted engine may find the message again: it is kept once. */
static void test_a_rejected_message_is_kept_once(void)
{
    struct rejected_item item = {.partition = 5,
                                 .sequence = 77,
                                 .stored_ns = 1600000000000000123,
                                 .code = THOLE_STR("MALFORMED"),
                                 .subject = THOLE_STR("thole.test.in.5.order")};
    CU_ASSERT_EQUAL(rejected_publish(NULL, "test", &item, 1, NULL), THOLE_OK);
    CHECK_STR("id", published_id, "5.77.1600000000000000123");
    item.stored_ns++; /* the inbox was made again */
    CU_ASSERT_EQUAL(rejected_publish(NULL, "test", &item, 1, NULL), THOLE_OK);
    CHECK_STR("id", published_id, "5.77.1600000000000000124");
}

static const struct thole_test tests[] = {
    {"what an event notice says", test_what_an_event_notice_says},
    {"the longest reason", test_the_longest_reason},
    {"what a cancel notice says", test_what_a_cancel_notice_says},
    {"no room", test_no_room},
    {"a rejected message is kept once", test_a_rejected_message_is_kept_once},
};
THOLE_TEST_MAIN("notices", tests)
