/* Processes that do not come to their activity: how often one is started, and after which pauses. The
 * forkserver's answers are played. */
#include "process_parts.h"
#include "process_stage.h"
#include "wrap_mutexes.h"
#include <errno.h>
#include <sys/socket.h>

enum { PLANS_MAX = 8 };

/* How each start ends; further ones end like the last. */
enum plan { NO_PLACE, NO_FORK, NO_GUARD, RESET, EXITS };
static struct {
    enum plan plans[PLANS_MAX];
    size_t len, spawned;
    uint64_t at_ms[16];
    bool reset; /* the guard has died with something in its socket that it had not read */
} play;

ssize_t __real_recv(int fd, void *to, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t len, int flags)
{
    if (!play.reset || len != sizeof(struct life_message))
        return __real_recv(fd, to, len, flags);
    errno = ECONNRESET;
    return -1;
}

thole_status __wrap_forkserver_spawn(struct forkserver *forkserver, size_t entry, const int fds[PROCESS_FDS],
                                     thole_error *reterr)
{
    enum plan const plan = play.plans[play.spawned < play.len ? play.spawned : play.len - 1];
    CU_ASSERT_FATAL(play.spawned < ARRAY_LEN(play.at_ms));
    CU_ASSERT_PTR_EQUAL(forkserver, process_stage_forkserver);
    CU_ASSERT_EQUAL(entry, 0);
    play.at_ms[play.spawned++] = clock_monotonic_ms();
    if (plan == NO_PLACE)
        return thole_fail(reterr, THOLE_NOMEM, "no place");
    struct life_message const ended = {
        .kind = LIFE_ENDED, .pid = 77, .error = plan == NO_FORK ? EAGAIN : 0, .status = 3 << 8};
    play.reset = plan == RESET;
    if (plan != NO_GUARD && plan != RESET) /* else its socket is only closed */
        process_life_send(fds[PROCESS_LIFE], &ended);
    return THOLE_OK;
}

static thole_status nothing(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_OK;
}

static const thole_activity_options apart = {.size = sizeof apart, .isolation = THOLE_ISOLATION_PROCESS};
static const thole_activity_entry entries[] = {{.name = "charge", .run = nothing, .options = &apart}};
static const thole_program program = {
    .size = sizeof program, .name = "none", .activities = entries, .activities_len = 1};

static const struct start_case {
    const char *name;
    enum plan plans[PLANS_MAX];
    size_t len, spawned;
    uint64_t pauses_ms[8]; /* least ones, before the second start and the next */
} cases[] = {
    {"it exits", {EXITS}, 1, 3, {0, 0}},
    {"no process once", {NO_FORK, EXITS}, 2, 4, {50, 0, 0}},
    {"no place once", {NO_PLACE, EXITS}, 2, 4, {50, 0, 0}},
    {"no guard once", {NO_GUARD, EXITS}, 2, 4, {50, 0, 0}},
    {"a reset once", {RESET, EXITS}, 2, 4, {50, 0, 0}},
    {"no process, longer and longer", {NO_FORK, NO_PLACE, NO_FORK, EXITS}, 4, 6, {50, 100, 200, 0, 0}},
    {"in between", {EXITS, EXITS, NO_FORK, EXITS}, 4, 4, {0, 0, 50}},
};

static void test_starts(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct start_case *const row = &cases[i];
        play.spawned = 0;
        play.len = row->len;
        memcpy(play.plans, row->plans, sizeof play.plans);
        const char *const got = process_stage_once("charge", "x");
        process_stage_check(row->name, got,
                            "APP [crash]: the process exited with code 3 before the handler was called; its "
                            "log says why | page 1");
        if (play.spawned != row->spawned)
            fprintf(stderr, "\n  [%s] started %zu times\n", row->name, play.spawned);
        CU_ASSERT_EQUAL(play.spawned, row->spawned);
        for (size_t k = 1; k < play.spawned && k < row->spawned; k++)
            CU_ASSERT_TRUE(play.at_ms[k] - play.at_ms[k - 1] >= row->pauses_ms[k - 1]);
    }
}

int main(void)
{
    static const struct thole_test tests[] = {{"starts", test_starts}};
    process_stage_open(&program, 4);
    int const failed = thole_run_suite("process_pool", tests, ARRAY_LEN(tests));
    process_stage_close();
    return failed;
}
