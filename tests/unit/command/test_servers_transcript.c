/* Servers that are started, stopped and started again: servers.transcript has calls ("$ CALL WORD … | CALL
 * …"), each followed by the commands and questions, the server's data, and its folder. Processes, ports and
 * probes are played, the folder is real. With THOLE_WRITE_TRANSCRIPT=1 in the environment the file is written
 * again, to be read and committed.
 *   KEY=VALUE          an option; %XX is a byte
 *   QUESTION=ANSWERS   a letter for each time that it is asked (y, n; the last one stays): spawn, run, ended,
 *                      ready, places, waited, open, found; also "root" and "user=n"; write, close */
#include "clock.h"
#include "server_process.h"
#include "thole_cunit.h"
#include "transcript.h"
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/command/servers.transcript"
enum { WORDS_MAX = 24, TEXT_BYTES = 16384, ANSWERS = 10, SERVERS = SERVER_CLUSTER_MAX };

static struct {
    FILE *to;
    char base[64], last[1024];
    unsigned times; /* repetitions of the last line */
    char *words[WORDS_MAX];
    size_t len;
    const char *answers[ANSWERS]; /* the remaining ones of each question */
    uint64_t now_ms;
    pid_t pid;
    uint16_t port;
    bool inside; /* libc is the product's */
    struct server servers[SERVERS];
    size_t servers_len;
    thole_error err;
} play;

/* ---- words ---- */

static const char *const questions[ANSWERS] = {"spawn",  "run",  "ended", "ready", "places",
                                               "waited", "open", "found", "write", "close"};

/* The value of KEY=, with its bytes; NULL: it has none. */
static const char *option(const char *key)
{
    static char room[4][TEXT_BYTES];
    static unsigned turn;
    char *const to = room[turn++ % 4];
    size_t const len = strlen(key);
    for (size_t i = 0; i < play.len; i++)
        if (strncmp(play.words[i], key, len) == 0 && play.words[i][len] == '=') {
            size_t n = 0;
            unsigned byte;
            for (const char *at = play.words[i] + len + 1; *at != '\0'; at++) {
                byte = (unsigned char)*at;
                if (*at == '%' && sscanf(at + 1, "%2x", &byte) == 1)
                    at += 2;
                if (*at == '@' && at[1] >= '0' && at[1] <= '9') { /* @N: so many letters */
                    char *end;
                    for (unsigned long more = strtoul(at + 1, &end, 10); more > 0; more--)
                        to[n++] = 'a';
                    at = end - 1;
                    continue;
                }
                to[n++] = (char)byte;
            }
            to[n] = '\0';
            return to;
        }
    return NULL;
}

static uint64_t number_of(const char *key)
{
    const char *const value = option(key);
    return value == NULL ? 0 : strtoull(value, NULL, 10);
}

static bool has(const char *word)
{
    for (size_t i = 0; i < play.len; i++)
        if (strcmp(play.words[i], word) == 0)
            return true;
    return false;
}

static void begin_answers(void)
{
    static char room[ANSWERS][32];
    for (size_t i = 0; i < ANSWERS; i++) {
        const char *const script = option(questions[i]);
        if (script == NULL)
            continue;
        (void)snprintf(room[i], sizeof room[i], "%s", script);
        play.answers[i] = room[i];
    }
}

static bool answer(const char *question, bool usual)
{
    for (size_t i = 0; i < ANSWERS; i++)
        if (strcmp(questions[i], question) == 0 && play.answers[i] != NULL && *play.answers[i] != '\0') {
            bool const yes = *play.answers[i] == 'y';
            play.answers[i] += play.answers[i][1] != '\0';
            return yes;
        }
    return usual;
}

/* ---- the transcript ---- */

/* With the folder's name replaced. */
static void put(const char *text)
{
    size_t const len = strlen(play.base);
    for (const char *at = text; *at != '\0'; at++)
        if (strncmp(at, play.base, len) == 0) {
            (void)fputs("BASE", play.to);
            at += len - 1;
        } else {
            (void)fputc(*at, play.to);
        }
}

static void flush_said(void)
{
    if (play.last[0] != '\0')
        put(play.last);
    if (play.times > 1)
        (void)fprintf(play.to, " (%u times)", play.times);
    if (play.last[0] != '\0')
        (void)fputc('\n', play.to);
    play.last[0] = '\0';
    play.times = 0;
}

static void say(const char *fmt, ...) THOLE_PRINTF(1, 2);
static void say(const char *fmt, ...)
{
    char text[sizeof play.last] = "  ";
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text + 2, sizeof text - 2, fmt, args);
    va_end(args);
    if (strcmp(text, play.last) != 0)
        flush_said();
    (void)snprintf(play.last, sizeof play.last, "%s", text);
    play.times++;
}

/* ---- processes ---- */

static void put_file(const char *path)
{
    char bytes[TEXT_BYTES];
    FILE *const from = fopen(path, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    size_t const n = fread(bytes, 1, sizeof bytes - 1, from);
    (void)fclose(from);
    bytes[n] = '\0';
    for (char *line = bytes, *next; *line != '\0'; line = next) {
        next = line + strcspn(line, "\n");
        bool const more = *next == '\n';
        *next = '\0';
        say("    %s", line);
        next += more;
    }
}

static void run(const char *what, const struct process *process)
{
    say("%s%s, log %s:", what, process->as_postgres ? " as postgres" : "", process->log);
    for (size_t i = 0; i < process->len; i++) {
        say("    %s", process->text[i]);
        struct stat info;
        if (strncmp(process->text[i], "--pwfile=", 9) == 0 && stat(process->text[i] + 9, &info) == 0) {
            say("      mode %03o", (unsigned)info.st_mode & 0777);
            put_file(process->text[i] + 9);
        }
    }
    FILE *const log = fopen(process->log, "ae");
    if (log != NULL && fprintf(log, "it begins\nit says no\n\n") > 0)
        (void)fclose(log);
}

thole_status __wrap_process_spawn(const struct process *process, pid_t *ret_pid, thole_error *reterr)
{
    run("spawns", process);
    if (!answer("spawn", true))
        return thole_fail(reterr, THOLE_UNAVAILABLE, "cannot start it");
    *ret_pid = ++play.pid;
    return THOLE_OK;
}

/* initdb makes its configuration. */
thole_status __wrap_process_run(const struct process *process, thole_error *reterr)
{
    char path[200];
    run("runs", process);
    (void)snprintf(path, sizeof path, "%s/data/postgresql.conf", play.base);
    FILE *const conf = fopen(path, "we");
    if (conf != NULL && fprintf(conf, "# by initdb\n") > 0)
        (void)fclose(conf);
    return answer("run", true) ? THOLE_OK : thole_fail(reterr, THOLE_UNAVAILABLE, "it failed");
}

bool __wrap_process_ended(pid_t pid)
{
    bool const yes = answer("ended", false);
    if (yes)
        say("%d has ended", (int)pid);
    return yes;
}

bool __wrap_process_wait(pid_t pid, uint64_t wait_ms)
{
    bool const yes = answer("waited", true);
    say("waits for %d, %u ms: %s", (int)pid, (unsigned)wait_ms, yes ? "ended" : "not ended");
    return yes;
}

void __wrap_process_kill9(pid_t pid)
{
    say("kills %d", (int)pid);
}

void __wrap_process_signal(pid_t pid, int number)
{
    say("signal %s to all of %d", number == SIGCONT ? "CONT" : number == SIGSTOP ? "STOP" : "?", (int)pid);
}

int __wrap_kill(pid_t pid, int number)
{
    say("signal %s to %d", number == SIGINT ? "INT" : number == SIGTERM ? "TERM" : "?", (int)pid);
    return 0;
}

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    static bool again;
    (void)info;
    again = !again;
    errno = EINTR;
    say("waits until %d has stopped%s", (int)id, again ? ", interrupted" : "");
    CU_ASSERT_EQUAL(type, P_PID);
    if (has("gone")) {
        CU_ASSERT_FATAL(play.times == 1); /* would wait for ever */
        errno = ECHILD;
        return -1;
    }
    CU_ASSERT_EQUAL(options, WSTOPPED | WEXITED | WNOWAIT);
    return again ? -1 : 0;
}

bool __wrap_process_postgres_user(uid_t *uid, gid_t *gid)
{
    *uid = 77;
    *gid = 78;
    return !has("user=n");
}

void __wrap_process_pause_ms(unsigned ms)
{
    play.now_ms += ms;
}

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

/* ---- probes ---- */

bool __wrap_nats_answers(const struct server *server)
{
    bool const yes = answer("ready", true);
    say("asks NATS on %u: %s", server->port, yes ? "ready" : "not ready");
    return yes;
}

bool __wrap_nats_places(const struct server *server, size_t replicas)
{
    bool const yes = answer("places", true);
    say("asks NATS on %u for %zu replicas: %s", server->port, replicas, yes ? "made" : "not made");
    return yes;
}

bool __wrap_postgres_answers(uint16_t port)
{
    bool const yes = answer("ready", true);
    say("asks Postgres on %u: %s", port, yes ? "ready" : "not ready");
    return yes;
}

uint16_t __wrap_server_free_port(void)
{
    return ++play.port;
}

bool __wrap_server_port_is_open(uint16_t port)
{
    bool const yes = answer("open", false);
    if (yes)
        say("port %u is open", port);
    return yes;
}

static thole_status find(const char *path, char *ret, size_t cap, thole_error *reterr)
{
    (void)snprintf(ret, cap, "%s", path);
    return answer("found", true) ? THOLE_OK : thole_fail(reterr, THOLE_NOT_FOUND, "there is none");
}

thole_status __wrap_server_find_nats(char *ret, size_t cap, thole_error *reterr)
{
    return find("/bin/nats-server", ret, cap, reterr);
}

thole_status __wrap_server_find_postgres(char *ret, size_t cap, thole_error *reterr)
{
    return find("/pg/bin", ret, cap, reterr);
}

/* ---- the system ---- */

uid_t __wrap_geteuid(void)
{
    return has("root") ? 0 : 1000;
}

int __wrap_lchown(const char *path, uid_t uid, gid_t gid)
{
    say("gives %s to %u:%u", path, uid, gid);
    errno = EPERM;
    return has("unowned") ? -1 : 0;
}

int __wrap_shmctl(int id, int what, struct shmid_ds *data)
{
    (void)data;
    CU_ASSERT_EQUAL(what, IPC_RMID);
    say("removes segment %d", id);
    return 0;
}

ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
    return __real_write(fd, bytes, play.inside && !answer("write", true) ? len - 1 : len);
}

int __real_close(int fd);
int __wrap_close(int fd)
{
    int const ret = __real_close(fd);
    return play.inside && !answer("close", true) ? -1 : ret;
}

/* ---- the folder ---- */

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *paths[100];
static size_t paths_len;

static int take_path(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind;
    if (place->level > 0 && paths_len < ARRAY_LEN(paths))
        paths[paths_len++] = strdup(path);
    return 0;
}

static void put_folder(void)
{
    paths_len = 0;
    CU_ASSERT_EQUAL(nftw(play.base, take_path, 8, FTW_PHYS), 0);
    qsort(paths, paths_len, sizeof *paths, compare_paths);
    for (size_t i = 0; i < paths_len; i++) {
        struct stat info;
        CU_ASSERT_EQUAL(lstat(paths[i], &info), 0);
        bool const folder = S_ISDIR(info.st_mode);
        say("%s%s %03o%s", paths[i] + strlen(play.base) + 1, folder ? "/" : "", (unsigned)info.st_mode & 0777,
            S_ISLNK(info.st_mode) ? " link" : "");
        if (S_ISREG(info.st_mode) && strstr(paths[i], ".log") == NULL)
            put_file(paths[i]);
        free(paths[i]);
    }
    flush_said();
}

/* ---- calls ---- */

static const char *dir(void)
{
    static char path[600];
    const char *const below = option("dir");
    if (below != NULL && below[0] == '/')
        (void)snprintf(path, sizeof path, "%s", below);
    else
        (void)snprintf(path, sizeof path, "%s%s%s", play.base, below == NULL ? "" : "/",
                       below == NULL ? "" : below);
    return has("nowhere") ? NULL : path;
}

static thole_status call_nats(void)
{
    struct nats_server_options const options = {.dir = dir(),
                                                .port = (uint16_t)number_of("port"),
                                                .sync_always = has("sync"),
                                                .max_payload_bytes = number_of("payload"),
                                                .password = option("password"),
                                                .config = option("config")};
    play.servers_len = 1;
    return server_nats_start(&options, play.servers, &play.err);
}

static thole_status call_cluster(void)
{
    struct nats_server_options const options = {.dir = dir(), .config = option("config")};
    play.servers_len = number_of("members");
    return server_nats_cluster_start(&options, play.servers_len, play.servers, &play.err);
}

static thole_status call_cluster_restart(void)
{
    return server_nats_cluster_restart(play.servers, play.servers_len, &play.err);
}

static thole_status call_postgres(void)
{
    struct postgres_server_options const options = {.dir = dir(),
                                                    .port = (uint16_t)number_of("port"),
                                                    .password = option("password"),
                                                    .no_fsync = has("no_fsync"),
                                                    .config = option("config")};
    play.servers_len = 1;
    return server_postgres_start(&options, play.servers, &play.err);
}

static thole_status call_restart(void)
{
    return server_restart(play.servers, &play.err);
}

static thole_status call_wait(void)
{
    return server_wait_ready(play.servers, &play.err);
}

static thole_status call_stop(void)
{
    server_stop(play.servers);
    return THOLE_OK;
}

static thole_status call_kill(void)
{
    server_kill9(play.servers);
    return THOLE_OK;
}

static thole_status call_pause(void)
{
    server_pause(play.servers);
    return THOLE_OK;
}

static thole_status call_resume(void)
{
    server_resume(play.servers);
    return THOLE_OK;
}

/* put PATH TEXT: a file of the test's; folder PATH MODE; link PATH TO */
static thole_status call_put(void)
{
    char path[200];
    (void)snprintf(path, sizeof path, "%s/%s", play.base, option("file"));
    FILE *const to = fopen(path, "we");
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    (void)fputs(option("text"), to);
    (void)fclose(to);
    return THOLE_OK;
}

static thole_status call_folder(void)
{
    char path[200];
    (void)snprintf(path, sizeof path, "%s/%s", play.base, option("name"));
    (void)mkdir(path, 0755);
    return chmod(path, (mode_t)strtoul(option("mode"), NULL, 8)) == 0 ? THOLE_OK : THOLE_INVALID;
}

static thole_status call_link(void)
{
    char path[200], to[200];
    (void)snprintf(path, sizeof path, "%s/%s", play.base, option("name"));
    (void)snprintf(to, sizeof to, "%s/%s", play.base, option("to"));
    return symlink(to, path) == 0 ? THOLE_OK : THOLE_INVALID;
}

static thole_status call_write(void)
{
    char path[6000];
    (void)snprintf(path, sizeof path, "%s/%s", play.base, option("file"));
    size_t const more = number_of("upto");
    for (size_t len = strlen(path); len < more; len++)
        path[len] = 'a', path[len + 1] = '\0';
    return server_write_private(path, option("text"), &play.err);
}

/* TMPDIR=… */
static thole_status call_dir(void)
{
    char made[SERVER_PATH_BYTES] = "", tmp[200];
    struct stat info;
    const char *const below = option("tmp"), *const prefix = option("prefix");
    (void)snprintf(tmp, sizeof tmp, "%s%s", below != NULL && below[0] == '+' ? play.base : "",
                   below == NULL     ? ""
                   : below[0] == '+' ? below + 1
                                     : below);
    if (below == NULL)
        (void)unsetenv("TMPDIR");
    else
        (void)setenv("TMPDIR", tmp, 1);
    thole_status const status = server_dir_create(prefix, made, &play.err);
    (void)unsetenv("TMPDIR");
    if (status != THOLE_OK)
        return status;
    CU_ASSERT_EQUAL(stat(made, &info), 0);
    CU_ASSERT_EQUAL(strlen(strrchr(made, '.')), 7);
    *strrchr(made, '.') = '\0';
    say("%s, mode %03o", made, (unsigned)info.st_mode & 0777);
    made[strlen(made)] = '.';
    CU_ASSERT_EQUAL(rmdir(made), 0);
    return THOLE_OK;
}

static thole_status call_remove(void)
{
    server_dir_remove(has("null") ? NULL : has("empty") ? "" : dir());
    return THOLE_OK;
}

static const struct {
    const char *name;
    thole_status (*call)(void);
} calls[] = {
    {"nats", call_nats},         {"cluster", call_cluster}, {"cluster_restart", call_cluster_restart},
    {"postgres", call_postgres}, {"restart", call_restart}, {"wait", call_wait},
    {"stop", call_stop},         {"kill", call_kill},       {"pause", call_pause},
    {"resume", call_resume},     {"put", call_put},         {"folder", call_folder},
    {"link", call_link},         {"write", call_write},     {"dir", call_dir},
    {"remove", call_remove},
};

/* ---- lines ---- */

static void put_server(const struct server *server)
{
    if (server->kind == SERVER_NONE) {
        CU_ASSERT_EQUAL(server->pid, 0);
        CU_ASSERT_EQUAL(server->port, 0);
        return;
    }
    say("server: %s pid %d port %u dir %s program %s url %s password %s%s",
        server->kind == SERVER_NATS ? "nats" : "postgres", (int)server->pid, server->port, server->dir,
        server->program, server->url, server->password[0] == '\0' ? "-" : server->password,
        server->no_fsync ? " no fsync" : "");
}

static thole_status play_call(char *words)
{
    char *save = NULL;
    const char *const name = strtok_r(words, " ", &save);
    play.len = 0;
    for (char *word = strtok_r(NULL, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        CU_ASSERT_FATAL(play.len < WORDS_MAX);
        play.words[play.len++] = word;
    }
    begin_answers();
    memset(&play.err, 0, sizeof play.err);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        if (strcmp(calls[i].name, name) == 0) {
            play.inside = strcmp(name, "put") != 0;
            thole_status const status = calls[i].call();
            play.inside = false;
            return status;
        }
    CU_FAIL_FATAL("no such call");
    return THOLE_CORRUPT;
}

static void play_line(const char *text, FILE *to)
{
    char *const copy = strdup(text), *at = copy;
    memset(&play, 0, sizeof play);
    play.to = to;
    play.now_ms = 1000;
    play.pid = 5000;
    play.port = 21000;
    (void)snprintf(play.base, sizeof play.base, "/tmp/thole-test-servers.XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(play.base));
    (void)chmod(play.base, 0711);
    for (char *words; (words = strsep(&at, "|")) != NULL;) {
        uint64_t const began_ms = play.now_ms;
        thole_status const status = play_call(words);
        flush_said();
        (void)fprintf(to, "  = %s%s", thole_status_name(status), status == THOLE_OK ? "" : ": ");
        put(status == THOLE_OK ? "" : play.err.text);
        if (play.now_ms > began_ms)
            (void)fprintf(to, " after %u ms", (unsigned)(play.now_ms - began_ms));
        (void)fputc('\n', to);
        for (size_t i = 0; i < play.servers_len; i++)
            put_server(&play.servers[i]);
        flush_said();
    }
    put_folder();
    server_dir_remove(play.base);
    CU_ASSERT_NOT_EQUAL(access(play.base, F_OK), 0);
    free(copy);
}

static void test_transcript(void)
{
    mode_t const mask = umask(0);
    transcript_check(TRANSCRIPT, play_line);
    (void)umask(mask);
}

static const struct thole_test tests[] = {
    {"transcript", test_transcript},
};
THOLE_TEST_MAIN("servers_transcript", tests)
