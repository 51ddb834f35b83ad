/* Child processes of servers: what a child does before it becomes the program (libc is played), and what
 * becomes of real ones. */
#include "clock.h"
#include "server_process.h"
#include "thole_cunit.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct {
    bool child; /* fork() is played: we are the child */
    bool root, nobody, user_error;
    const char *fails; /* this call */
    jmp_buf back;
    char log[1000];
    unsigned signals; /* bits of those that are as usual again */
    int in, out, interrupts;
    long paused_ms;
} play;

static char base[64];

static bool called(const char *fmt, ...) THOLE_PRINTF(1, 2);
static bool called(const char *fmt, ...)
{
    size_t const at = strlen(play.log);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(play.log + at, sizeof play.log - at, fmt, args);
    va_end(args);
    bool const fine = play.fails == NULL || strncmp(play.log + at, play.fails, strlen(play.fails)) != 0;
    (void)snprintf(play.log + strlen(play.log), sizeof play.log - strlen(play.log), fine ? "; " : "!; ");
    return fine;
}

/* ---- libc ---- */

pid_t __real_fork(void);
pid_t __wrap_fork(void)
{
    if (play.fails != NULL && strcmp(play.fails, "fork") == 0) {
        errno = EAGAIN;
        return -1;
    }
    return play.child ? 0 : __real_fork();
}

void __real__exit(int code);
void __wrap__exit(int code)
{
    if (play.child) {
        (void)called("exit %d", code);
        longjmp(play.back, 1);
    }
    __real__exit(code);
    for (;;)
        continue;
}

int __real_execv(const char *path, char *const argv[]);
int __wrap_execv(const char *path, char *const argv[])
{
    if (!play.child)
        return __real_execv(path, argv);
    CU_ASSERT_PTR_EQUAL(path, argv[0]);
    for (size_t i = 0; argv[i] != NULL; i++)
        (void)called("%s", argv[i]);
    if (play.fails == NULL)
        longjmp(play.back, 1);
    return -1;
}

int __real_dup2(int from, int to);
int __wrap_dup2(int from, int to)
{
    if (!play.child)
        return __real_dup2(from, to);
    if (to == 0)
        play.in = from;
    else
        play.out = from;
    return called("fd %d", to) ? to : -1;
}

int __real_setpgid(pid_t pid, pid_t group);
int __wrap_setpgid(pid_t pid, pid_t group)
{
    if (!play.child)
        return __real_setpgid(pid, group);
    (void)called("group %d %d", (int)pid, (int)group);
    return 0;
}

int __real_setgroups(size_t n, const gid_t *groups);
int __wrap_setgroups(size_t n, const gid_t *groups)
{
    return !play.child ? __real_setgroups(n, groups) : called("groups %zu", n) ? 0 : -1;
}

int __real_setgid(gid_t gid);
int __wrap_setgid(gid_t gid)
{
    return !play.child ? __real_setgid(gid) : called("gid %u", gid) ? 0 : -1;
}

int __real_setuid(uid_t uid);
int __wrap_setuid(uid_t uid)
{
    return !play.child ? __real_setuid(uid) : called("uid %u", uid) ? 0 : -1;
}

int __real_prctl(int what, ...);
int __wrap_prctl(int what, ...)
{
    va_list args;
    va_start(args, what);
    unsigned long const value = va_arg(args, unsigned long);
    va_end(args);
    if (!play.child)
        return __real_prctl(what, value);
    CU_ASSERT_EQUAL(what, PR_SET_PDEATHSIG);
    return called("dies with its parent %d", (int)value == SIGKILL) ? 0 : -1;
}

pid_t __real_getppid(void);
pid_t __wrap_getppid(void)
{
    return !play.child ? __real_getppid() : called("parent") ? getpid() : 1;
}

int __real_chdir(const char *path);
int __wrap_chdir(const char *path)
{
    return !play.child ? __real_chdir(path) : called("in %s", path) ? 0 : -1;
}

int __real_close_range(unsigned first, unsigned last, int flags);
int __wrap_close_range(unsigned first, unsigned last, int flags)
{
    if (!play.child)
        return __real_close_range(first, last, flags);
    (void)called("closes %u to %u", first, last);
    return 0;
}

int __real_sigprocmask(int how, const sigset_t *set, sigset_t *old);
int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    if (!play.child)
        return __real_sigprocmask(how, set, old);
    CU_ASSERT_EQUAL(how, SIG_SETMASK);
    (void)called("mask %d", sigisemptyset(set));
    return 0;
}

__sighandler_t __real_signal(int number, __sighandler_t handler);
__sighandler_t __wrap_signal(int number, __sighandler_t handler)
{
    if (!play.child)
        return __real_signal(number, handler);
    CU_ASSERT_EQUAL(handler, SIG_DFL);
    play.signals |= 1u << number;
    return SIG_DFL;
}

uid_t __wrap_geteuid(void)
{
    return play.root ? 0 : 1000;
}

gid_t __wrap_getegid(void)
{
    return play.root ? 0 : 1001;
}

int __wrap_getpwnam_r(const char *name, struct passwd *entry, char *room, size_t cap, struct passwd **ret)
{
    (void)room, (void)cap;
    CHECK_STR("user", name, "postgres");
    entry->pw_uid = 77;
    entry->pw_gid = 78;
    *ret = play.nobody ? NULL : entry;
    return play.user_error ? EIO : 0;
}

int __real_nanosleep(const struct timespec *span, struct timespec *left);
int __wrap_nanosleep(const struct timespec *span, struct timespec *left)
{
    CU_ASSERT_TRUE(span->tv_nsec < 1000000000);
    play.paused_ms += span->tv_sec * 1000 + span->tv_nsec / 1000000;
    return __real_nanosleep(span, left);
}

pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    if (play.interrupts > 0) {
        play.interrupts--;
        errno = EINTR;
        return -1;
    }
    return __real_waitpid(pid, status, options);
}

/* ---- the child ---- */

static unsigned descriptors(void)
{
    unsigned n = 0;
    DIR *const all = opendir("/proc/self/fd");
    while (all != NULL && readdir(all) != NULL)
        n++;
    (void)closedir(all);
    return n;
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    (void)snprintf(base, sizeof base, "/tmp/thole-test-process.XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(base));
}

static void end(void)
{
    server_dir_remove(base);
}

static struct process program(const char *path)
{
    struct process ret = {.len = 0};
    process_arg(&ret, "%s", path);
    (void)snprintf(ret.log, sizeof ret.log, "%s/log", base);
    return ret;
}

static struct process shell(const char *script)
{
    struct process ret = program("/bin/sh");
    process_arg(&ret, "-c");
    process_arg(&ret, "%s", script);
    return ret;
}

#define USUAL "mask 1; group 0 0; "
#define POSTGRES "groups 0; gid 78; uid 77; "
#define REST "dies with its parent 1; parent; in /; fd 0; fd 1; fd 2; closes 3 to 4294967295; /bin/x; -a b; "

static void test_what_a_child_does(void)
{
    static const struct {
        bool root, as_postgres;
        const char *fails, *log;
    } rows[] = {
        {false, false, NULL, USUAL REST},
        {true, false, NULL, USUAL REST},
        {false, true, NULL, USUAL REST},
        {true, true, NULL, USUAL POSTGRES REST},
        {true, true, "groups", USUAL "groups 0!; exit 126; "},
        {true, true, "gid", USUAL "groups 0; gid 78!; exit 126; "},
        {true, true, "uid", USUAL "groups 0; gid 78; uid 77!; exit 126; "},
        {false, false, "dies", USUAL "dies with its parent 1!; exit 126; "},
        {false, false, "parent", USUAL "dies with its parent 1; parent!; exit 126; "},
        {false, false, "in", USUAL "dies with its parent 1; parent; in /!; exit 126; "},
        {false, false, "fd 0", USUAL "dies with its parent 1; parent; in /; fd 0!; exit 126; "},
        {false, false, "fd 1", USUAL "dies with its parent 1; parent; in /; fd 0; fd 1!; exit 126; "},
        {false, false, "fd 2", USUAL "dies with its parent 1; parent; in /; fd 0; fd 1; fd 2!; exit 126; "},
        {false, false, "no call", USUAL REST "exit 127; "}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        struct process process = program("/bin/x");
        process_arg(&process, "-a %s", "b");
        process.as_postgres = rows[i].as_postgres;
        play.in = play.out = -1;
        play.root = rows[i].root;
        play.fails = rows[i].fails;
        play.child = true;
        if (setjmp(play.back) == 0) {
            pid_t pid;
            (void)!process_spawn(&process, &pid, NULL);
            CU_FAIL("a child comes back");
        }
        play.child = false;
        CHECK_STR(rows[i].fails == NULL ? "well" : rows[i].fails, play.log, rows[i].log);
        CU_ASSERT_EQUAL(play.signals, ~1u);
        if (play.in >= 0 && play.out >= 0) { /* would have its output in its log */
            struct stat in, null, out, log;
            CU_ASSERT_EQUAL(fstat(play.in, &in) + stat("/dev/null", &null), 0);
            CU_ASSERT_EQUAL(fstat(play.out, &out) + stat(process.log, &log), 0);
            CU_ASSERT_EQUAL(in.st_rdev, null.st_rdev);
            CU_ASSERT_EQUAL(out.st_ino, log.st_ino);
            CU_ASSERT_TRUE((fcntl(play.in, F_GETFD) & fcntl(play.out, F_GETFD) & FD_CLOEXEC) != 0);
            CU_ASSERT_TRUE((fcntl(play.out, F_GETFL) & O_APPEND) != 0);
        }
        (void)close(play.in);
        (void)close(play.out);
        end();
    }
}

static void test_who_runs_postgres(void)
{
    static const struct {
        bool root, nobody, error, found;
        uid_t uid;
        gid_t gid;
    } rows[] = {{false, true, true, true, 1000, 1001},
                {true, false, false, true, 77, 78},
                {true, true, false, false, 0, 0},
                {true, false, true, false, 0, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uid_t uid = 5;
        gid_t gid = 5;
        pid_t pid = 0;
        thole_error err = {.status = THOLE_OK};
        begin();
        play.root = rows[i].root;
        play.nobody = rows[i].nobody;
        play.user_error = rows[i].error;
        CU_ASSERT_EQUAL(process_postgres_user(&uid, &gid), rows[i].found);
        CU_ASSERT_EQUAL(uid, rows[i].uid);
        CU_ASSERT_EQUAL(gid, rows[i].gid);
        struct process process = program("/bin/true");
        process.as_postgres = true;
        if (!rows[i].found) {
            CU_ASSERT_EQUAL(process_spawn(&process, &pid, &err), THOLE_INVALID);
            CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no user postgres"));
        }
        end();
    }
}

/* ---- real processes ---- */

static void test_runs(void)
{
    static const struct {
        const char *script;
        thole_status status;
        const char *text, *log;
    } rows[] = {
        {"exit 0", THOLE_OK, "", ""},
        {"echo good; echo bad >&2", THOLE_OK, "", "bad"},
        {"echo good; echo; exit 3", THOLE_UNAVAILABLE, "/bin/sh failed: good", "good"},
        {"kill -9 $$", THOLE_UNAVAILABLE, "/bin/sh failed: ", ""},
        {"cat; pwd", THOLE_OK, "", "/"},
        {"test $(cut -d' ' -f5 /proc/self/stat) = $$ && echo leads", THOLE_OK, "", "leads"},
        {"set -- /proc/$$/fd/*; echo $#", THOLE_OK, "", "4"}}; /* one is the folder while it is read */
    int const inherited = dup(STDOUT_FILENO);                  /* a child must not keep it */
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char line[100];
        thole_error err = {.status = THOLE_OK};
        begin();
        unsigned const before = descriptors();
        struct process const process = shell(rows[i].script);
        play.interrupts = 2;
        thole_status const status = process_run(&process, &err);
        CHECK_STR(rows[i].script, thole_status_name(status), thole_status_name(rows[i].status));
        CHECK_STR(rows[i].script, err.text, rows[i].text);
        process_last_line(process.log, line, sizeof line);
        CHECK_STR(rows[i].script, line, rows[i].log);
        CU_ASSERT_EQUAL(descriptors(), before);
        CU_ASSERT_EQUAL(waitpid(-1, NULL, WNOHANG), -1); /* reaped */
        end();
    }
    begin();
    struct process const first = shell("echo first"), second = shell("true"),
                         none = program("/nonexistent/x");
    char line[100];
    CU_ASSERT_EQUAL(process_run(&first, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(process_run(&second, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(process_run(&none, NULL), THOLE_UNAVAILABLE);
    process_last_line(first.log, line, sizeof line);
    CHECK_STR("logs are appended to", line, "first");
    (void)close(inherited);
    end();
}

static void test_cannot_start(void)
{
    thole_error err = {.status = THOLE_OK};
    pid_t pid = 0;
    begin();
    unsigned const before = descriptors();
    struct process process = shell("true");
    (void)snprintf(process.log, sizeof process.log, "%s/none/log", base);
    CU_ASSERT_EQUAL(process_spawn(&process, &pid, &err), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot start /bin/sh with log "));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/none/log: No such file"));
    CU_ASSERT_EQUAL(process_run(&process, NULL), THOLE_UNAVAILABLE);
    process = shell("true");
    play.fails = "fork";
    CU_ASSERT_EQUAL(process_spawn(&process, &pid, &err), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "Resource temporarily unavailable"));
    CU_ASSERT_EQUAL(pid, 0);
    CU_ASSERT_EQUAL(descriptors(), before);
    end();
}

static void test_last_lines(void)
{
    static const struct {
        const char *text;
        size_t cap;
        const char *line;
    } rows[] = {{NULL, 50, ""},           {"", 50, ""},
                {"one", 50, "one"},       {"one\ntwo\n", 50, "two"},
                {"one\n\n\n", 50, "one"}, {"one\r\n\r\n", 50, "one"},
                {"one two", 5, "one "},   {"x", 1, ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char path[100], line[60];
        begin();
        unsigned const before = descriptors();
        (void)snprintf(path, sizeof path, "%s/file", base);
        FILE *const to = rows[i].text == NULL ? NULL : fopen(path, "we");
        if (to != NULL && fputs(rows[i].text, to) >= 0)
            (void)fclose(to);
        memset(line, 'x', sizeof line);
        process_last_line(path, line, rows[i].cap);
        CHECK_STR(rows[i].text == NULL ? "no file" : rows[i].text, line, rows[i].line);
        CU_ASSERT_EQUAL(descriptors(), before);
        end();
    }
}

static void test_waits(void)
{
    pid_t pid = 0;
    begin();
    struct process process = shell("sleep 100");
    CU_ASSERT_EQUAL_FATAL(process_spawn(&process, &pid, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(getpgid(pid), pid);
    uint64_t const began_ms = clock_monotonic_ms();
    CU_ASSERT_FALSE(process_ended(pid));
    CU_ASSERT_FALSE(process_wait(pid, 0));
    CU_ASSERT_EQUAL(play.paused_ms, 0);
    CU_ASSERT_FALSE(process_wait(pid, 50));
    CU_ASSERT_TRUE(clock_monotonic_ms() - began_ms >= 50);
    CU_ASSERT_TRUE(play.paused_ms > 0); /* no busy loop */
    CU_ASSERT_EQUAL(kill(pid, SIGKILL), 0);
    CU_ASSERT_TRUE(process_wait(pid, 20000));
    CU_ASSERT_EQUAL(kill(pid, 0), -1);
    CU_ASSERT_TRUE(process_ended(pid)); /* nobody's child: it has been reaped */
    CU_ASSERT_TRUE(process_wait(pid, 0));
    play.paused_ms = 0;
    process_pause_ms(1001);
    CU_ASSERT_EQUAL(play.paused_ms, 1001);
    end();
}

/* A process with a child in a session of its own and one in its group; their ids. */
static pid_t start_family(pid_t children[2])
{
    char path[100];
    pid_t pid = 0;
    int a = 0, b = 0;
    struct process const process =
        shell("setsid sleep 100 & a=$!; sleep 100 & while [ $(cut -d' ' -f6 /proc/$a/stat) "
              "!= $a ]; do sleep 0.01; done; echo $a $!; wait");
    CU_ASSERT_EQUAL_FATAL(process_spawn(&process, &pid, NULL), THOLE_OK);
    (void)snprintf(path, sizeof path, "%s/log", base);
    for (unsigned i = 0; i < 2000 && b == 0; i++) {
        char line[100];
        process_last_line(path, line, sizeof line);
        if (sscanf(line, "%d %d", &a, &b) != 2)
            (void)usleep(10000);
    }
    CU_ASSERT_TRUE_FATAL(a > 0 && b > 0);
    children[0] = a;
    children[1] = b;
    return pid;
}

static char state_of(pid_t pid)
{
    char path[60], line[300] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *const from = fopen(path, "re");
    if (from == NULL)
        return '-';
    if (fgets(line, sizeof line, from) == NULL)
        line[0] = '\0';
    (void)fclose(from);
    const char *const after = strrchr(line, ')');
    return after == NULL ? '-' : after[2];
}

static bool becomes(pid_t pid, const char *states)
{
    for (unsigned i = 0; i < 2000; i++) {
        if (strchr(states, state_of(pid)) != NULL)
            return true;
        (void)usleep(10000);
    }
    return false;
}

static void test_signals_reach_all(void)
{
    pid_t children[2];
    begin();
    pid_t const pid = start_family(children);
    process_signal(pid, SIGSTOP);
    CU_ASSERT_TRUE(becomes(pid, "T") && becomes(children[0], "T") && becomes(children[1], "T"));
    process_signal(pid, SIGCONT);
    CU_ASSERT_TRUE(becomes(pid, "SR") && becomes(children[0], "S") && becomes(children[1], "S"));
    process_kill9(pid);
    end();
}

static void test_kill_leaves_nothing(void)
{
    for (int adopting = 0; adopting < 2; adopting++) {
        pid_t children[2];
        int after = -1;
        begin();
        unsigned const before = descriptors();
        CU_ASSERT_EQUAL(__real_prctl(PR_SET_CHILD_SUBREAPER, (unsigned long)adopting), 0);
        pid_t const pid = start_family(children);
        process_kill9(pid);
        CU_ASSERT_EQUAL(state_of(pid), '-'); /* gone, and reaped */
        CU_ASSERT_EQUAL(state_of(children[0]), '-');
        CU_ASSERT_EQUAL(state_of(children[1]), '-');
        CU_ASSERT_EQUAL(__real_prctl(PR_GET_CHILD_SUBREAPER, (unsigned long)(uintptr_t)&after), 0);
        CU_ASSERT_EQUAL(after, adopting);
        CU_ASSERT_EQUAL(descriptors(), before);
        (void)__real_prctl(PR_SET_CHILD_SUBREAPER, 0UL);
        end();
    }
}

static const struct thole_test tests[] = {
    {"what a child does", test_what_a_child_does},
    {"who runs Postgres", test_who_runs_postgres},
    {"runs", test_runs},
    {"cannot start", test_cannot_start},
    {"last lines", test_last_lines},
    {"waits", test_waits},
    {"signals reach all", test_signals_reach_all},
    {"kill leaves nothing", test_kill_leaves_nothing},
};
THOLE_TEST_MAIN("server_process", tests)
