/* thole queue, in this process, with a client that the test plays: which try is decided on, what is shown. */
#include "captured.h"
#include "command.h"
#include "json_file.h"
#include "thole/client.h"
#include "thole_cunit.h"
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
    unsigned open;
    thole_status workers_status;
    char decided[256];
} play;

static thole_client *const some_client = (thole_client *)&play;

thole_status __wrap_thole_client_open(const thole_client_options *options, thole_client **ret,
                                      thole_error *reterr)
{
    (void)options, (void)reterr;
    play.open++;
    *ret = some_client;
    return THOLE_OK;
}

void __wrap_thole_client_close(thole_client *client)
{
    CU_ASSERT_PTR_EQUAL(client, some_client);
    play.open--;
}

/* Two activities of one instance, each in a try of its own. */
thole_status __wrap_thole_client_poisoned(thole_client *client, const thole_poisoned_filter *filter,
                                          thole_poisoned_fn *each, void *arg, thole_error *reterr)
{
    (void)client, (void)filter, (void)reterr;
    for (uint32_t i = 0; i < 2; i++) {
        thole_poisoned_info const info = {.instance = THOLE_STR("order"),
                                          .activity = THOLE_STR("charge"),
                                          .queue = THOLE_STR("q"),
                                          .execution = 2,
                                          .activity_id = 7 + i,
                                          .try_number = 3 + i};
        THOLE_TRY(each(arg, &info));
    }
    return THOLE_OK;
}

static thole_status decided(const char *what, uint64_t execution, uint64_t id, uint32_t try_number)
{
    (void)snprintf(play.decided + strlen(play.decided), sizeof play.decided - strlen(play.decided),
                   "%s %" PRIu64 ".%" PRIu64 ".%" PRIu32 " ", what, execution, id, try_number);
    return THOLE_OK;
}

thole_status __wrap_thole_client_poisoned_retry(thole_client *client, thole_slice instance,
                                                uint64_t execution, uint64_t id, uint32_t try_number,
                                                thole_error *reterr)
{
    (void)client, (void)instance, (void)reterr;
    return decided("retry", execution, id, try_number);
}

thole_status __wrap_thole_client_poisoned_fail(thole_client *client, thole_slice instance, uint64_t execution,
                                               uint64_t id, uint32_t try_number, thole_error *reterr)
{
    (void)client, (void)instance, (void)reterr;
    return decided("fail", execution, id, try_number);
}

thole_status __wrap_thole_client_workers(thole_client *client, thole_worker_fn *each, void *arg,
                                         thole_error *reterr)
{
    (void)client, (void)each, (void)arg;
    return play.workers_status == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.workers_status, "no answer");
}

thole_status __wrap_thole_client_queues(thole_client *client, thole_slice queue, thole_queue_fn *each,
                                        void *arg, thole_error *reterr)
{
    (void)client, (void)queue, (void)reterr;
    thole_queue_activity const activity = {.activity = THOLE_STR("charge"), .count = 4};
    thole_queue_info const info = {
        .queue = THOLE_STR("q"), .waiting = 4, .activities = &activity, .activities_len = 1};
    return each(arg, &info);
}

struct words {
    int argc;
    char *argv[8];
    int code;
};

static void run_words(void *arg)
{
    struct words *words = arg;
    words->code = cli_main(words->argc, words->argv);
}

/* Runs the command and returns its stdout; malloc. */
static char *run(char *const *line, int *ret_code)
{
    struct words words = {.argc = 1, .argv = {(char *)"thole"}};
    for (; line[words.argc - 1] != NULL; words.argc++)
        words.argv[words.argc] = line[words.argc - 1];
    char *const text = captured(STDOUT_FILENO, run_words, &words);
    *ret_code = words.code;
    CU_ASSERT_EQUAL(play.open, 0);
    return text;
}

/* The one that was listed: between the list and the decision there may be a next try, which is not meant. */
static void test_which_try_is_decided_on(void)
{
    static const struct {
        char *words[6];
        const char *decided;
    } rows[] = {{{"queue", "retry", "order", "8", NULL}, "retry 2.8.4 "},
                {{"queue", "fail", "order", "7", NULL}, "fail 2.7.3 "},
                {{"queue", "retry", "--all", NULL}, "retry 2.7.3 retry 2.8.4 "},
                {{"queue", "retry", "order", "9", NULL}, ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int code;
        memset(&play, 0, sizeof play);
        free(run(rows[i].words, &code));
        CHECK_STR(rows[i].words[1], play.decided, rows[i].decided);
        CU_ASSERT_EQUAL(code == 0, rows[i].decided[0] != '\0');
    }
}

/* No worker is not the same as no answer. */
static void test_who_serves_a_queue(void)
{
    char *const words[] = {"queue", "list", "--output", "json", NULL};
    int code;
    memset(&play, 0, sizeof play);
    char *text = run(words, &code);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"serving\":[]"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"known\":false"));
    free(text);
    memset(&play, 0, sizeof play);
    play.workers_status = THOLE_UNAVAILABLE;
    text = run(words, &code);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"serving\":null"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"known\":null"));
    free(text);
}

static const struct thole_test tests[] = {
    {"which try is decided on", test_which_try_is_decided_on},
    {"who serves a queue", test_who_serves_a_queue},
};
THOLE_TEST_MAIN("cli_queue", tests)
