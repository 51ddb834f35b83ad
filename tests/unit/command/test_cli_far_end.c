/* The command's calls of the client: each option and word at its far end. The client is the test's. */
#include "captured.h"
#include "client_holds.h"
#include "command.h"
#include "said.h"
#include "thole/client.h"
#include "thole_cunit.h"
#include "wrap_standing.h"
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct {
    struct said said;
    unsigned open;
    thole_status open_status;
    unsigned events, events_max; /* of a history: given, and how many there are beside its first two */
} play;

/* After a deletion: which children stay. */
#define CHILDREN_ASKED                                                                                       \
    "; list size=1 status=any orchestration= prefix= parent=order after=0 before=0 limit=1000"

static thole_client *const some_client = (thole_client *)&play;

static const char *shown(const char *text)
{
    return text == NULL ? "-" : text;
}

thole_status __wrap_thole_client_open(const thole_client_options *options, thole_client **ret,
                                      thole_error *reterr)
{
    if (play.open_status != THOLE_OK)
        return thole_fail(reterr, play.open_status, "nobody is there");
    said_add(&play.said, "%s %s %s,%s,%s,%s,%s %s %s %llu %zu: ", options->nats_url,
             shown(options->nats_creds), shown(options->nats_inbox), shown(options->nats_ca),
             shown(options->nats_cert), shown(options->nats_key), shown(options->nats_server_name),
             shown(options->postgres), options->ns, (unsigned long long)options->timeout_ms,
             (size_t)options->payload_max);
    play.open++;
    *ret = some_client;
    return THOLE_OK;
}

void __wrap_thole_client_close(thole_client *client)
{
    if (client != NULL)
        play.open--;
}

thole_status __wrap_thole_client_cancel(thole_client *client, thole_slice instance, thole_slice reason,
                                        thole_error *reterr)
{
    (void)client, (void)reterr;
    said_add(&play.said, "cancel %.*s (%.*s)", THOLE_FMT(instance), THOLE_FMT(reason));
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
    return THOLE_OK;
}

thole_status __wrap_thole_client_terminate(thole_client *client, thole_slice instance, thole_slice reason,
                                           thole_error *reterr)
{
    (void)client, (void)reterr;
    said_add(&play.said, "terminate %.*s (%.*s)", THOLE_FMT(instance), THOLE_FMT(reason));
    return THOLE_OK;
}

thole_status __wrap_thole_client_delete(thole_client *client, thole_slice instance,
                                        const thole_delete_options *options, bool *ret_accepted,
                                        thole_error *reterr)
{
    (void)client, (void)reterr;
    said_add(&play.said, "delete %.*s force=%d (%.*s)", THOLE_FMT(instance), options->force,
             THOLE_FMT(options->reason));
    *ret_accepted = true;
    return THOLE_OK;
}

thole_status __wrap_thole_client_signal_with(thole_client *client, thole_slice instance, thole_slice name,
                                             thole_slice data, const thole_signal_options *options,
                                             bool *ret_kept, thole_error *reterr)
{
    (void)client, (void)reterr;
    said_add(&play.said, "signal %.*s %.*s(%.*s) id=%.*s", THOLE_FMT(instance), THOLE_FMT(name),
             THOLE_FMT(data), THOLE_FMT(options->request_id));
    *ret_kept = false;
    return THOLE_OK;
}

thole_status __wrap_thole_client_complete(thole_client *client, thole_slice token, thole_slice output,
                                          thole_error *reterr)
{
    (void)client, (void)reterr;
    said_add(&play.said, "complete %.*s (%.*s)", THOLE_FMT(token), THOLE_FMT(output));
    return THOLE_OK;
}

thole_status __wrap_thole_client_fail(thole_client *client, thole_slice token, thole_slice type,
                                      thole_slice message, thole_error *reterr)
{
    (void)client, (void)reterr;
    said_add(&play.said, "fail %.*s %.*s (%.*s)", THOLE_FMT(token), THOLE_FMT(type), THOLE_FMT(message));
    return THOLE_OK;
}

thole_status __wrap_thole_client_wait(thole_client *client, thole_slice instance, uint64_t wait_ms,
                                      thole_outcome *ret_outcome, thole_error *reterr)
{
    (void)client, (void)ret_outcome;
    said_add(&play.said, "%swait %.*s %s", strstr(play.said.text, ": wait ") != NULL ? "; " : "",
             THOLE_FMT(instance),
             wait_ms == UINT64_MAX                 ? "for ever"
             : wait_ms > 29000 && wait_ms <= 30000 ? "half a minute"
                                                   : "for some time");
    if (wait_ms > 29000)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "gone away");
    return thole_fail(reterr, THOLE_TIMEOUT, "has not ended yet");
}

thole_status __wrap_thole_client_executions(thole_client *client, thole_slice instance,
                                            thole_execution_fn *each, void *arg, thole_error *reterr)
{
    (void)client, (void)instance, (void)reterr;
    for (uint64_t execution = 1; execution <= 6; execution++) {
        thole_execution_info const info = {.execution = execution,
                                           .status = execution < 6 ? THOLE_INSTANCE_CONTINUED_AS_NEW
                                                                   : THOLE_INSTANCE_RUNNING,
                                           .ended_ms = execution < 6 ? execution * 1000 : 0};
        thole_status const status = each(arg, &info);
        if (status != THOLE_OK)
            return status;
    }
    return THOLE_OK;
}

thole_status __wrap_client_prune_check(thole_client *client, thole_slice instance, thole_slice reason,
                                       thole_error *reterr)
{
    (void)client, (void)reterr;
    said_add(&play.said, "prune? %.*s (%.*s)", THOLE_FMT(instance), THOLE_FMT(reason));
    return THOLE_OK;
}

thole_status __wrap_thole_client_prune(thole_client *client, thole_slice instance, uint64_t before,
                                       thole_slice reason, thole_error *reterr)
{
    (void)client, (void)reterr;
    said_add(&play.said, "prune %.*s before %llu (%.*s)", THOLE_FMT(instance), (unsigned long long)before,
             THOLE_FMT(reason));
    return THOLE_OK;
}

thole_status __wrap_thole_client_list(thole_client *client, const thole_list_filter *filter,
                                      thole_instance_fn *each, void *arg, thole_error *reterr)
{
    (void)client, (void)each, (void)arg, (void)reterr;
    said_add(&play.said,
             "%slist size=%d status=%s orchestration=%.*s prefix=%.*s parent=%.*s after=%llu before=%llu "
             "limit=%llu",
             strstr(play.said.text, ": delete ") != NULL ? "; " : "", filter->size == sizeof *filter,
             filter->statuses == 0                            ? "any"
             : filter->statuses == 1 << THOLE_INSTANCE_FAILED ? "Failed"
                                                              : "several",
             THOLE_FMT(filter->orchestration), THOLE_FMT(filter->id_prefix), THOLE_FMT(filter->parent),
             (unsigned long long)filter->created_after_ms, (unsigned long long)filter->created_before_ms,
             (unsigned long long)filter->limit);
    return THOLE_OK;
}

/* The first try of an activity's end, and a start that has none. */
thole_status __wrap_thole_client_history(thole_client *client, thole_slice instance, thole_history_fn *each,
                                         void *arg, thole_error *reterr)
{
    (void)client, (void)instance, (void)reterr;
    THOLE_TRY(each(arg, &(thole_history_event){.kind = "Started", .execution = 1, .id = 1}));
    THOLE_TRY(
        each(arg, &(thole_history_event){
                      .kind = "ActivityCompleted", .execution = 1, .id = 3, .ref = 2, .try_number = 1}));
    for (; play.events < play.events_max; play.events++)
        THOLE_TRY(each(arg, &(thole_history_event){.kind = "TimerFired", .execution = 1, .id = 4, .ref = 2}));
    return THOLE_OK;
}

thole_status __wrap_thole_client_start_many(thole_client *client, thole_start_source_fn *source,
                                            thole_start_answer_fn *answer, void *arg, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    (void)client, (void)answer;
    while (status == THOLE_OK) {
        thole_start_item item = {.size = sizeof item};
        status = source(arg, &item, reterr);
        if (status == THOLE_OK)
            said_add(&play.said, "start %.*s", THOLE_FMT(item.instance));
    }
    return status == THOLE_NOT_FOUND ? THOLE_OK : status;
}

struct words {
    int argc;
    char *argv[48];
    int code;
    char line[1024];
};

static void run_words(void *arg)
{
    struct words *words = arg;
    words->code = cli_main(words->argc, words->argv);
}

#define SERVERS                                                                                              \
    "--nats nats://n:1 --nats-creds creds --nats-ca ca --nats-cert cert --nats-key key --nats-server-name "  \
    "name --nats-inbox _INBOX_x --postgres pg -n shop "
#define OPENED "nats://n:1 creds _INBOX_x,ca,cert,key,name pg shop "

/* Starts over, with the words of both texts. */
static void begin(struct words *words, const char *text, const char *more)
{
    char *save = NULL;
    memset(&play, 0, sizeof play);
    *words = (struct words){.argc = 1, .argv = {(char *)"thole"}};
    (void)snprintf(words->line, sizeof words->line, "%s%s", text, more);
    for (char *word = strtok_r(words->line, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        CU_ASSERT_FATAL(words->argc + 1 < (int)ARRAY_LEN(words->argv));
        words->argv[words->argc++] = word;
    }
}

static void test_far_end(void)
{
    static const struct {
        const char *line, *want;
        int code;
    } rows[] = {
        {SERVERS "cancel order --reason why", OPENED "5000 0: cancel order (why)", 0},
        {SERVERS "--timeout 2s cancel order", OPENED "2000 0: cancel order ()", 0},
        {SERVERS "--timeout 60s terminate order --reason x", OPENED "60000 0: terminate order (x)", 0},
        {SERVERS "delete order", OPENED "5000 0: delete order force=0 ()" CHILDREN_ASKED, 0},
        {SERVERS "delete order --force --reason x", OPENED "5000 0: delete order force=1 (x)" CHILDREN_ASKED,
         0},
        {SERVERS "signal order paid 99 --request-id r1", OPENED "5000 262144: signal order paid(99) id=r1",
         0},
        {SERVERS "signal order paid --payload-max 1MiB", OPENED "5000 1048576: signal order paid() id=", 0},
        {SERVERS "complete 3.1.5.1.order paid", OPENED "5000 262144: complete 3.1.5.1.order (paid)", 0},
        {SERVERS "complete 3.1.5.1.order", OPENED "5000 262144: complete 3.1.5.1.order ()", 0},
        {SERVERS "fail 3.1.5.1.order stolen --type card",
         OPENED "5000 262144: fail 3.1.5.1.order card (stolen)", 0},
        {SERVERS "wait order", OPENED "5000 0: wait order for some time; wait order half a minute", 6},
        {SERVERS "wait order --timeout 60s",
         OPENED "5000 0: wait order for some time; wait order half a minute", 6},
        {SERVERS "wait order --timeout 2s", OPENED "2000 0: wait order for some time", 8},
        {SERVERS "prune order --executions-before 4", OPENED "5000 0: prune order before 4 ()", 0},
        {SERVERS "prune order --executions-before 1970-01-01T00:00:05Z --reason x",
         OPENED "5000 0: prune order before 5 (x)", 0},
        {SERVERS "prune order --executions-before 4 --dry-run", OPENED "5000 0: prune? order ()", 0},
        {SERVERS "prune order --executions-before nonsense", "", 2},
        {SERVERS "prune order --executions-before 0", "", 2},
        {SERVERS "prune order", "", 2},
        {SERVERS "start-many /", OPENED "5000 0: ", 3},
        {SERVERS "start-many /nonexistent", "", 3},
        {SERVERS "rejected --next nonsense", "", 2},
        {SERVERS "list --next nonsense", "", 2},
        {SERVERS "list",
         OPENED "5000 0: list size=1 status=any orchestration= prefix= parent= after=0 "
                "before=0 limit=101",
         0},
        {SERVERS "list --status failed --orchestration checkout --prefix or --parent cart --after 1970-01-02 "
                 "--before 1970-01-03 --limit 7",
         OPENED "5000 0: list size=1 status=Failed orchestration=checkout prefix=or parent=cart "
                "after=86400000 before=172800000 limit=8",
         0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct words words;
        begin(&words, rows[i].line, "");
        free(captured(STDOUT_FILENO, run_words, &words));
        CHECK_STR(rows[i].line, play.said.text, rows[i].want);
        CU_ASSERT_EQUAL(words.code, rows[i].code);
        CU_ASSERT_EQUAL(play.open, 0);
    }
}

static char *output_of(const char *text)
{
    struct words words;
    begin(&words, text, "");
    return captured(STDOUT_FILENO, run_words, &words);
}

/* A request is accepted after it was made: the client takes a millisecond. */
static void test_times_of_a_request(void)
{
    unsigned long long requested = 0, accepted = 0;
    char *const said = output_of(SERVERS "cancel order -o json");
    const char *const requested_at = strstr(said, "\"requested_us\":"), *const accepted_at =
                                                                            strstr(said, "\"accepted_us\":");
    CU_ASSERT_TRUE(requested_at != NULL && sscanf(requested_at, "\"requested_us\":%llu", &requested) == 1);
    CU_ASSERT_TRUE(accepted_at != NULL && sscanf(accepted_at, "\"accepted_us\":%llu", &accepted) == 1);
    CU_ASSERT_TRUE(requested > 0 && accepted >= requested + 1000);
    free(said);
}

static void test_try_of_an_event(void)
{
    char *const said = output_of(SERVERS "history order -o jsonl");
    const char *const second = strchr(said, '\n');
    CU_ASSERT_PTR_NOT_NULL_FATAL(second);
    CU_ASSERT_PTR_NOT_NULL(strstr(second, "\"try\":1,"));
    CU_ASSERT_TRUE(strstr(said, "\"try\":") > second); /* the start has none */
    free(said);
}

/* Each verb says so, with the code of its reason, and does nothing else. */
static void test_nobody_is_there(void)
{
    static const char *const lines[] = {"start checkout",
                                        "start-many /dev/null",
                                        "run checkout",
                                        "wait order",
                                        "show order",
                                        "history order",
                                        "list",
                                        "rejected",
                                        "signal order paid",
                                        "query order state",
                                        "cancel order",
                                        "terminate order",
                                        "delete order",
                                        "pause order",
                                        "prune order --executions-before 3",
                                        "resume order",
                                        "retry order",
                                        "complete 3.1.5.1.order x",
                                        "fail 3.1.5.1.order x",
                                        "queue list",
                                        "queue poisoned",
                                        "queue retry order 3",
                                        "queue fail order 3",
                                        "queue limit mail",
                                        "queue limit mail 3",
                                        "queue limit mail none"};
    static const struct {
        thole_status status;
        int code;
    } rows[] = {{THOLE_UNAVAILABLE, 6}, {THOLE_DENIED, 7}, {THOLE_NOT_FOUND, 3}};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
            struct words words;
            begin(&words, SERVERS, lines[i]);
            play.open_status = rows[k].status;
            free(captured(STDOUT_FILENO, run_words, &words));
            if (words.code != rows[k].code)
                fprintf(stderr, "\n  %s: %d\n", lines[i], words.code);
            CU_ASSERT_EQUAL(words.code, rows[k].code);
            CHECK_STR(lines[i], play.said.text, "");
        }
}

/* A reader that went away ends the reading. */
static void test_output_that_nobody_takes(void)
{
    enum { EVENTS = 20000 };
    static const char *const outputs[] = {"table", "jsonl"};
    for (size_t i = 0; i < ARRAY_LEN(outputs); i++) {
        struct words words;
        begin(&words, SERVERS "history order -o ", outputs[i]);
        play.events_max = EVENTS;
        (void)fflush(stdout);
        int const before = dup(STDOUT_FILENO), full = open("/dev/full", O_WRONLY);
        CU_ASSERT_TRUE_FATAL(before >= 0 && full >= 0);
        (void)dup2(full, STDOUT_FILENO);
        run_words(&words);
        (void)fflush(stdout);
        clearerr(stdout);
        (void)dup2(before, STDOUT_FILENO);
        (void)close(before);
        (void)close(full);
        CU_ASSERT_TRUE(words.code != 0);
        CU_ASSERT_TRUE(play.events < EVENTS / 2);
        CU_ASSERT_EQUAL(play.open, 0);
    }
}

static const struct thole_test tests[] = {{"far end", test_far_end},
                                          {"times of a request", test_times_of_a_request},
                                          {"try of an event", test_try_of_an_event},
                                          {"nobody is there", test_nobody_is_there},
                                          {"output that nobody takes", test_output_that_nobody_takes}};
THOLE_TEST_MAIN("cli_far_end", tests)
