/* Kind and name of a message's subject: each message, each sender, and what is refused. */
#include "message_route.h"
#include "thole_cunit.h"

#define I .instance = {(const uint8_t *)"i", 1}
#define TEXT(literal)                                                                                        \
    {                                                                                                        \
        (const uint8_t *)("" literal), sizeof(literal) - 1                                                   \
    }

static const struct {
    struct message message;
    const char *client, *worker, *engine;
} rows[] = {
    {{.kind = MESSAGE_START, I, .orchestration = TEXT("ship")}, "start.ship", "start.ship", "engine.start"},
    {{.kind = MESSAGE_START, I, .orchestration = TEXT("ship"), .event_name = TEXT("go")},
     "start_event.ship~go",
     "start_event.ship~go",
     "engine.start"},
    {{.kind = MESSAGE_EVENT, I, .event_name = TEXT("go"), .request_id = TEXT("r<")},
     "event.go",
     "event.go",
     "engine.event"},
    {{.kind = MESSAGE_ACTIVITY_RESULT, I}, "result.outside", "result.worker", "engine.result"},
    {{.kind = MESSAGE_CANCEL, I}, "control.cancel", "control.cancel", "engine.cancel"},
    {{.kind = MESSAGE_TERMINATE, I}, "control.terminate", "control.terminate", "engine.terminate"},
    {{.kind = MESSAGE_PAUSE, I}, "control.pause", "control.pause", "engine.pause"},
    {{.kind = MESSAGE_RESUME, I}, "control.resume", "control.resume", "engine.resume"},
    {{.kind = MESSAGE_DELETE, I}, "control.delete", "control.delete", "engine.delete"},
    {{.kind = MESSAGE_DELETE, I, .force = true},
     "control.force_delete",
     "control.force_delete",
     "engine.force_delete"},
    {{.kind = MESSAGE_RELEASE, I}, "control.release", "control.release", "engine.release"},
    {{.kind = MESSAGE_RELEASE, I, .timer = true}, "control.fire", "control.fire", "engine.fire"},
    {{.kind = MESSAGE_PRUNE, I}, "control.prune", "control.prune", "engine.prune"},
    {{.kind = MESSAGE_RETRY, I}, "control.retry", "control.retry", "engine.retry"},
    /* sent by workers only */
    {{.kind = MESSAGE_ACTIVITY_RESULT, I, .source.place.attempt = 1},
     "result.worker",
     "result.worker",
     "engine.result"},
    {{.kind = MESSAGE_ACTIVITY_RESULT, I, .source.place.worker = TEXT("w")},
     "result.worker",
     "result.worker",
     "engine.result"},
    {{.kind = MESSAGE_ACTIVITY_RESULT, I, .source.place.host = TEXT("h")},
     "result.worker",
     "result.worker",
     "engine.result"},
    {{.kind = MESSAGE_ACTIVITY_RESULT, I, .source.place.ended_ms = 1},
     "result.worker",
     "result.worker",
     "engine.result"},
    {{.kind = MESSAGE_ACTIVITY_RESULT, I, .lost = 1}, "result.worker", "result.worker", "engine.result"},
    /* sent by engines only */
    {{.kind = MESSAGE_CHILD_RESULT, I}, "engine.child_result", "engine.child_result", "engine.child_result"},
    {{.kind = MESSAGE_START, I, .orchestration = TEXT("ship"), .parent = {.instance = TEXT("p")}},
     "engine.start",
     "engine.start",
     "engine.start"},
    {{.kind = MESSAGE_EVENT, I, .event_name = TEXT("go"), .request_id = TEXT("<1.2.p")},
     "engine.event",
     "engine.event",
     "engine.event"},
    {{.kind = MESSAGE_CANCEL, I, .request_id = TEXT("<")}, "engine.cancel", "engine.cancel", "engine.cancel"},
};

static void test_each_message(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_STR(rows[i].client, message_route(&rows[i].message, SENDER_CLIENT).text, rows[i].client);
        CHECK_STR(rows[i].client, message_route(&rows[i].message, SENDER_WORKER).text, rows[i].worker);
        CHECK_STR(rows[i].client, message_route(&rows[i].message, SENDER_ENGINE).text, rows[i].engine);
    }
}

/* Of all routes that there are a message is taken under its own, and under an engine's. */
static void test_its_own_alone(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t j = 0; j < ARRAY_LEN(rows); j++) {
            const char *const routes[] = {rows[j].client, rows[j].worker, rows[j].engine};
            for (size_t k = 0; k < ARRAY_LEN(routes); k++) {
                thole_slice const route = thole_slice_from(routes[k]);
                bool const result = rows[i].message.kind == MESSAGE_ACTIVITY_RESULT;
                bool const own = strcmp(routes[k], rows[i].client) == 0 ||
                                 strcmp(routes[k], rows[i].engine) == 0 ||
                                 (result && strcmp(routes[k], "result.worker") == 0);
                thole_error err = {0};
                CU_ASSERT_EQUAL(message_route_check(&rows[i].message, route, &err),
                                own ? THOLE_OK : THOLE_INVALID);
                CU_ASSERT_EQUAL(err.text[0] != '\0', !own);
            }
        }
}

static void test_what_is_no_route(void)
{
    static const char *const bad[] = {"",          "event",  "event.",  "event.go.", "event.g",
                                      "event.goo", ".go",    "engine.", "engine",    "engine.start",
                                      "Event.go",  "result", "event go"};
    struct message const event = {.kind = MESSAGE_EVENT, I, .event_name = TEXT("go")};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(message_route_check(&event, thole_slice_from(bad[i]), NULL), THOLE_INVALID);
    CU_ASSERT_EQUAL(message_route_check(&event, (thole_slice){NULL, 0}, NULL), THOLE_INVALID);
    CU_ASSERT_EQUAL(message_route_sender((thole_slice){NULL, 0}), SENDER_CLIENT);
    CU_ASSERT_EQUAL(message_route_sender(THOLE_STR("engine.")), SENDER_CLIENT);
    CU_ASSERT_EQUAL(message_route_sender(THOLE_STR("engine.event")), SENDER_ENGINE);
    CU_ASSERT_EQUAL(message_route_sender(THOLE_STR("result.worker")), SENDER_WORKER);
    CU_ASSERT_EQUAL(message_route_sender(THOLE_STR("result.workers")), SENDER_CLIENT);
}

static void test_the_longest_names(void)
{
    char name[THOLE_NAME_BYTES_MAX], want[MESSAGE_ROUTE_BYTES];
    memset(name, 'n', sizeof name);
    thole_slice const longest = {(const uint8_t *)name, sizeof name};
    struct message const start = {.kind = MESSAGE_START, I, .orchestration = longest, .event_name = longest};
    (void)snprintf(want, sizeof want, "start_event.%.*s~%.*s", THOLE_FMT(longest), THOLE_FMT(longest));
    CHECK_STR("longest", message_route(&start, SENDER_CLIENT).text, want);
}

static const struct thole_test tests[] = {
    {"each_message", test_each_message},
    {"its_own_alone", test_its_own_alone},
    {"what_is_no_route", test_what_is_no_route},
    {"the_longest_names", test_the_longest_names},
};

THOLE_TEST_MAIN("message_route", tests)
