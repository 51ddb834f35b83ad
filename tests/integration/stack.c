#include "stack.h"
#include "connection.h"
#include "process_parts.h"
#include <fcntl.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void must(thole_status status, const thole_error *err, const char *what)
{
    if (status == THOLE_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, thole_status_name(status), err->text);
    exit(1);
}

/* ---- two accounts ---- */

/* With $THOLE_TEST_ACCOUNTS clients, workers and gateways are in another account than the streams, unless the
 * test configures the servers itself. The value names queues; "any": what passes is of each. */
static struct {
    bool on;
    char urls[500]; /* with the other account's login */
} apart;

static const char api_prefix[] = "JS.thole.API";

/* A pattern for each queue has its name in the middle of a token, where NATS has no wildcard. */
#define OF_ANY_QUEUE "sed 's/q_any\\b/*/g; s/queues\\.any\\b/queues.*/g' | awk '!/service/ || !seen[$0]++'"

static void write_part(const struct stack *stack, const char *option, const char *name)
{
    char command[1024];
    int const n = snprintf(
        command, sizeof command,
        "%s doctor --nats-permissions worker,client,service,console,gateway -n default --partitions 32"
        " --queue %s --verb start,start-many,run,wait,signal,query,cancel,complete,fail,list,show,history,"
        "rejected,terminate,pause,resume,retry,delete,force-delete,prune,nodes,partitions,queue,call,timer"
        " --nats-api-prefix %s %s | " OF_ANY_QUEUE " >%s/%s.conf",
        THOLE_COMMAND, getenv("THOLE_TEST_ACCOUNTS"), api_prefix, option, stack->dir, name);
    if (n < 0 || (size_t)n >= sizeof command || system(command) != 0) /* NOLINT(cert-env33-c) */
        must(THOLE_INVALID, &(thole_error){.text = "what passes between two accounts"}, name);
}

/* Paths are relative to the folder of the configuration: nats in that of the stack, or one below. */
static const char *write_accounts(const struct stack *stack, bool cluster)
{
    static char config[512];
    const char *const above = cluster ? "../.." : "..";
    write_part(stack, "--exports-to APP", "exports");
    write_part(stack, "--imports-from THOLE", "imports");
    (void)snprintf(config, sizeof config,
                   "no_auth_user: hand\naccounts {\n"
                   " THOLE: { jetstream: enabled\n  users: [ { user: hand, password: hand } ]\n"
                   "  include \"%s/exports.conf\" }\n"
                   " APP: { users: [ { user: app, password: app } ]\n  include \"%s/imports.conf\" }\n}\n",
                   above, above);
    return config;
}

static bool is_apart(const char *role)
{
    return apart.on &&
           (strcmp(role, "worker") == 0 || strcmp(role, "gateway") == 0 || strcmp(role, "remote") == 0);
}

static void note_apart(const struct stack *stack)
{
    const struct server *const servers[] = {&stack->nats, &stack->others[0], &stack->others[1]};
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(servers) && servers[i]->kind == SERVER_NATS; i++)
        n += (size_t)snprintf(apart.urls + n, sizeof apart.urls - n, "%snats://app:app@127.0.0.1:%u",
                              i == 0 ? "" : ",", servers[i]->port);
}

/* ---- starting ---- */

static void start_nats(struct stack *stack, const char *dir, bool cluster, const char *config)
{
    static struct server servers[3];
    struct nats_server_options const nats = {.dir = dir, .config = config};
    if (cluster) {
        must(server_nats_cluster_start(&nats, 3, servers, &stack->err), &stack->err, "nats-server cluster");
        stack->nats = servers[0];
        stack->others[0] = servers[1];
        stack->others[1] = servers[2];
    } else {
        must(server_nats_start(&nats, &stack->nats, &stack->err), &stack->err, "nats-server");
    }
}

static void start(struct stack *stack, bool cluster, const char *config)
{
    char dir[SERVER_PATH_BYTES + 16];
    *stack = (struct stack){0};
    must(server_dir_create("thole-it", stack->dir, &stack->err), &stack->err, "folder");
    (void)chmod(stack->dir, 0755); /* Postgres runs as another user */
    snprintf(dir, sizeof dir, "%s/nats", stack->dir);
    mkdir(dir, 0755);
    apart.on = config == NULL && getenv("THOLE_TEST_ACCOUNTS") != NULL;
    start_nats(stack, dir, cluster, apart.on ? write_accounts(stack, cluster) : config);
    note_apart(stack);
    snprintf(dir, sizeof dir, "%s/pg", stack->dir);
    mkdir(dir, 0755);
    struct postgres_server_options const postgres = {.dir = dir, .no_fsync = true};
    must(server_postgres_start(&postgres, &stack->postgres, &stack->err), &stack->err, "postgres");
    snprintf(stack->effects, sizeof stack->effects, "%s/effects", stack->dir);
    snprintf(stack->tokens, sizeof stack->tokens, "%s/tokens", stack->dir);
    char urls[400];
    snprintf(urls, sizeof urls, "%s%s%s%s%s", stack->nats.url, cluster ? "," : "", stack->others[0].url,
             cluster ? "," : "", stack->others[1].url);
    setenv("THOLE_NATS_URL", urls, 1);
    setenv("THOLE_POSTGRES", stack->postgres.url, 1);
    setenv("THOLE_NAMESPACE", "default", 1);
    setenv("ORDERS_EFFECTS", stack->effects, 1);
    setenv("ORDERS_TOKENS", stack->tokens, 1);
    unsetenv("ORDERS_LACKS");
    unsetenv("ORDERS_WORK_MS");
}

void stack_start(struct stack *stack)
{
    start(stack, false, NULL);
}

void stack_start_configured(struct stack *stack, const char *nats_config)
{
    start(stack, false, nats_config);
}

void stack_start_cluster(struct stack *stack)
{
    start(stack, true, NULL);
}

void stack_start_cluster_configured(struct stack *stack, const char *nats_config)
{
    start(stack, true, nats_config);
}

static char *read_file(const char *path)
{
    struct stat st;
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    char *text = fstat(fd, &st) == 0 ? calloc(1, (size_t)st.st_size + 1) : NULL;
    ssize_t const n = text == NULL ? 0 : read(fd, text, (size_t)st.st_size);
    if (text != NULL && n >= 0)
        text[n] = '\0';
    close(fd);
    return text;
}

static bool is_report(const char *line)
{
    static const char *const marks[] = {"ERROR: AddressSanitizer", "ThreadSanitizer:", "LeakSanitizer",
                                        "UndefinedBehaviorSanitizer", "runtime error:"};
    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (strstr(line, marks[i]) != NULL)
            return true;
    return false;
}

/* Prints what sanitizers reported into the program's log; true when they did. Its exit code is not enough:
 * tests kill programs, and some reports do not change it. */
static bool sanitizer_spoke(const struct stack_program *program)
{
    enum { LINES_AFTER = 60 };
    bool spoke = false;
    size_t lines = 0;
    char *const all = read_file(program->log), *next = all;
    while (next != NULL && *next != '\0') {
        char *const line = next;
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        if (is_report(line)) {
            spoke = true;
            lines = 1 + LINES_AFTER;
        }
        if (lines > 0) {
            lines--;
            fprintf(stderr, "%s: %s\n", program->name, line);
        }
    }
    free(all);
    return spoke;
}

void stack_stop(struct stack *stack)
{
    bool spoke = false;
    for (size_t i = 0; i < stack->programs_len; i++) {
        (void)stack_terminate(&stack->programs[i], 20000);
        spoke |= sanitizer_spoke(&stack->programs[i]);
    }
    server_stop(&stack->nats);
    server_stop(&stack->others[0]);
    server_stop(&stack->others[1]);
    server_stop(&stack->postgres);
    if (getenv("THOLE_TEST_KEEP") == NULL)
        server_dir_remove(stack->dir);
    else
        fprintf(stderr, "kept: %s\n", stack->dir);
    if (spoke) {
        fprintf(stderr, "a sanitizer reported an error in a program under test\n");
        exit(1);
    }
}

static struct stack_program *find_program(struct stack *stack, const char *name)
{
    for (size_t i = 0; i < stack->programs_len; i++)
        if (strcmp(stack->programs[i].name, name) == 0)
            return &stack->programs[i];
    if (stack->programs_len == STACK_PROGRAMS_MAX)
        abort();
    struct stack_program *program = &stack->programs[stack->programs_len++];
    snprintf(program->name, sizeof program->name, "%s", name);
    char log[sizeof program->log];
    snprintf(log, sizeof log, "%s/%s.log", stack->dir, name);
    memcpy(program->log, log, sizeof log); /* gcc -O2 takes the folder for part of the destination */
    return program;
}

/* Where the programs are that tests start; a mutant has its own (tests/sim/mutants.sh). */
static const char *programs_folder(void)
{
    const char *const other = getenv("THOLE_TEST_PROGRAMS");
    return other == NULL ? THOLE_TEST_PROGRAMS : other;
}

static struct stack_program *prepare(struct stack *stack, struct process *process, const char *file,
                                     const char *name, const char *role)
{
    struct stack_program *program = find_program(stack, name);
    *process = (struct process){0};
    process_arg(process, "%s/%s", programs_folder(), file);
    process_arg(process, "%s", role);
    process_arg(process, "--log-level=debug");
    process_arg(process, "--log-format=logfmt");
    /* Each life has a name of its own, the same in each run: names say who owns what. */
    process_arg(process, "--node=%s-%u", name, ++program->lives);
    snprintf(process->log, sizeof process->log, "%s", program->log);
    return program;
}

/* Where a password may stand in a URL: not in a command line. */
static const struct {
    const char *flag, *variable;
} urls[] = {{"--nats=", "THOLE_NATS_URL"}, {"--postgres=", "THOLE_POSTGRES"}};

/* Sets the variable in place of the flag; false: it is another one. */
static bool set_url(const char *arg)
{
    for (size_t i = 0; i < ARRAY_LEN(urls); i++)
        if (strncmp(arg, urls[i].flag, strlen(urls[i].flag)) == 0) {
            setenv(urls[i].variable, arg + strlen(urls[i].flag), 1);
            return true;
        }
    return false;
}

static struct stack_program *launch(struct stack *stack, const char *file, const char *name, const char *role,
                                    va_list args)
{
    static struct process process; /* large */
    struct stack_program *program = prepare(stack, &process, file, name, role);
    char *before[ARRAY_LEN(urls)];
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        const char *const url = getenv(urls[i].variable);
        before[i] = url == NULL ? NULL : strdup(url);
    }
    for (const char *arg; (arg = va_arg(args, const char *)) != NULL;)
        if (!set_url(arg))
            process_arg(&process, "%s", arg);
    bool const told = getenv(urls[0].variable) != NULL && before[0] != NULL &&
                      strcmp(getenv(urls[0].variable), before[0]) != 0;
    if (is_apart(role) && !told) {
        setenv(urls[0].variable, apart.urls, 1);
        setenv("THOLE_NATS_API_PREFIX", api_prefix, 1);
    }
    must(process_spawn(&process, &program->pid, &stack->err), &stack->err, name);
    unsetenv("THOLE_NATS_API_PREFIX");
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        if (before[i] == NULL)
            unsetenv(urls[i].variable);
        else
            setenv(urls[i].variable, before[i], 1);
        free(before[i]);
    }
    return program;
}

struct stack_program *stack_program(struct stack *stack, const char *name, const char *role, ...)
{
    va_list args;
    va_start(args, role);
    struct stack_program *const program = launch(stack, "program_orders", name, role, args);
    va_end(args);
    return program;
}

struct stack_program *stack_program_with(struct stack *stack, const char *file, const char *name,
                                         const char *role, ...)
{
    va_list args;
    va_start(args, role);
    struct stack_program *const program = launch(stack, file, name, role, args);
    va_end(args);
    return program;
}

struct stack_program *stack_program_of(struct stack *stack, const char *file, const char *name,
                                       const char *role)
{
    return stack_program_with(stack, file, name, role, NULL);
}

static bool has_name(pid_t pid, const char *name)
{
    char path[64], comm[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *const file = fopen(path, "re");
    bool const read = file != NULL && fgets(comm, sizeof comm, file) != NULL;
    if (file != NULL)
        fclose(file);
    comm[strcspn(comm, "\n")] = '\0';
    return read && strcmp(comm, name) == 0;
}

pid_t stack_serving(const struct stack_program *program)
{
    pid_t pids[16];
    if (program->pid <= 0 || !has_name(program->pid, "thole-supervise"))
        return program->pid;
    int const n = process_children(program->pid, pids, ARRAY_LEN(pids));
    for (int i = 0; i < n; i++)
        if (!has_name(pids[i], "thole-reporter"))
            return pids[i];
    return 0;
}

static char process_state(pid_t pid)
{
    char path[64], state = 'X';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *const file = fopen(path, "re");
    if (file != NULL) {
        (void)fscanf(file, "%*d (%*[^)]) %c", &state);
        fclose(file);
    }
    return state;
}

bool stack_freeze(const struct stack_program *program)
{
    pid_t const pid = stack_serving(program);
    uint64_t const end = clock_monotonic_ms() + 10000;
    if (pid <= 0 || kill(pid, SIGSTOP) != 0)
        return false;
    while (process_state(pid) != 'T' && clock_monotonic_ms() < end)
        pause_ms(1);
    return process_state(pid) == 'T';
}

void stack_thaw(const struct stack_program *program)
{
    pid_t const pid = stack_serving(program);
    if (pid > 0)
        kill(pid, SIGCONT);
}

/* The one that serves dies with its supervisor, a moment later. */
void stack_kill9(struct stack_program *program)
{
    pid_t const serving = stack_serving(program);
    int const pidfd = serving > 0 && serving != program->pid ? (int)syscall(SYS_pidfd_open, serving, 0) : -1;
    if (program->pid > 0)
        process_kill9(program->pid);
    if (pidfd >= 0) {
        struct pollfd dead = {.fd = pidfd, .events = POLLIN};
        (void)poll(&dead, 1, 10000);
        (void)close(pidfd);
    }
    program->pid = 0;
}

int stack_ended(struct stack_program *program)
{
    int status = -1;
    if (program->pid <= 0 || waitpid(program->pid, &status, WNOHANG) != program->pid)
        return -1;
    program->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static pid_t find_child(pid_t parent, const char *name)
{
    pid_t pids[16];
    int const n = process_children(parent, pids, ARRAY_LEN(pids));
    for (int i = 0; i < n; i++) {
        if (has_name(pids[i], name))
            return pids[i];
    }
    return 0;
}

pid_t stack_child(const struct stack_program *program, const char *name)
{
    pid_t found = 0;
    for (uint64_t const end = clock_monotonic_ms() + 30000; found == 0 && clock_monotonic_ms() < end;) {
        found = find_child(program->pid, name);
        if (found == 0)
            pause_ms(5);
    }
    return found;
}

int stack_terminate(struct stack_program *program, uint64_t wait_ms)
{
    if (program->pid <= 0)
        return 0;
    kill(program->pid, SIGTERM);
    uint64_t const end = clock_monotonic_ms() + wait_ms;
    while (clock_monotonic_ms() < end) {
        int const code = stack_ended(program);
        if (code >= 0)
            return code;
        pause_ms(2);
    }
    fprintf(stderr, "%s did not stop within %llu ms\n", program->name, (unsigned long long)wait_ms);
    stack_kill9(program);
    return -1;
}

const char *stack_sql(const struct stack *stack, const char *statement)
{
    static char value[512];
    PGconn *pg = PQconnectdb(stack->postgres.url);
    PGresult *result = PQexec(pg, statement);
    bool const good = PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK;
    CU_ASSERT_TRUE(good);
    if (!good)
        fprintf(stderr, "  %s\n", PQerrorMessage(pg));
    snprintf(value, sizeof value, "%s", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(pg);
    return value;
}

/* The line has the pieces of the pattern between the '*', in their order. */
static bool line_has(const char *line, const char *pattern)
{
    char piece[512];
    for (size_t len; *pattern != '\0'; pattern += pattern[len] == '*' ? len + 1 : len) {
        len = strcspn(pattern, "*");
        if (len >= sizeof piece)
            abort();
        snprintf(piece, sizeof piece, "%.*s", (int)len, pattern);
        if ((line = strstr(line, piece)) == NULL)
            return false;
        line += len;
    }
    return true;
}

size_t stack_count(const char *path, const char *pattern)
{
    size_t n = 0;
    char *all = read_file(path), *line = all;
    while (line != NULL && *line != '\0') { /* each with its line end, which a pattern may have */
        size_t const len = strcspn(line, "\n") + 1;
        char *const copy = strndup(line, len);
        n += line_has(copy, pattern) ? 1 : 0;
        line += strlen(copy);
        free(copy);
    }
    free(all);
    return n;
}

/* The end of a log, for the examination of a failed test. */
static void print_log_end(const struct stack_program *program, const char *text)
{
    enum { END_BYTES = 4000 };
    char *const all = read_file(program->log);
    size_t const len = all == NULL ? 0 : strlen(all);
    (void)fprintf(stderr, "\n  no \"%s\" in the log, which ends with:\n%s\n", text,
                  len > END_BYTES ? all + len - END_BYTES
                  : len > 0       ? all
                                  : "nothing");
    free(all);
}

bool stack_logged(const struct stack_program *program, const char *text, size_t times, uint64_t wait_ms)
{
    uint64_t const end = clock_monotonic_ms() + wait_ms;
    for (;;) {
        if (stack_count(program->log, text) >= times)
            return true;
        if (clock_monotonic_ms() >= end) {
            print_log_end(program, text);
            return false;
        }
        pause_ms(5);
    }
}

uint64_t stack_log_number(const struct stack_program *program, const char *name)
{
    char key[64];
    uint64_t value = UINT64_MAX;
    char *all = read_file(program->log);
    snprintf(key, sizeof key, "%s=", name);
    for (const char *at = all; at != NULL && (at = strstr(at, key)) != NULL; at++)
        value = strtoull(at + strlen(key), NULL, 10);
    free(all);
    return value;
}

thole_client *stack_client(struct stack *stack)
{
    thole_client *client = NULL;
    thole_client_options options;
    uint64_t const end = clock_monotonic_ms() + 30000;
    thole_client_options_init(&options);
    if (apart.on) {
        options.nats_url = apart.urls;
        options.nats_api_prefix = api_prefix;
    }
    for (;;) {
        thole_status const status = thole_client_open(&options, &client, &stack->err);
        if (status == THOLE_OK)
            return client;
        if (clock_monotonic_ms() >= end)
            must(status, &stack->err, "client");
        pause_ms(50);
    }
}

struct connection *stack_connect(struct stack *stack)
{
    struct connection *connection = NULL;
    struct connection_options const options = {.url = getenv("THOLE_NATS_URL"),
                                               .name = "test",
                                               .connect_timeout_ms = 5000,
                                               .request_timeout_ms = 5000};
    must(connection_open(&options, &connection, &stack->err), &stack->err, "connection");
    return connection;
}

struct event_kinds {
    char text[2048];
};

static thole_status add_kind(void *arg, const thole_history_event *event)
{
    struct event_kinds *const kinds = arg;
    size_t const len = strlen(kinds->text);
    (void)snprintf(kinds->text + len, sizeof kinds->text - len, "%s%" PRIu64 ":%s", len > 0 ? " " : "",
                   event->execution, event->kind);
    return THOLE_OK;
}

const char *stack_history(thole_client *client, const char *id)
{
    static struct event_kinds kinds;
    kinds.text[0] = '\0';
    thole_status const status = thole_client_history(client, thole_slice_from(id), add_kind, &kinds, NULL);
    return status == THOLE_OK ? kinds.text : thole_status_name(status);
}

const char *stack_outcome(thole_client *client, const char *id, uint64_t wait_ms,
                          thole_instance_status *ret_status)
{
    static char text[4096];
    thole_outcome outcome = {0};
    thole_error err = {0};
    *ret_status = THOLE_INSTANCE_UNKNOWN;
    thole_status const status = thole_client_wait(client, thole_slice_from(id), wait_ms, &outcome, &err);
    if (status != THOLE_OK) {
        fprintf(stderr, "wait %s: %s %s\n", id, thole_status_name(status), err.text);
        return "";
    }
    *ret_status = outcome.status;
    snprintf(text, sizeof text, "%.*s", THOLE_FMT(outcome.output));
    thole_outcome_release(&outcome);
    return text;
}

uint64_t now_us(void)
{
    return clock_monotonic_us();
}

void pause_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
}

void stack_run_many(struct stack *stack, thole_client *client, const char *prefix, int n, uint64_t wait_ms)
{
    char id[64];
    for (int i = 0; i < n; i++) {
        (void)snprintf(id, sizeof id, "%s-%d", prefix, i);
        CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("steps"), THOLE_STR("in"), NULL,
                                    &stack->err),
                 &stack->err);
    }
    for (int i = 0; i < n; i++) {
        thole_outcome outcome;
        (void)snprintf(id, sizeof id, "%s-%d", prefix, i);
        CHECK_OK(thole_client_wait(client, thole_slice_from(id), wait_ms, &outcome, &stack->err),
                 &stack->err);
        thole_outcome_release(&outcome);
    }
}

const char *stack_shell(const char *line)
{
    enum { SHELL_BYTES = 256 * 1024 };
    static char said[SHELL_BYTES], output[SHELL_BYTES - 32];
    FILE *const from = popen(line, "r");
    size_t const len = from == NULL ? 0 : fread(output, 1, sizeof output - 1, from);
    int const status = from == NULL ? -1 : pclose(from);
    output[len] = '\0';
    (void)snprintf(said, sizeof said, "%d: %s", WIFEXITED(status) ? WEXITSTATUS(status) : -1, output);
    return said;
}
