/* Names, comparison and rendering of events. */
#include "event.h"
#include "thole_cunit.h"

static const struct event all[] = {
    {.kind = EVENT_UNKNOWN, .id = 9},
    {.kind = EVENT_STARTED,
     .id = 1,
     .name = {(const uint8_t *)"shop", 4},
     .data = {(const uint8_t *)"in", 2},
     .code = 1},
    {.kind = EVENT_ACTIVITY_SCHEDULED,
     .id = 2,
     .name = {(const uint8_t *)"charge", 6},
     .data = {(const uint8_t *)"card", 4}},
    {.kind = EVENT_ACTIVITY_COMPLETED, .id = 3, .ref = 2, .data = {(const uint8_t *)"ok", 2}},
    {.kind = EVENT_ACTIVITY_FAILED,
     .id = 4,
     .ref = 2,
     .code = THOLE_APP,
     .data = {(const uint8_t *)"declined", 8}},
    {.kind = EVENT_ACTIVITY_CANCELLED,
     .id = 5,
     .ref = 2,
     .code = CANCEL_SELECT_LOSER,
     .data = {(const uint8_t *)"why", 3}},
    {.kind = EVENT_TIMER_CREATED, .id = 6, .due_ms = 5000},
    {.kind = EVENT_TIMER_FIRED, .id = 7, .ref = 6},
    {.kind = EVENT_TIMER_CANCELLED,
     .id = 8,
     .ref = 6,
     .code = CANCEL_ENDED,
     .data = {(const uint8_t *)"ended", 5}},
    {.kind = EVENT_CANCEL_REQUESTED, .id = 9, .data = {(const uint8_t *)"why", 3}},
    {.kind = EVENT_COMPLETED, .id = 10, .data = {(const uint8_t *)"out", 3}},
    {.kind = EVENT_FAILED, .id = 11, .code = 77, .data = {(const uint8_t *)"text", 4}},
    {.kind = EVENT_CANCELLED, .id = 12, .data = {(const uint8_t *)"why", 3}},
};

static void kinds(void)
{
    struct {
        enum event_kind kind;
        const char *name;
        bool received, terminal;
    } const rows[] = {
        {EVENT_UNKNOWN, "Unknown", false, false},
        {EVENT_STARTED, "Started", true, false},
        {EVENT_ACTIVITY_SCHEDULED, "ActivityScheduled", false, false},
        {EVENT_ACTIVITY_COMPLETED, "ActivityCompleted", true, false},
        {EVENT_ACTIVITY_FAILED, "ActivityFailed", true, false},
        {EVENT_ACTIVITY_CANCELLED, "ActivityCancelled", false, false},
        {EVENT_TIMER_CREATED, "TimerCreated", false, false},
        {EVENT_TIMER_FIRED, "TimerFired", true, false},
        {EVENT_TIMER_CANCELLED, "TimerCancelled", false, false},
        {EVENT_CANCEL_REQUESTED, "CancelRequested", true, false},
        {EVENT_COMPLETED, "Completed", false, true},
        {EVENT_FAILED, "Failed", false, true},
        {EVENT_CANCELLED, "Cancelled", false, true},
        {(enum event_kind)15, "Unknown", false, false},
        {(enum event_kind)2, "Unknown", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_STR(rows[i].name, event_kind_name(rows[i].kind), rows[i].name);
        CU_ASSERT_EQUAL(event_is_received(rows[i].kind), rows[i].received);
        CU_ASSERT_EQUAL(event_is_terminal(rows[i].kind), rows[i].terminal);
    }
    CHECK_STR("1", cancel_kind_name(CANCEL_REQUESTED), "requested");
    CHECK_STR("2", cancel_kind_name(CANCEL_SELECT_LOSER), "select_loser");
    CHECK_STR("3", cancel_kind_name(CANCEL_EXPLICIT), "explicit");
    CHECK_STR("4", cancel_kind_name(CANCEL_ENDED), "ended");
    CHECK_STR("5", cancel_kind_name(5), "unknown");
}

static void rendered(void)
{
    static const char *const texts[] = {"#9 Unknown",
                                        "#1 Started shop(in)",
                                        "#2 ActivityScheduled charge(card)",
                                        "#3 ActivityCompleted #2 (ok)",
                                        "#4 ActivityFailed #2 APP (declined)",
                                        "#5 ActivityCancelled #2 select_loser (why)",
                                        "#6 TimerCreated due 5000",
                                        "#7 TimerFired #6",
                                        "#8 TimerCancelled #6 ended (ended)",
                                        "#9 CancelRequested (why)",
                                        "#10 Completed (out)",
                                        "#11 Failed UNKNOWN (text)",
                                        "#12 Cancelled (why)"};
    struct buf buf;
    buf_init(&buf, 1000);
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        event_render(&all[i], &buf);
        CHECK_STR(texts[i], buf_cstr(&buf), texts[i]);
        buf_clear(&buf);
    }
    struct event binary = {.kind = EVENT_COMPLETED, .id = 1, .data = THOLE_STR("a\0\n\xc3\xa9~")};
    event_render(&binary, &buf);
    CHECK_STR("binary", buf_cstr(&buf), "#1 Completed (a....~)");
    buf_clear(&buf);
    binary.data = THOLE_STR("0123456789012345678901234567890123456789012345678901234567890123x");
    event_render(&binary, &buf);
    CHECK_STR("long", buf_cstr(&buf),
              "#1 Completed (0123456789012345678901234567890123456789012345678901234567890123...)");
    buf_release(&buf);
}

static void equal_in_all_but_the_id(void)
{
    struct event const base = {.kind = EVENT_ACTIVITY_SCHEDULED,
                               .id = 2,
                               .ref = 3,
                               .due_ms = 4,
                               .code = 5,
                               .name = THOLE_STR("n"),
                               .queue = THOLE_STR("q"),
                               .data = THOLE_STR("d")};
    struct event other = base;
    other.id = 99;
    CU_ASSERT(event_equal(&base, &other));
    other = base, other.kind = EVENT_COMPLETED;
    CU_ASSERT_FALSE(event_equal(&base, &other));
    other = base, other.ref = 0;
    CU_ASSERT_FALSE(event_equal(&base, &other));
    other = base, other.due_ms = 0;
    CU_ASSERT_FALSE(event_equal(&base, &other));
    other = base, other.code = 0;
    CU_ASSERT_FALSE(event_equal(&base, &other));
    other = base, other.name = THOLE_STR("m");
    CU_ASSERT_FALSE(event_equal(&base, &other));
    other = base, other.queue = THOLE_STR("r");
    CU_ASSERT_FALSE(event_equal(&base, &other));
    other = base, other.data = THOLE_STR("e");
    CU_ASSERT_FALSE(event_equal(&base, &other));
}

static const struct thole_test tests[] = {
    {"kinds", kinds},
    {"rendered", rendered},
    {"equal in all but the id", equal_in_all_but_the_id},
};
THOLE_TEST_MAIN("event", tests)
