/* An id that was deleted and started again: whose first record the client asks for. The stream is played. */
#include "client_internal.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"

enum { DELETED_AT = 70, EXECUTION = 4, FIRST_AT = 71 };

static struct {
    bool deleted;
    char text[256];
} play;

static void note(const char *stream, const char *subject, uint64_t from, uint64_t to)
{
    size_t const len = strlen(play.text);
    (void)snprintf(play.text + len, sizeof play.text - len, "%s %s from %llu%s|", stream, subject,
                   (unsigned long long)from, to == UINT64_MAX ? "" : " to that");
}

static bool is_deletions(const char *subject)
{
    return strcmp(subject, "thole.shop.hist.0.order.deleted") == 0;
}

thole_status __wrap_stream_last_by_subject(struct connection *connection, const char *stream,
                                           const char *subject, uint64_t *ret_sequence, struct buf *ret_body,
                                           thole_error *reterr)
{
    (void)connection, (void)stream, (void)ret_body, (void)reterr;
    *ret_sequence = is_deletions(subject) && play.deleted ? DELETED_AT : 0;
    return THOLE_OK;
}

static thole_status give(stream_read_fn *each, void *arg, uint64_t sequence, const struct record *record)
{
    struct buf bytes;
    buf_init(&bytes, 4096);
    THOLE_TRY(record_encode(record, &bytes));
    thole_status const status = each(arg, sequence, THOLE_STR("any"), buf_bytes(&bytes));
    buf_release(&bytes);
    return status;
}

thole_status __wrap_stream_walk(struct connection *connection, const char *stream, const char *filter,
                                uint64_t from, uint64_t to, stream_read_fn *each, void *arg,
                                thole_error *reterr)
{
    struct event started = {
        .kind = EVENT_STARTED, .id = 1, .code = 1, .request_id = THOLE_STR("r1"), .name = THOLE_STR("sells")};
    struct record record = {.kind = RECORD_DELETED, .epoch = 1, .n = 1};
    (void)connection, (void)reterr;
    note(stream, filter, from, to);
    if (is_deletions(filter)) {
        record.deletion = (struct deletion){.instance = THOLE_STR("order"), .execution = EXECUTION};
        return give(each, arg, DELETED_AT, &record);
    }
    record.kind = RECORD_TURN;
    record.turn = (struct turn){.instance = THOLE_STR("order"),
                                .execution = play.deleted ? EXECUTION + 1 : 1,
                                .number = 1,
                                .events = &started,
                                .events_len = 1};
    return give(each, arg, FIRST_AT, &record);
}

static void test_first_record(void)
{
    static const struct {
        bool deleted;
        const char *want;
    } rows[] = {{false, "THOLE_shop_HIST_0 thole.shop.hist.0.order.1 from 1|"},
                {true, "THOLE_shop_HIST_0 thole.shop.hist.0.order.deleted from 1 to that|"
                       "THOLE_shop_HIST_0 thole.shop.hist.0.order.5 from 71|"}};
    struct thole_client client = {.topology = {.ns = "shop", .partitions = 1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena arena;
        uint64_t sequence = 0;
        struct turn first = {.events_len = 0};
        thole_error error = {.status = THOLE_OK};
        play.deleted = rows[i].deleted;
        play.text[0] = 0;
        arena_init(&arena, 1 << 20);
        CU_ASSERT_EQUAL(history_first_turn(&client, THOLE_STR("order"), &arena, &sequence, &first, &error),
                        THOLE_OK);
        CHECK_STR("read", play.text, rows[i].want);
        CHECK_STR("error", error.text, "");
        CU_ASSERT_EQUAL(sequence, FIRST_AT);
        CU_ASSERT_TRUE(thole_slice_equal(turn_request(&first), THOLE_STR("r1")));
        arena_release(&arena);
    }
}

/* Requests that an earlier incarnation took are not looked at: an id may come again. */
static void test_a_request_of_this_life(void)
{
    static const struct {
        bool deleted;
        const char *request, *orchestration;
        enum repetition found;
        const char *want;
    } rows[] = {
        {false, "r1", "sells", REPETITION_SAME, "THOLE_shop_HIST_0 thole.shop.hist.0.order.* from 1|"},
        {false, "r1", "buys", REPETITION_OTHER, "THOLE_shop_HIST_0 thole.shop.hist.0.order.* from 1|"},
        {false, "r2", "sells", REPETITION_NONE, "THOLE_shop_HIST_0 thole.shop.hist.0.order.* from 1|"},
        {true, "r1", "sells", REPETITION_SAME,
         "THOLE_shop_HIST_0 thole.shop.hist.0.order.deleted from 1 to that|"
         "THOLE_shop_HIST_0 thole.shop.hist.0.order.* from 71|"}};
    struct thole_client client = {.topology = {.ns = "shop", .partitions = 1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct message const message = {.kind = MESSAGE_START,
                                        .instance = THOLE_STR("order"),
                                        .orchestration = thole_slice_from(rows[i].orchestration),
                                        .request_id = thole_slice_from(rows[i].request)};
        enum repetition found = REPETITION_NONE;
        thole_error error = {.status = THOLE_OK};
        play.deleted = rows[i].deleted;
        play.text[0] = 0;
        CU_ASSERT_EQUAL(history_repetition(&client, &message, &found, &error), THOLE_OK);
        CHECK_STR("read", play.text, rows[i].want);
        CU_ASSERT_EQUAL(found, rows[i].found);
    }
}

#define MESSAGE(KIND, ...)                                                                                   \
    {                                                                                                        \
        .kind = MESSAGE_##KIND, .request_id = THOLE_STR_INIT("r"), __VA_ARGS__                               \
    }
#define NAMED(TEXT) .event_name = THOLE_STR_INIT(TEXT)

/* A turn of a start with an event, and of a termination, all under the request id "r". */
static void test_repetitions(void)
{
    static const struct {
        const char *name;
        struct message message;
        enum repetition want;
    } rows[] = {
        {"start", MESSAGE(START, .orchestration = THOLE_STR_INIT("o"), .data = THOLE_STR_INIT("in")),
         REPETITION_SAME},
        {"its version",
         MESSAGE(START, .orchestration = THOLE_STR_INIT("o"), .data = THOLE_STR_INIT("in"), .version = 2),
         REPETITION_SAME},
        {"another version",
         MESSAGE(START, .orchestration = THOLE_STR_INIT("o"), .data = THOLE_STR_INIT("in"), .version = 3),
         REPETITION_OTHER},
        {"another input", MESSAGE(START, .orchestration = THOLE_STR_INIT("o")), REPETITION_OTHER},
        {"another orchestration", MESSAGE(START, .data = THOLE_STR_INIT("in")), REPETITION_OTHER},
        {"start with the event",
         MESSAGE(START, .orchestration = THOLE_STR_INIT("o"), .data = THOLE_STR_INIT("in"), NAMED("e"),
                 .event_data = THOLE_STR_INIT("d")),
         REPETITION_SAME},
        {"start with another event",
         MESSAGE(START, .orchestration = THOLE_STR_INIT("o"), .data = THOLE_STR_INIT("in"), NAMED("f")),
         REPETITION_OTHER},
        {"event", MESSAGE(EVENT, NAMED("e"), .event_data = THOLE_STR_INIT("d")), REPETITION_SAME},
        {"another payload", MESSAGE(EVENT, NAMED("e"), .event_data = THOLE_STR_INIT("D")), REPETITION_OTHER},
        {"another name", MESSAGE(EVENT, NAMED("f"), .event_data = THOLE_STR_INIT("d")), REPETITION_OTHER},
        {"terminate", MESSAGE(TERMINATE, .data = THOLE_STR_INIT("why")), REPETITION_SAME},
        {"another reason", MESSAGE(TERMINATE, .data = THOLE_STR_INIT("so")), REPETITION_OTHER},
        {"of another kind", MESSAGE(CANCEL, .data = THOLE_STR_INIT("why")), REPETITION_NONE},
        {"another id",
         {.kind = MESSAGE_EVENT, .request_id = THOLE_STR_INIT("s"), NAMED("f")},
         REPETITION_NONE},
        {"no id", {.kind = MESSAGE_EVENT, NAMED("f")}, REPETITION_NONE},
    };
    static struct event events[] = {{.kind = EVENT_STARTED,
                                     .name = THOLE_STR_INIT("o"),
                                     .data = THOLE_STR_INIT("in"),
                                     .version = 2,
                                     .request_id = THOLE_STR_INIT("r")},
                                    {.kind = EVENT_EVENT_RECEIVED,
                                     .name = THOLE_STR_INIT("e"),
                                     .data = THOLE_STR_INIT("d"),
                                     .request_id = THOLE_STR_INIT("r")},
                                    {.kind = EVENT_EVENT_RECEIVED, .name = THOLE_STR_INIT("own")},
                                    {.kind = EVENT_TERMINATE_REQUESTED,
                                     .data = THOLE_STR_INIT("why"),
                                     .request_id = THOLE_STR_INIT("r")}};
    struct turn const turn = {.events = events, .events_len = ARRAY_LEN(events)};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char got[8], want[8];
        (void)snprintf(got, sizeof got, "%d", (int)repetition_in(&turn, &rows[i].message));
        (void)snprintf(want, sizeof want, "%d", (int)rows[i].want);
        CHECK_STR(rows[i].name, got, want);
    }
    events[0].data_erased = true; /* a redaction: it is not known */
    CU_ASSERT_EQUAL(repetition_in(&turn, &rows[3].message), REPETITION_SAME);
    events[0].data_erased = false;
}

static const struct thole_test tests[] = {{"the first record of the latest life", test_first_record},
                                          {"a request of this life", test_a_request_of_this_life},
                                          {"repetitions", test_repetitions}};
THOLE_TEST_MAIN("client_lives", tests)
