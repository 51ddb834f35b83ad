/* How an instance is loaded, record by record from its newest one: a stream of the test's answers, and the
 * machine is given what counts, or a consumer reads all. */
#include "codec.h"
#include "read_places.h"
#include "reader.h"
#include "subject.h"
#include "thole_cunit.h"
#include "wrap_shard_world.h"
#include "wrap_submitted.h"

enum { RECORDS_MAX = 80, STEPS_MAX = 64 };

static struct {
    struct buf records[RECORDS_MAX]; /* of the instance; at sequences 10, 20, 30, ... */
    char subjects[RECORDS_MAX][64];
    size_t len, asked, gets, inputs;
    uint64_t turns[10]; /* of each execution */
    char given[256];    /* sequences and executions, in order */
    char stepped_down[64];
    size_t old; /* the n-th is of an engine that did not say where the one before it is */
    int broken; /* the look-up's answer: 1: it is none; 2: without a subject */
} play;

/* ---- the world ---- */

thole_status __wrap_stream_get_answer(thole_slice answer, uint64_t *ret_sequence, struct buf *ret_body,
                                      thole_error *reterr)
{
    (void)answer;
    if (play.broken == 1)
        return thole_fail(reterr, THOLE_CORRUPT, "no answer");
    *ret_sequence = play.len * 10;
    buf_clear(ret_body);
    if (play.len > 0)
        buf_slice(ret_body, buf_bytes(&play.records[play.len - 1]));
    return THOLE_OK;
}

thole_status __wrap_stream_get_subject(thole_slice answer, struct buf *to, thole_error *reterr)
{
    (void)answer;
    buf_clear(to);
    buf_text(to, play.subjects[play.len - 1]);
    return play.broken == 2 ? thole_fail(reterr, THOLE_CORRUPT, "no subject") : THOLE_OK;
}

thole_status __wrap_requests_get(struct requests *requests, const char *subject, thole_slice body,
                                 uint64_t token, thole_error *reterr)
{
    (void)requests, (void)token, (void)reterr;
    CHECK_STR("api", subject, "$JS.API.DIRECT.GET.HIST");
    char text[64];
    play.gets++;
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(body));
    CU_ASSERT_EQUAL(sscanf(text, "{\"seq\":%zu}", &play.asked), 1);
    return THOLE_OK;
}

void __wrap_shard_input(struct owned *owned, const struct partition_in *in)
{
    CU_ASSERT_PTR_EQUAL(owned, &world.owned);
    CU_ASSERT_TRUE(thole_slice_equal(in->history.instance, THOLE_STR("order")));
    play.inputs++;
    for (size_t i = 0; i < in->history.records_len; i++) {
        const struct log_record *const record = &in->history.records[i];
        size_t const at = record->sequence / 10 - 1, len = strlen(play.given);
        CU_ASSERT_TRUE_FATAL(at < play.len);
        CU_ASSERT_TRUE(thole_slice_equal(record->bytes, buf_bytes(&play.records[at])));
        (void)snprintf(play.given + len, sizeof play.given - len, "%llu:%llu ",
                       (unsigned long long)record->sequence, (unsigned long long)record->execution);
    }
}

void __wrap_shard_step_down(struct owned *owned, const char *text)
{
    CU_ASSERT_PTR_EQUAL(owned, &world.owned);
    (void)snprintf(play.stepped_down, sizeof play.stepped_down, "%s", text);
}

void __wrap_request_again(struct request *request, uint64_t delay_ms)
{
    CU_ASSERT_EQUAL(delay_ms, 0);
    request->again = true;
}

/* ---- histories ---- */

static void begin(void)
{
    memset(&play, 0, sizeof play);
    shard_world_begin(request_rules);
    (void)snprintf(world.engine.topology.ns, sizeof world.engine.topology.ns, "shop");
    world.owned.hist_stream = (char *)"HIST";
    buf_init(&world.shard.subject, SUBJECT_BYTES_MAX);
    buf_init(&world.shard.body, RECORD_BYTES_MAX);
}

static void end(void)
{
    submitted_clear();
    for (size_t i = 0; i < play.len; i++)
        buf_release(&play.records[i]);
    buf_release(&world.shard.subject);
    buf_release(&world.shard.body);
}

static void add_record(char kind)
{
    struct record record = {
        .kind = kind == 'D' ? RECORD_DELETED : RECORD_TURN, .epoch = 1, .n = play.len + 1};
    uint64_t const execution = kind == 'D' ? 1 : (uint64_t)(kind - '0');
    char token[8] = {kind, '\0'};
    record.previous = record_hash_make(THOLE_STR("shop"), 0, THOLE_STR("one of another instance"));
    if (play.len > 0)
        record.previous_of_instance = (struct record_link){
            record_hash_make(THOLE_STR("shop"), 0, buf_bytes(&play.records[play.len - 1])), play.len * 10};
    if (play.len + 1 == play.old) {
        record.previous_of_instance.sequence = 0;
        if (play.len == 0) /* nor that there is none */
            record.previous = (struct record_hash){{0}};
    }
    struct event events[] = {
        {.id = play.turns[execution] * 10 + 1, .kind = EVENT_STARTED, .name = THOLE_STR("x")}};
    record.turn = (struct turn){.instance = THOLE_STR("order"),
                                .execution = execution,
                                .number = ++play.turns[execution],
                                .events = events,
                                .events_len = 1};
    record.deletion = (struct deletion){.instance = THOLE_STR("order"), .execution = execution};
    CU_ASSERT_FATAL(play.len < RECORDS_MAX);
    buf_init(&play.records[play.len], RECORD_BYTES_MAX);
    CU_ASSERT_EQUAL_FATAL(record_encode(&record, &play.records[play.len]), THOLE_OK);
    (void)snprintf(play.subjects[play.len], sizeof play.subjects[0], "thole.shop.hist.0.order.%s",
                   kind == 'D' ? SUBJECT_DELETED : token);
    play.len++;
}

static void add_records(const char *kinds)
{
    for (; *kinds != '\0'; kinds++)
        add_record(*kinds);
}

/* The look-up is answered; what it has begun, if anything. */
static struct request *look_up(void)
{
    struct request *const request = request_create(REQ_LOOK_UP, &world.shard, &world.owned);
    request->history.instance = THOLE_STR("order");
    request->in = (struct partition_in){.kind = PARTITION_IN_HISTORY};
    request->in.history.instance = request->history.instance;
    request->reply.body = THOLE_STR("{an answer of 21 B..}");
    look_up_answered(&world.owned, request);
    request_destroy(request);
    return submitted.len > 0 ? submitted.requests[submitted.len - 1] : NULL;
}

/* The stream answers as long as it is asked. @p lost: a record that is not there, or another one. */
static void walk(struct request *request, uint64_t lost, thole_status status)
{
    while (request != NULL && request->kind == REQ_WALK) {
        thole_error err = {0};
        CU_ASSERT_EQUAL_FATAL(walk_send(request, &err), THOLE_OK);
        size_t const at = play.asked / 10 - 1;
        CU_ASSERT_TRUE_FATAL(at < play.len);
        bool const is_lost = play.asked == lost;
        request->status = is_lost ? status : THOLE_OK;
        request->reply = (struct request_reply){
            .result = REQUEST_ANSWERED,
            .sequence = is_lost && status != THOLE_OK ? 0 : play.asked,
            .subject = thole_slice_from(play.subjects[at]),
            .body = buf_bytes(&play.records[!is_lost ? at
                                            : at > 0 ? 0
                                                     : play.len - 1]),
        };
        request->again = false;
        walk_answered(&world.owned, request);
        if (!request->again)
            return;
    }
}

static void test_what_is_given(void)
{
    static const struct {
        const char *kinds; /* executions; D: a deletion, of execution 1 */
        const char *given; /* "load": by a consumer */
        size_t gets;
        size_t places; /* places known at its removal: of a history that begins there */
    } rows[] = {
        {"1", "10:1 ", 0, 1},
        {"11", "10:1 20:1 ", 1, 2},
        {"111111", "10:1 20:1 30:1 40:1 50:1 60:1 ", 5, 6},
        {"0", "10:0 ", 0, 1},
        {"0011", "10:0 20:0 30:1 40:1 ", 3, 4},
        {"1011", "10:1 20:0 30:1 40:1 ", 3, 4}, /* after an incomplete first turn */
        {"112", "10:1 20:1 30:2 ", 2},          /* events taken over by the next execution */
        {"10122", "10:1 30:1 40:2 50:2 ", 4},
        {"112233", "30:2 40:2 50:3 60:3 ", 3},
        {"123", "20:2 30:3 ", 1},
        {"12D", "30:0 ", 0, 1},
        {"1D02", "20:0 30:0 40:2 ", 2}, /* was deleted, had events, and was started again */
        {"1D23", "30:2 40:3 ", 1},
        {"0D01", "20:0 30:0 40:1 ", 2},
        {"1D0", "20:0 30:0 ", 1},
        {"13", "20:3 ", 1}, /* the one before was removed */
        {"21", "load", 1},  /* this cannot be */
        {"1202", "load", 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        add_records(rows[i].kinds);
        struct request *const request = look_up();
        walk(request, 0, THOLE_OK);
        bool const loads = strcmp(rows[i].given, "load") == 0;
        CU_ASSERT_EQUAL(request != NULL && request->kind == REQ_LOAD, loads);
        CU_ASSERT_EQUAL(play.inputs, loads ? 0 : 1);
        CHECK_STR(rows[i].kinds, play.given, loads ? "" : rows[i].given);
        CU_ASSERT_EQUAL(play.gets, rows[i].gets);
        struct removing_place places[REMOVING_KNOWN];
        size_t const n = read_places_take(world.shard.read_places, world.owned.p, world.generation,
                                          THOLE_STR("order"), places);
        if (n != rows[i].places)
            fprintf(stderr, "\n  %s: %zu places\n", rows[i].kinds, n);
        CU_ASSERT_EQUAL(n, rows[i].places);
        for (size_t k = 0; k < n; k++)
            CU_ASSERT(places[k].sequence == 10 * (k + 1) || n == 1);
        if (loads)
            CU_ASSERT_EQUAL(request->history.to, play.len * 10);
        CHECK_STR("no failure", play.stepped_down, "");
        end();
    }
}

/* The number of a turn tells of a long one, before it is read in vain. */
static void test_long_histories(void)
{
    static const struct {
        size_t len; /* records of execution `of`, and those after them */
        char of;
        const char *behind;
        bool loads;
        size_t gets;
    } rows[] = {{STEPS_MAX, '1', "", false, STEPS_MAX - 1},
                {STEPS_MAX + 1, '1', "", true, 0},
                {STEPS_MAX - 1, '1', "22", true, 2},
                {STEPS_MAX - 2, '1', "22", false, STEPS_MAX - 1},
                {STEPS_MAX, '0', "1", true, 1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        for (size_t k = 0; k < rows[i].len; k++)
            add_record(rows[i].of);
        add_records(rows[i].behind);
        struct request *const request = look_up();
        walk(request, 0, THOLE_OK);
        CU_ASSERT_EQUAL(request->kind == REQ_LOAD, rows[i].loads);
        CU_ASSERT_EQUAL(play.inputs, !rows[i].loads);
        CU_ASSERT_EQUAL(play.gets, rows[i].gets);
        end();
    }
}

static void test_the_look_up(void)
{
    begin();
    CU_ASSERT_PTR_NULL(look_up());
    CU_ASSERT_EQUAL(play.inputs, 1); /* the machine learns that there is none */
    CHECK_STR("nothing", play.given, "");
    end();
    for (int broken = 1; broken < 3; broken++) {
        begin();
        add_records("1");
        play.broken = broken;
        CU_ASSERT_PTR_NULL(look_up());
        CHECK_STR("stepped down", play.stepped_down, "a history could not be looked up");
        CU_ASSERT_EQUAL(play.inputs, 0);
        end();
    }
    begin();
    add_records("11");
    world.shard.owned = &world.owned;
    struct request *const request = look_up();
    CU_ASSERT_EQUAL(request->load_bytes, 16 * 1024);
    world.generation++; /* of an earlier life */
    request->status = THOLE_OK;
    walk_answered(&world.owned, request);
    CU_ASSERT_EQUAL(play.inputs, 0);
    CU_ASSERT_FALSE(request->again);
    end();
}

/* The instance alone has it: all of its records are read. */
static void test_a_subject_that_nobody_writes(void)
{
    begin();
    add_records("11");
    (void)snprintf(play.subjects[1], sizeof play.subjects[1], "thole.shop.hist.0.order.one");
    struct request *const request = look_up();
    CU_ASSERT_PTR_NOT_NULL_FATAL(request);
    CU_ASSERT_EQUAL(request->kind, REQ_LOAD);
    CU_ASSERT_EQUAL(request->history.execution, 1);
    CU_ASSERT_EQUAL(play.inputs, 0);
    end();
}

/* A replica that lags, no answer, and a stream that has another record there. */
static void test_what_is_not_there(void)
{
    static const thole_status statuses[] = {THOLE_OK, THOLE_UNAVAILABLE};
    for (uint64_t lost = 10; lost <= 30; lost += 10)
        for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
            begin();
            add_records("1111");
            struct request *const request = look_up();
            walk(request, lost, statuses[i]);
            CU_ASSERT_EQUAL(request->kind, REQ_LOAD);
            CU_ASSERT_EQUAL(play.inputs, 0);
            end();
        }
}

/* Records before the execution that was left have been removed: they are not asked for. */
static void test_what_was_removed(void)
{
    begin();
    add_records("1223");
    walk(look_up(), 10, THOLE_UNAVAILABLE);
    CHECK_STR("given", play.given, "20:2 30:2 40:3 ");
    end();
}

/* A walk that has to wait holds nothing: its first record, too, is asked for later. */
static void test_one_that_waits(void)
{
    for (uint64_t lost = 0; lost <= 30; lost += 30) {
        begin();
        add_records("111");
        world.shard.loads.bytes = 100 * 1000 * 1000;
        struct request *const request = look_up();
        CU_ASSERT(request != NULL && request->history.found.len == 0 && request->arena.used < 1000);
        CU_ASSERT_EQUAL(request->load_bytes, 16 * 1024);
        walk(request, lost, THOLE_OK);
        CHECK_STR("given", play.given, lost == 0 ? "10:1 20:1 30:1 " : "");
        CU_ASSERT_EQUAL(request->kind, lost == 0 ? REQ_WALK : REQ_LOAD);
        world.shard.loads.bytes = 0;
        end();
    }
}

static void test_older_records(void)
{
    for (size_t old = 1; old <= 3; old++) {
        begin();
        play.old = old;
        add_records("111");
        struct request *const request = look_up();
        walk(request, 0, THOLE_OK);
        CU_ASSERT_EQUAL(request->kind, REQ_LOAD);
        CU_ASSERT_EQUAL(play.inputs, 0);
        end();
    }
}

static const struct thole_test tests[] = {
    {"what is given", test_what_is_given},
    {"long histories", test_long_histories},
    {"the look-up", test_the_look_up},
    {"a subject that nobody writes", test_a_subject_that_nobody_writes},
    {"what is not there", test_what_is_not_there},
    {"what was removed", test_what_was_removed},
    {"one that waits", test_one_that_waits},
    {"older records", test_older_records},
};
THOLE_TEST_MAIN("history_walk", tests)
