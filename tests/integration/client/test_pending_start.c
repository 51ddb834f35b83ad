/*
 * Starts that are stored and that no engine has taken: which of those that stand in the inbox wait for their
 * first turn. The script is the engine, and says what is taken.
 */
#include "client_fixture.h"
#include "message.h"
#include "subject.h"
#include <string.h>

static const thole_slice nothing = {NULL, 0};
static uint64_t written; /* records of epoch 1 */

/* To the inbox, as any client may publish it: @p by "": nobody is vouched for. */
static void publish_start(const char *id, const char *route, const char *request, const char *by)
{
    struct message const message = {.kind = MESSAGE_START,
                                    .instance = thole_slice_from(id),
                                    .orchestration = THOLE_STR("order"),
                                    .data = THOLE_STR("17"),
                                    .event_name =
                                        strncmp(route, "start_event", 11) == 0 ? THOLE_STR("paid") : nothing,
                                    .request_id = thole_slice_from(request)};
    struct buf subject, body, answer;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, MESSAGE_BYTES_MAX);
    buf_init(&answer, 4096);
    CHECK_STATUS(message_encode(&message, &body), THOLE_OK);
    CHECK_STATUS(
        subject_inbox(&subject, "default", 0, thole_slice_from(route), message.instance, &fixture.err),
        THOLE_OK);
    CHECK_STATUS(subject_add_actor(&subject, thole_slice_from(by), &fixture.err), THOLE_OK);
    CHECK_STATUS(connection_request(fixture.script.connection, buf_cstr(&subject), buf_bytes(&body), &answer,
                                    &fixture.err),
                 THOLE_OK);
    buf_release(&subject);
    buf_release(&body);
    buf_release(&answer);
}

static uint64_t inbox_last(void)
{
    struct stream_bounds bounds = {0};
    CHECK_STATUS(stream_bounds(fixture.script.connection, "THOLE_default_IN_0", &bounds, &fixture.err),
                 THOLE_OK);
    return bounds.last;
}

static void take_all(void)
{
    CU_ASSERT_TRUE(engine_script_position(&fixture.script, 1, ++written, inbox_last()));
}

struct seen {
    char text[256];
};

static thole_status see(void *arg, const thole_inspection *inspection)
{
    struct seen *const seen = arg;
    (void)snprintf(seen->text, sizeof seen->text, "%s %.*s <%.*s> %u ahead",
                   thole_instance_status_name(inspection->status), THOLE_FMT(inspection->orchestration),
                   THOLE_FMT(inspection->input), (unsigned)inspection->ahead);
    CU_ASSERT(inspection->status != THOLE_INSTANCE_PENDING || inspection->time_ms > 0);
    return THOLE_OK;
}

static const char *inspected(const char *id)
{
    static struct seen seen;
    thole_status const status =
        thole_client_inspect(fixture.client, thole_slice_from(id), see, &seen, &fixture.err);
    return status == THOLE_OK ? seen.text : thole_status_name(status);
}

static void test_routes(void)
{
    static const struct {
        const char *id, *route, *by, *want;
    } rows[] = {
        {"plain", "start.order", "", "Pending order <17> 0 ahead"},
        {"vouched", "start.order", "alice", "Pending order <17> 1 ahead"},
        {"with an event", "start_event.order~paid", "", "Pending order <17> 2 ahead"},
        {"both", "start_event.order~paid", "a.b", "Pending order <17> 3 ahead"},
        {"a%*>.b", "start.order", "", "Pending order <17> 4 ahead"},
    };
    take_all();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        fixture_check(rows[i].id, inspected(rows[i].id), "NOT_FOUND");
        publish_start(rows[i].id, rows[i].route, "r", rows[i].by);
        fixture_check(rows[i].id, inspected(rows[i].id), rows[i].want);
    }
}

/* One that was taken stands in the inbox until it is purged. */
static void test_taken(void)
{
    publish_start("taken", "start.order", "r-1", "");
    fixture_check("waits", fixture_wait("taken", 0), "TIMEOUT");
    fixture_check("says so", strstr(fixture.err.text, "no engine has taken it yet") != NULL ? "yes" : "no",
                  "yes");
    take_all();
    fixture_check("was refused", fixture_wait("taken", 0), "NOT_FOUND");
    fixture_check("inspected", inspected("taken"), "NOT_FOUND");
    CHECK_STATUS(thole_client_cancel(fixture.client, THOLE_STR("taken"), nothing, &fixture.err),
                 THOLE_NOT_FOUND);
    publish_start("taken", "start.order", "r-2", "");
    fixture_check("another one", inspected("taken"), "Pending order <17> 0 ahead");
    CHECK_STATUS(thole_client_cancel(fixture.client, THOLE_STR("taken"), nothing, &fixture.err), THOLE_OK);
}

/* A start that has begun an instance begins none again when that is deleted, wherever the start is. */
static void test_deleted(void)
{
    struct deletion const deletion = {
        .instance = THOLE_STR("deleted"), .execution = 1, .started_by = THOLE_STR("r-1")};
    publish_start("deleted", "start.order", "r-1", "");
    CU_ASSERT_TRUE(fixture_started(++written, "deleted", "r-1"));
    fixture_check("runs", fixture_wait("deleted", 0), "TIMEOUT");
    CU_ASSERT_TRUE(engine_script_deleted(&fixture.script, 1, ++written, &deletion));
    fixture_check("the same start", inspected("deleted"), "NOT_FOUND");
    publish_start("deleted", "start.order", "r-1", "");
    fixture_check("its repetition", inspected("deleted"), "NOT_FOUND");
    publish_start("deleted", "start.order", "r-2", "");
    CU_ASSERT_TRUE(engine_script_position(&fixture.script, 1, ++written, inbox_last() - 1));
    fixture_check("another start", inspected("deleted"), "Pending order <17> 0 ahead");
}

/* Of two starts of an id the first one counts. */
static void test_start_twice(void)
{
    bool accepted = true;
    thole_start_options const again = {.size = sizeof again, .request_id = THOLE_STR("r-1")};
    publish_start("twice", "start.order", "r-1", "");
    CHECK_STATUS(thole_client_start(fixture.client, THOLE_STR("twice"), THOLE_STR("order"), nothing,
                                    &accepted, &fixture.err),
                 THOLE_CONFLICT);
    CHECK_STATUS(thole_client_start_with(fixture.client, THOLE_STR("twice"), THOLE_STR("order"),
                                         THOLE_STR("17"), &again, &accepted, &fixture.err),
                 THOLE_OK);
    CU_ASSERT_FALSE(accepted);
    thole_outcome outcome;
    CHECK_STATUS(thole_client_run(fixture.client, THOLE_STR("twice"), THOLE_STR("order"), nothing, 300,
                                  &outcome, &fixture.err),
                 THOLE_CONFLICT);
    fixture_check("which",
                  strstr(fixture.err.text, "waits for an engine and comes before this one") != NULL
                      ? "yes"
                      : fixture.err.text,
                  "yes");
}

/* The inbox was made again: its sequences begin at 1, below the position. */
static void test_inbox_again(void)
{
    take_all();
    struct position const position = {.floor = 1000, .seen = 1000, .seen_ns = 1};
    struct record const record = {.kind = RECORD_POSITION, .epoch = 1, .n = ++written, .position = position};
    struct buf body, answer;
    buf_init(&body, RECORD_BYTES_MAX);
    buf_init(&answer, 4096);
    CHECK_STATUS(record_encode(&record, &body), THOLE_OK);
    CHECK_STATUS(connection_request(fixture.script.connection, "thole.default.ctl.0.position",
                                    buf_bytes(&body), &answer, &fixture.err),
                 THOLE_OK);
    buf_release(&body);
    buf_release(&answer);
    publish_start("anew", "start.order", "r", "");
    fixture_check("later than what was read", strncmp(inspected("anew"), "Pending", 7) == 0 ? "yes" : "no",
                  "yes");
}

/* A deletion that waits after the first start makes room for another one: whether that begins is not
 * known. */
static void test_start_after_deletion(void)
{
    thole_delete_options const force = {.size = sizeof force, .force = true};
    bool accepted = true;
    publish_start("again", "start.order", "r-1", "");
    CHECK_STATUS(thole_client_delete(fixture.client, THOLE_STR("again"), &force, &accepted, &fixture.err),
                 THOLE_OK);
    CU_ASSERT_FALSE(accepted);
    accepted = true;
    CHECK_STATUS(thole_client_start(fixture.client, THOLE_STR("again"), THOLE_STR("order"), nothing,
                                    &accepted, &fixture.err),
                 THOLE_OK);
    CU_ASSERT_FALSE(accepted);
    publish_start("once", "start.order", "r-1", "");
    CHECK_STATUS(thole_client_start(fixture.client, THOLE_STR("once"), THOLE_STR("order"), nothing, &accepted,
                                    &fixture.err),
                 THOLE_CONFLICT);
    fixture_check("what it says", strstr(fixture.err.text, "nothing was changed") == NULL ? "yes" : "no",
                  "yes");
}

/* Another content under the same request id is another request. */
static void test_other_under_its_request(void)
{
    bool accepted = true;
    thole_start_options const again = {.size = sizeof again, .request_id = THOLE_STR("r-1")};
    publish_start("other", "start.order", "r-1", "");
    CHECK_STATUS(thole_client_start_with(fixture.client, THOLE_STR("other"), THOLE_STR("order"),
                                         THOLE_STR("18"), &again, &accepted, &fixture.err),
                 THOLE_CONFLICT);
    CHECK_STATUS(thole_client_start_with(fixture.client, THOLE_STR("other"), THOLE_STR("bill"),
                                         THOLE_STR("17"), &again, &accepted, &fixture.err),
                 THOLE_CONFLICT);
    CU_ASSERT_PTR_NOT_NULL(strstr(fixture.err.text, "request id \"r-1\""));
}

/* No engine answers a signal with start of an instance that has ended: it is refused as a signal is. */
static void test_signal_with_start_of_the_ended(void)
{
    struct event const end = {.kind = EVENT_COMPLETED, .id = 2};
    thole_start_options const event = {.size = sizeof event, .event = THOLE_STR("go")};
    bool accepted = true;
    CU_ASSERT_TRUE(fixture_started(++written, "over", "r-1"));
    CU_ASSERT_TRUE(fixture_write(1, ++written, "over", 2, &end));
    uint64_t const before = inbox_last();
    CHECK_STATUS(thole_client_start_with(fixture.client, THOLE_STR("over"), THOLE_STR("order"), nothing,
                                         &event, &accepted, &fixture.err),
                 THOLE_CONFLICT);
    CU_ASSERT_EQUAL(inbox_last(), before);
    CHECK_STATUS(thole_client_signal(fixture.client, THOLE_STR("over"), THOLE_STR("go"), nothing, nothing,
                                     NULL, &fixture.err),
                 THOLE_CONFLICT);
}

enum asking { ASK_SIGNAL, ASK_CANCEL, ASK_TERMINATE, ASK_START };

static thole_status ask(enum asking what, const char *request, const char *with)
{
    thole_slice const id = THOLE_STR("open"), data = thole_slice_from(with);
    thole_end_options const end = {
        .size = sizeof end, .reason = data, .request_id = thole_slice_from(request)};
    thole_start_options const start = {.size = sizeof start,
                                       .event = THOLE_STR("go"),
                                       .event_data = data,
                                       .request_id = thole_slice_from(request)};
    switch (what) {
    case ASK_SIGNAL:
        return thole_client_signal(fixture.client, id, THOLE_STR("go"), data, thole_slice_from(request), NULL,
                                   &fixture.err);
    case ASK_CANCEL: return thole_client_cancel_with(fixture.client, id, &end, &fixture.err);
    case ASK_TERMINATE: return thole_client_terminate_with(fixture.client, id, &end, &fixture.err);
    case ASK_START: break;
    }
    return thole_client_start_with(fixture.client, id, THOLE_STR("order"), nothing, &start, NULL,
                                   &fixture.err);
}

/* Of an instance that is open no record has the first one: it is found where the inbox has it. */
static void test_other_of_the_open(void)
{
    static const struct {
        enum asking what;
        const char *says; /* the request sent before */
    } rows[] = {{ASK_SIGNAL, "(event go with \"first\")"},
                {ASK_CANCEL, "(the reason \"first\")"},
                {ASK_TERMINATE, "(the reason \"first\")"},
                {ASK_START, "(start of order and event go with \"first\")"}};
    CU_ASSERT_TRUE(fixture_started(++written, "open", "r-0"));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char request[16];
        (void)snprintf(request, sizeof request, "u-%zu", i);
        uint64_t const before = inbox_last();
        CHECK_STATUS(ask(rows[i].what, request, "first"), THOLE_OK);
        CU_ASSERT_EQUAL(inbox_last(), before + 1);
        CHECK_STATUS(ask(rows[i].what, request, "second"), THOLE_CONFLICT);
        CU_ASSERT_EQUAL(inbox_last(), before + 1);
        fixture_check(rows[i].says, strstr(fixture.err.text, rows[i].says) != NULL ? "yes" : fixture.err.text,
                      "yes");
        CHECK_STATUS(ask(rows[i].what, request, "first"), THOLE_OK); /* and may be stored once more */
    }
}

static const struct thole_test tests[] = {
    {"routes", test_routes},
    {"taken", test_taken},
    {"deleted", test_deleted},
    {"start twice", test_start_twice},
    {"start after a deletion", test_start_after_deletion},
    {"another under its request", test_other_under_its_request},
    {"another of the open", test_other_of_the_open},
    {"the ended", test_signal_with_start_of_the_ended},
    {"inbox again", test_inbox_again},
};

int main(void)
{
    return fixture_run("pending_start", tests, ARRAY_LEN(tests));
}
