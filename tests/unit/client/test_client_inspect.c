/* The result of thole_client_inspect() for a history: awaited tasks, and which records count. The streams are
 * played. */
#include "client_restored.h"
#include "pending_start.h"
#include "play.h"
#include "thole_cunit.h"

enum { EXECUTIONS_MAX = 4, GIVEN_MAX = 8 };

static struct {
    const char *histories[EXECUTIONS_MAX]; /* by execution, from 1 on, as play_parse() reads them */
    uint64_t latest;
    bool more_to_come; /* of the newest execution's last turn: its writer died in between */
    bool early;        /* an event that came before its start stands in front */
    thole_status latest_status, read_status, restored_status;
    uint64_t restored; /* last restored execution, when the log has only a deletion; 0: none */
    bool deleted;
    struct pending_start start;
    uint64_t begun; /* the latest execution when the inbox was looked at */
    char log[1024];
} play;

static thole_error err;

thole_status __wrap_history_latest(struct thole_client *client, thole_slice instance, uint64_t *ret_execution,
                                   bool *ret_deleted, thole_error *reterr)
{
    (void)client;
    CU_ASSERT_TRUE(thole_slice_equal(instance, THOLE_STR("order")));
    *ret_execution = play.deleted ? 0 : play.latest;
    *ret_deleted = play.deleted;
    return play.latest_status == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.latest_status, "no answer");
}

thole_status __wrap_pending_start_find(struct thole_client *client, thole_slice instance, struct arena *arena,
                                       struct pending_start *ret, thole_error *reterr)
{
    (void)client, (void)instance, (void)arena, (void)reterr;
    *ret = play.start;
    play.latest = play.begun;
    return THOLE_OK;
}

thole_status __wrap_client_restored_find(struct thole_client *client, thole_slice instance,
                                         struct client_restored *ret, thole_error *reterr)
{
    (void)client, (void)instance;
    CU_ASSERT_TRUE(play.deleted); /* others are not asked for */
    *ret = (struct client_restored){.is = play.restored > 0, .execution = play.restored};
    return play.restored_status == THOLE_OK ? THOLE_OK
                                            : thole_fail(reterr, play.restored_status, "no answer");
}

static thole_status give(client_record_fn *each, void *arg, struct turn turn, uint64_t execution,
                         uint64_t number, bool more)
{
    struct buf bytes;
    struct record record = {.kind = RECORD_TURN, .epoch = 1, .n = number, .turn = turn};
    record.turn.instance = THOLE_STR("order");
    record.turn.execution = execution;
    record.turn.more = more;
    buf_init(&bytes, 1 << 16);
    CU_ASSERT_EQUAL_FATAL(record_encode(&record, &bytes), THOLE_OK);
    thole_status const status = each(arg, number, buf_bytes(&bytes));
    buf_release(&bytes);
    return status;
}

thole_status __wrap_client_execution_records(struct thole_client *client, thole_slice instance,
                                             uint64_t execution, client_record_fn *each, void *arg,
                                             thole_error *reterr)
{
    struct play_turns turns;
    thole_status status = THOLE_OK;
    (void)client, (void)instance;
    if (play.read_status != THOLE_OK)
        return thole_fail(reterr, play.read_status, "it cannot be read");
    if (execution > EXECUTIONS_MAX || play.histories[execution - 1] == NULL)
        return THOLE_NOT_FOUND;
    play_parse(play.histories[execution - 1], &turns);
    if (play.early)
        status = give(each, arg, (struct turn){.number = 1, .time_ms = 1}, 0, 1, false);
    for (size_t i = 0; i < turns.len && status == THOLE_OK; i++)
        status = give(each, arg, turns.turns[i], execution, 2 + i,
                      play.more_to_come && execution == play.latest && i + 1 == turns.len);
    play_turns_release(&turns);
    return status;
}

static thole_status tell(void *arg, const thole_inspection *inspection)
{
    static const char *const kinds[] = {"?", "activity", "timer", "event", "child"};
    size_t at = 0;
    CU_ASSERT_PTR_EQUAL(arg, &play);
    at += (size_t)snprintf(play.log + at, sizeof play.log - at, "%.*s@%u#%llu %s in=%.*s out=%.*s",
                           THOLE_FMT(inspection->orchestration), inspection->version,
                           (unsigned long long)inspection->execution,
                           thole_instance_status_name(inspection->status), THOLE_FMT(inspection->input),
                           THOLE_FMT(inspection->output));
    for (size_t i = 0; i < inspection->pending_len; i++) {
        const thole_pending *const p = &inspection->pending[i];
        at += (size_t)snprintf(
            play.log + at, sizeof play.log - at, " | %s %llu %.*s queue=%.*s child=%.*s due=%llu at=%llu",
            kinds[p->kind], (unsigned long long)p->id, THOLE_FMT(p->name), THOLE_FMT(p->queue),
            THOLE_FMT(p->instance), (unsigned long long)p->due_ms, (unsigned long long)p->asked_for_ms);
    }
    return THOLE_OK;
}

static void begin(const char *first, const char *second)
{
    memset(&play, 0, sizeof play);
    memset(&err, 0, sizeof err);
    play.histories[0] = first;
    play.histories[1] = second;
    play.latest = second != NULL ? 2 : first != NULL ? 1 : 0;
}

static thole_status inspect(void)
{
    struct thole_client client = {.topology = {.ns = "shop", .partitions = 1, .payload_max = 1000}};
    return thole_client_inspect(&client, THOLE_STR("order"), tell, &play, &err);
}

static void check(const char *row, const char *want)
{
    CU_ASSERT_EQUAL(inspect(), THOLE_OK);
    CHECK_STR(row, play.log, want);
    CHECK_STR(row, err.text, "");
}

#define STARTED "#1 Started sells@3(in)"
#define HEAD "sells@3#1 "
#define CHARGE " | activity 2 charge queue=default child= due=0 at=1000"

static void test_what_is_waited_for(void)
{
    begin(STARTED " | #2 ActivityScheduled charge(card)", NULL);
    check("an activity", HEAD "Running in=in out=" CHARGE);
    begin(STARTED " | #2 ActivityScheduled charge(card) / #3 ActivityCompleted #2 (ok)", NULL);
    check("it has completed", HEAD "Running in=in out=");
    begin(STARTED " | #2 ActivityScheduled charge(card) / #3 ActivityCompleted #2 (ok) | #4 Completed (done)",
          NULL);
    check("it has ended", HEAD "Completed in=in out=done");
    begin(STARTED
          " | #2 ActivityScheduled charge(card) / #3 TerminateRequested (stop) | #4 Terminated (stop)",
          NULL);
    check("ended, and nothing of it is waited for", HEAD "Terminated in=in out=stop");
}

static void test_what_does_not_count(void)
{
    begin(STARTED " | #2 ActivityScheduled charge(card)", NULL);
    play.early = true;
    check("an early event", HEAD "Running in=in out=" CHARGE);
    begin(STARTED " | #2 ActivityScheduled charge(card) / #3 ActivityCompleted #2 (ok) | #4 Completed (done)",
          NULL);
    play.more_to_come = true;
    check("a turn whose writer died", HEAD "Running in=in out=" CHARGE);
    begin(STARTED " | #2 ActivityScheduled charge(card)", STARTED);
    play.more_to_come = true;
    check("an execution whose first turn is not whole", HEAD "Running in=in out=" CHARGE);
    play.more_to_come = false;
    check("the latest", "sells@3#2 Running in=in out=");
}

static void test_what_is_pending(void)
{
    begin(NULL, NULL);
    play.start = (struct pending_start){
        .is = true, .message = {.orchestration = THOLE_STR("sells"), .version = 3, .data = THOLE_STR("in")}};
    check("a start that waits", "sells@3#0 Pending in=in out=");
    begin(NULL, NULL);
    play.start.begun = true;
    play.begun = 1;
    play.histories[0] = STARTED;
    check("one that was taken meanwhile", HEAD "Running in=in out=");
    begin(NULL, NULL);
    play.start.unknown = true;
    CU_ASSERT_EQUAL(inspect(), THOLE_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "NATS forbids this user to read the inbox"));
}

static void test_what_fails(void)
{
    begin(NULL, NULL);
    CU_ASSERT_EQUAL(inspect(), THOLE_NOT_FOUND);
    CHECK_STR("why", err.text, "there is no instance \"order\" in namespace shop");
    begin(STARTED, NULL);
    play.latest_status = THOLE_UNAVAILABLE;
    CU_ASSERT_EQUAL(inspect(), THOLE_UNAVAILABLE);
    play.latest_status = THOLE_OK;
    play.read_status = THOLE_DENIED;
    CU_ASSERT_EQUAL(inspect(), THOLE_DENIED);
    CHECK_STR("why", err.text, "it cannot be read");
    CHECK_STR("nothing is told", play.log, "");
}

static void test_what_is_restored(void)
{
    begin(STARTED " | #2 ActivityScheduled charge(card) / #3 ActivityCompleted #2 (ok) | #4 Completed (done)",
          NULL);
    play.deleted = true;
    CU_ASSERT_EQUAL(inspect(), THOLE_NOT_FOUND);
    play.restored_status = THOLE_DENIED; /* a user who may not ask sees none */
    CU_ASSERT_EQUAL(inspect(), THOLE_NOT_FOUND);
    play.restored_status = THOLE_UNAVAILABLE;
    CU_ASSERT_EQUAL(inspect(), THOLE_UNAVAILABLE);
    begin(play.histories[0], NULL);
    play.deleted = true;
    play.restored = 1;
    check("of a deleted id", HEAD "Completed in=in out=done");
}

static const struct thole_test tests[] = {{"what is waited for", test_what_is_waited_for},
                                          {"what does not count", test_what_does_not_count},
                                          {"what is pending", test_what_is_pending},
                                          {"what fails", test_what_fails},
                                          {"what is restored", test_what_is_restored}};
THOLE_TEST_MAIN("client_inspect", tests)
