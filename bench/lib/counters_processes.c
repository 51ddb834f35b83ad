/* Counters of /proc and of the system for processes and threads. */
#include "counters.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES_MAX = 256, DEPTH_MAX = 8, COUNTERS_MAX = 4096, PATH_BYTES = 128 };

struct family { /* the processes that count, and whose they are */
    pid_t pids[PROCESSES_MAX];
    enum bench_role roles[PROCESSES_MAX];
    size_t len;
};

static bool read_text(const char *path, char *ret, size_t cap)
{
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t const n = fd < 0 ? -1 : read(fd, ret, cap - 1);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return false;
    ret[n] = '\0';
    return true;
}

/* ---- whose process it is ---- */

/* The fields of /proc/PID/stat after the name, which may contain anything; the first is the state. */
static const char *stat_fields(pid_t pid, char *text, size_t cap)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    const char *end = read_text(path, text, cap) ? strrchr(text, ')') : NULL;
    return end == NULL || end[1] == '\0' ? NULL : end + 2;
}

static pid_t parent_of(pid_t pid)
{
    char text[1024];
    long parent = 0;
    const char *fields = stat_fields(pid, text, sizeof text);
    return fields != NULL && sscanf(fields, "%*c %ld", &parent) == 1 ? (pid_t)parent : 0;
}

static bool role_of_root(const struct stand *stand, pid_t pid, enum bench_role *ret)
{
    struct {
        pid_t pid;
        enum bench_role role;
    } const roots[] = {{stand->client, ROLE_CLIENT},
                       {stand->remote, ROLE_CLIENT},
                       {stand->worker, ROLE_WORKER},
                       {stand->nats.pid, ROLE_NATS},
                       {stand->postgres.pid, ROLE_PG_REST}};
    for (size_t i = 0; i < STAND_ENGINES_MAX; i++)
        if (stand->engines[i] > 0 && stand->engines[i] == pid) {
            *ret = ROLE_ENGINE;
            return true;
        }
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        if (roots[i].pid > 0 && roots[i].pid == pid) {
            *ret = roots[i].role;
            return true;
        }
    return false;
}

static bool role_of(const struct stand *stand, pid_t pid, enum bench_role *ret)
{
    for (unsigned depth = 0; depth < DEPTH_MAX && pid > 1; depth++, pid = parent_of(pid))
        if (role_of_root(stand, pid, ret))
            return true;
    return false;
}

static bool find_family(struct stand *stand, struct family *ret)
{
    enum bench_role roles[PROCESSES_MAX];
    pid_t backends[PROCESSES_MAX];
    size_t backends_len = 0;
    DIR *const all = opendir("/proc");
    ret->len = 0;
    if (all == NULL || !postgres_backends(stand, roles, backends, PROCESSES_MAX, &backends_len)) {
        if (all != NULL)
            closedir(all);
        return false;
    }
    for (const struct dirent *entry; (entry = readdir(all)) != NULL && ret->len < PROCESSES_MAX;) {
        enum bench_role role;
        pid_t const pid =
            isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        if (pid == 0 || !role_of(stand, pid, &role))
            continue;
        bool own = false;
        for (size_t i = 0; i < backends_len; i++)
            if (backends[i] == pid) {
                role = roles[i];
                own = role == ROLES;
            }
        if (own) /* the ledger's own connection */
            continue;
        ret->pids[ret->len] = pid;
        ret->roles[ret->len++] = role;
    }
    closedir(all);
    return true;
}

/* ---- costs of processes and threads ---- */

static uint64_t status_number(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 10);
}

static struct thread_cost *thread_of(struct sample *sample, enum bench_role role, const char *name)
{
    for (size_t i = 0; i < sample->threads_len; i++)
        if (sample->threads[i].role == role && strcmp(sample->threads[i].name, name) == 0)
            return &sample->threads[i];
    if (sample->threads_len == THREADS_MAX)
        return NULL;
    struct thread_cost *const thread = &sample->threads[sample->threads_len++];
    *thread = (struct thread_cost){.role = role};
    (void)snprintf(thread->name, sizeof thread->name, "%s", name);
    return thread;
}

static void read_thread(struct sample *sample, enum bench_role role, const char *folder)
{
    char path[PATH_BYTES + 32], text[4096], name[ROLE_NAME_BYTES];
    uint64_t cpu_ns = 0;
    (void)snprintf(path, sizeof path, "%s/comm", folder);
    if (!read_text(path, name, sizeof name))
        return;
    name[strcspn(name, "\n")] = '\0';
    (void)snprintf(path, sizeof path, "%s/schedstat", folder);
    if (!read_text(path, text, sizeof text) || sscanf(text, "%" SCNu64, &cpu_ns) != 1)
        return;
    (void)snprintf(path, sizeof path, "%s/status", folder);
    if (!read_text(path, text, sizeof text))
        return;
    uint64_t const waits = status_number(text, "\nvoluntary_ctxt_switches:");
    sample->roles[role].waits += waits;
    sample->roles[role].preemptions += status_number(text, "\nnonvoluntary_ctxt_switches:");
    struct thread_cost *const thread = thread_of(sample, role, name);
    if (thread != NULL) {
        thread->count++;
        thread->cpu_ns += cpu_ns;
        thread->waits += waits;
    }
}

static void each_thread(pid_t pid,
                        void (*each)(void *arg, enum bench_role role, pid_t tid, const char *folder),
                        void *arg, enum bench_role role)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *const all = opendir(path);
    if (all == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(all)) != NULL;) {
        char folder[PATH_BYTES];
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        (void)snprintf(folder, sizeof folder, "/proc/%ld/task/%.20s", (long)pid, entry->d_name);
        each(arg, role, (pid_t)strtol(entry->d_name, NULL, 10), folder);
    }
    closedir(all);
}

static void on_thread(void *arg, enum bench_role role, pid_t tid, const char *folder)
{
    (void)tid;
    read_thread(arg, role, folder);
}

/* All threads that the process ever had. */
static bool process_cpu_ns(pid_t pid, uint64_t *ret)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return false;
    *ret = (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
    return true;
}

static void read_process(struct sample *sample, enum bench_role role, pid_t pid)
{
    char text[1024];
    uint64_t cpu_ns, system = 0;
    const char *fields = stat_fields(pid, text, sizeof text);
    if (fields == NULL || !process_cpu_ns(pid, &cpu_ns)) /* has ended meanwhile */
        return;
    (void)sscanf(fields, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %" SCNu64, &system);
    sample->roles[role].cpu_ns += cpu_ns;
    sample->roles[role].system_ns += system * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
    each_thread(pid, on_thread, sample, role);
}

static bool is_expected(const struct stand *stand, int role)
{
    bool const engine = stand->engines[0] > 0;
    switch (role) {
    case ROLE_CLIENT: return stand->client > 0;
    case ROLE_ENGINE:
    case ROLE_PG_ENGINE: return engine;
    case ROLE_WORKER:
    case ROLE_PG_WORKER: return stand->worker > 0;
    case ROLE_NATS: return true;
    default: return false;
    }
}

bool processes_read(struct stand *stand, struct sample *ret)
{
    static struct family family;
    if (!find_family(stand, &family))
        return bench_fail("counters", "/proc or pg_stat_activity cannot be read");
    for (size_t i = 0; i < family.len; i++)
        read_process(ret, family.roles[i], family.pids[i]);
    for (int role = 0; role < ROLES; role++)
        if (ret->roles[role].cpu_ns == 0 && is_expected(stand, role))
            return bench_fail_at("counters", "no process of %s was found", bench_role_names[role]);
    return true;
}

/* ---- system calls ---- */

static struct {
    int fd[COUNTERS_MAX];
    enum bench_role role[COUNTERS_MAX];
    size_t len;
    uint64_t event;
} counters;

static bool find_event(void)
{
    static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
    char path[PATH_BYTES], text[32];
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/events/raw_syscalls/sys_enter/id", places[i]);
        if (read_text(path, text, sizeof text)) {
            counters.event = strtoull(text, NULL, 10);
            return true;
        }
    }
    return false;
}

static void count_thread(void *arg, enum bench_role role, pid_t tid, const char *folder)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_TRACEPOINT, .size = sizeof attr, .config = counters.event, .inherit = 1};
    bool *const failed = arg;
    (void)folder;
    if (counters.len == COUNTERS_MAX || *failed)
        return;
    int const fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) {
        *failed = errno != ESRCH;
        return;
    }
    counters.fd[counters.len] = fd;
    counters.role[counters.len++] = role;
}

bool syscalls_begin(struct stand *stand)
{
    static struct family family;
    bool failed = !find_event() || !find_family(stand, &family);
    for (size_t i = 0; !failed && i < family.len; i++)
        each_thread(family.pids[i], count_thread, &failed, family.roles[i]);
    if (failed) {
        uint64_t ignored[ROLES];
        syscalls_end(ignored);
    }
    return !failed;
}

void syscalls_end(uint64_t ret[ROLES])
{
    memset(ret, 0, ROLES * sizeof *ret);
    for (size_t i = 0; i < counters.len; i++) {
        uint64_t n = 0;
        if (read(counters.fd[i], &n, sizeof n) == (ssize_t)sizeof n)
            ret[counters.role[i]] += n;
        close(counters.fd[i]);
    }
    counters.len = 0;
}

/* ---- allocations ---- */

static const uint64_t *allocation_pages[ROLES];

bool allocations_open(const struct stand *stand, enum bench_role role, char ret_path[128])
{
    int const n = snprintf(ret_path, 128, "%s/allocations.%d", stand->dir, (int)role);
    int const fd = n >= 128 ? -1 : open(ret_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    void *const at =
        fd < 0 || ftruncate(fd, 4096) != 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    allocation_pages[role] = at == MAP_FAILED ? NULL : at;
    return at != MAP_FAILED;
}

void allocations_read(struct sample *ret)
{
    for (int role = 0; role < ROLES; role++)
        if (allocation_pages[role] != NULL) {
            ret->roles[role].allocations = __atomic_load_n(&allocation_pages[role][0], __ATOMIC_RELAXED);
            ret->roles[role].bytes = __atomic_load_n(&allocation_pages[role][1], __ATOMIC_RELAXED);
        }
}
