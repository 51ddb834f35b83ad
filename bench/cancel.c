/*
 * From the request to cancel to the token that fires, as handlers see it.
 *   thole dev -- cancel [abcde]      default: all of them, one after the other
 *   a  1,000 activities of as many instances run; the instances are cancelled one after the other
 *   b  the same, and the worker never gets a push: renewals find out (lease 30 s, the default)
 *   c  2,000 activities of one instance run; it is cancelled
 *   d  100 instances with 5 activities each hold all slots, others wait; all are cancelled at once
 *   e  10,000 activities of one instance wait in the queue; it is cancelled
 * An engine and a worker run in two children of this process. Handlers note what they see in shared memory;
 * when a cancellation was committed says the time at which the server stored its record. Times in
 * milliseconds: of the request (client), of its answer, of the commit; each until the token fired.
 */
#include "histories.h"
#include "reader.h"
#include "thole/client.h"
#include "thole/program.h"
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ONES = 1000,         /* a, b */
    MANY = 2000,         /* c */
    GROUPS = 100,        /* d */
    GROUP = 5,           /* d: activities of each */
    QUEUED = 10000,      /* e */
    BLOCKERS = 4,        /* e: slots, all taken */
    ACTIVITIES = 12000,  /* at most, of one scenario */
    INSTANCES = 1100,    /* likewise */
    CLIENT_THREADS = 8,  /* d */
    WAIT_S = 120,        /* for anything */
    B_SPREAD_MS = 20000, /* b: requests are spread over two renewal intervals */
};

/* ---- notes of the handlers, in memory that all processes share ---- */

struct notes {
    atomic_uint started, fired, marked;
    atomic_bool release;
    atomic_uint_least64_t at_ns[ACTIVITIES]; /* when the token fired; of a mark: when it was started */
};
static struct notes *notes;
static char ns_name[THOLE_NAME_BYTES_MAX + 1], queue[32];

static void die(const char *what, const thole_error *error)
{
    fprintf(stderr, "cancel: %s: %s\n", what, error == NULL ? "" : error->text);
    exit(1);
}

static void until(atomic_uint *count, unsigned least, const char *what)
{
    uint64_t const end_ns = bench_wall_ns() + WAIT_S * UINT64_C(1000000000);
    while (atomic_load(count) < least) {
        if (bench_wall_ns() > end_ns) {
            fprintf(stderr, "cancel: %u of %u %s\n", atomic_load(count), least, what);
            exit(1);
        }
        bench_nap_us(200);
    }
}

/* ---- the program under test ---- */

/* Input: "FIRST N ACTIVITY QUEUE": so many calls at once, numbered from FIRST. */
static thole_status fan(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    unsigned first, n;
    char text[128], activity[32], name[32];
    (void)ret_output;
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(input));
    if (sscanf(text, "%u %u %31s %31s", &first, &n, activity, name) != 4 || n > ACTIVITIES)
        return THOLE_INVALID;
    thole_call_options const options = {.size = sizeof options, .queue = thole_slice_from(name)};
    thole_task *const tasks = thole_alloc(ctx, n * sizeof *tasks);
    if (tasks == NULL)
        return THOLE_NOMEM;
    for (unsigned i = 0; i < n; i++)
        tasks[i] =
            thole_call_with(ctx, thole_slice_from(activity), thole_format(ctx, "%u", first + i), &options);
    return thole_await_all(ctx, tasks, n, NULL);
}

static size_t index_of(thole_slice input)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(input));
    size_t const i = strtoul(text, NULL, 10);
    return i < ACTIVITIES ? i : 0;
}

/* Runs until its token fires. */
static thole_status hold(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    atomic_fetch_add(&notes->started, 1);
    while (thole_activity_wait(act, 3600 * 1000) != THOLE_CANCELLED)
        continue;
    atomic_store(&notes->at_ns[index_of(input)], bench_wall_ns());
    atomic_fetch_add(&notes->fired, 1);
    return THOLE_CANCELLED;
}

static thole_status mark(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)ret_output;
    atomic_store(&notes->at_ns[index_of(input)], bench_wall_ns());
    atomic_fetch_add(&notes->marked, 1);
    return THOLE_OK;
}

/* Holds a slot until it is released. */
static thole_status block(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    atomic_fetch_add(&notes->started, 1);
    while (!atomic_load(&notes->release))
        if (thole_activity_wait(act, 5) != THOLE_OK)
            return THOLE_CANCELLED;
    return THOLE_OK;
}

/* The main function of the children. */
static int serve(int argc, char **argv)
{
    static const thole_orchestration_entry orchestrations[] = {{.name = "fan", .run = fan}};
    static const thole_activity_entry activities[] = {
        {.name = "hold", .run = hold}, {.name = "mark", .run = mark}, {.name = "block", .run = block}};
    static const thole_program program = {.size = sizeof program,
                                          .name = "cancel",
                                          .orchestrations = orchestrations,
                                          .orchestrations_len = 1,
                                          .activities = activities,
                                          .activities_len = 3};
    return thole_main(argc, argv, &program);
}

/* A program of its own, as NATS's client has threads here that a fork would lose. */
static pid_t start(char **argv)
{
    pid_t const pid = fork();
    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)execv("/proc/self/exe", argv);
    _exit(127);
}

static pid_t start_engine(void)
{
    char *argv[] = {"cancel", "engine", "--log-level=warn", NULL};
    return start(argv);
}

static pid_t start_worker(unsigned slots, bool deaf)
{
    char slots_text[32], queue_text[48], deaf_text[] = "--test-suppress-push";
    (void)snprintf(slots_text, sizeof slots_text, "--slots=%u", slots);
    (void)snprintf(queue_text, sizeof queue_text, "--queue=%s", queue);
    char *argv[] = {"cancel", "worker", "--log-level=error", slots_text, queue_text, deaf ? deaf_text : NULL,
                    NULL};
    return start(argv);
}

static void stop(pid_t pid)
{
    if (pid > 0) {
        kill(pid, SIGTERM);
        waitpid(pid, NULL, 0);
    }
}

/* ---- one scenario ---- */

struct request { /* of one instance */
    char id[64];
    uint64_t asked_ns, accepted_ns, committed_ns;
    unsigned first, n; /* the first of its activities */
};

struct scenario {
    thole_client *client;
    struct histories histories; /* from when it began */
    struct request requests[INSTANCES];
    size_t requests_len;
    pid_t worker;
};

static struct request *submit(struct scenario *s, unsigned first, unsigned n, const char *activity)
{
    static unsigned serial;
    char input[128];
    thole_error error = {.status = THOLE_OK};
    struct request *const r = &s->requests[s->requests_len++];
    *r = (struct request){.first = first, .n = n};
    (void)snprintf(r->id, sizeof r->id, "bench-%ld-%u", (long)getpid(), serial++);
    (void)snprintf(input, sizeof input, "%u %u %s %s", first, n, activity, queue);
    if (thole_client_start(s->client, thole_slice_from(r->id), THOLE_STR("fan"), thole_slice_from(input),
                           NULL, &error) != THOLE_OK)
        die("start", &error);
    return r;
}

static void cancel(struct scenario *s, struct request *r)
{
    thole_error error = {.status = THOLE_OK};
    r->asked_ns = bench_wall_ns();
    if (thole_client_cancel(s->client, thole_slice_from(r->id), THOLE_STR("bench"), &error) != THOLE_OK)
        die("cancel", &error);
    r->accepted_ns = bench_wall_ns();
}

/* ---- when the cancellations were committed ---- */

static struct request *request_of(struct scenario *s, thole_slice instance)
{
    for (size_t i = 0; i < s->requests_len; i++)
        if (thole_slice_equal(instance, thole_slice_from(s->requests[i].id)))
            return s->requests[i].asked_ns > 0 ? &s->requests[i] : NULL;
    return NULL;
}

static void on_record(void *arg, uint32_t partition, uint64_t stored_ns, const struct record *record)
{
    struct scenario *const s = arg;
    (void)partition;
    struct request *const r = record->kind == RECORD_TURN ? request_of(s, record->turn.instance) : NULL;
    for (size_t i = 0; r != NULL && r->committed_ns == 0 && i < record->turn.events_len; i++)
        if (record->turn.events[i].kind == EVENT_CANCELLED) /* of a turn in parts it is in the last */
            r->committed_ns = stored_ns;
}

/* The tokens have fired, so the records are there. */
static void read_commits(struct scenario *s)
{
    if (!histories_read(&s->histories, on_record, s))
        exit(1);
    for (size_t i = 0; i < s->requests_len; i++)
        if (s->requests[i].asked_ns > 0 && s->requests[i].committed_ns == 0)
            die(s->requests[i].id, &(thole_error){.text = "its history has no cancellation"});
}

static uint64_t work_messages(const struct scenario *s)
{
    thole_error error = {.status = THOLE_OK};
    char stream[128];
    struct stream_bounds bounds;
    (void)snprintf(stream, sizeof stream, "THOLE_%s_WORK", ns_name);
    if (stream_bounds(s->histories.connection, stream, &bounds, &error) != THOLE_OK)
        die("work", &error);
    return bounds.messages;
}

/* ---- reports ---- */

static int by_value(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double ms_between(uint64_t from_ns, uint64_t to_ns)
{
    return ((double)to_ns - (double)from_ns) / 1e6;
}

static void report(const char *what, double *ms, size_t n)
{
    qsort(ms, n, sizeof *ms, by_value);
    printf("  %-17s min %9.3f  p50 %9.3f  p99 %9.3f  max %9.3f ms\n", what, ms[0], ms[n / 2],
           ms[n * 99 / 100], ms[n - 1]);
}

/* For each activity of what was cancelled. */
static void report_tokens(struct scenario *s)
{
    static double asked[ACTIVITIES], accepted[ACTIVITIES], committed[ACTIVITIES];
    size_t n = 0;
    read_commits(s);
    for (size_t i = 0; i < s->requests_len; i++) {
        const struct request *const r = &s->requests[i];
        for (unsigned k = 0; k < r->n && r->asked_ns > 0; k++, n++) {
            uint64_t const fired_ns = atomic_load(&notes->at_ns[r->first + k]);
            asked[n] = ms_between(r->asked_ns, fired_ns);
            accepted[n] = ms_between(r->accepted_ns, fired_ns);
            committed[n] = ms_between(r->committed_ns, fired_ns);
        }
    }
    report("from the request", asked, n);
    report("from its answer", accepted, n);
    report("from the commit", committed, n);
}

/* ---- the scenarios ---- */

static void begin(struct scenario *s, const char *name, unsigned slots, bool deaf)
{
    memset(notes, 0, sizeof *notes);
    s->requests_len = 0;
    (void)snprintf(queue, sizeof queue, "bench-%s-%ld", name, (long)getpid());
    s->worker = start_worker(slots, deaf);
    if (!histories_skip(&s->histories))
        exit(1);
}

static void one_by_one(struct scenario *s, bool deaf)
{
    begin(s, deaf ? "b" : "a", ONES, deaf);
    for (unsigned i = 0; i < ONES; i++)
        (void)submit(s, i, 1, "hold");
    until(&notes->started, ONES, "handlers run");
    bench_nap_us(500 * 1000); /* effects of the last commit are over */
    uint64_t const from_ns = bench_wall_ns();
    for (unsigned i = 0; i < ONES; i++) {
        while (deaf && ms_between(from_ns, bench_wall_ns()) < (double)B_SPREAD_MS * i / ONES)
            bench_nap_us(500);
        cancel(s, &s->requests[i]);
        if (!deaf)
            until(&notes->fired, i + 1, "tokens fired");
    }
    until(&notes->fired, ONES, "tokens fired");
    printf("%s: %d of %d running activities, %s\n", deaf ? "b" : "a", ONES, ONES,
           deaf ? "push lost, lease 30 s" : "push");
    report_tokens(s);
    stop(s->worker);
}

static void all_of_one(struct scenario *s)
{
    begin(s, "c", MANY, false);
    (void)submit(s, 0, MANY, "hold");
    until(&notes->started, MANY, "handlers run");
    bench_nap_us(500 * 1000);
    cancel(s, &s->requests[0]);
    until(&notes->fired, MANY, "tokens fired");
    printf("c: %d activities of one instance (max: until the last token)\n", MANY);
    report_tokens(s);
    stop(s->worker);
}

struct share {
    struct scenario *s;
    size_t from;
};

static void *cancel_share(void *arg)
{
    const struct share *const share = arg;
    for (size_t i = share->from; i < GROUPS; i += CLIENT_THREADS)
        cancel(share->s, &share->s->requests[i]);
    return NULL;
}

static void cancel_all_groups(struct scenario *s)
{
    pthread_t threads[CLIENT_THREADS];
    struct share shares[CLIENT_THREADS];
    for (size_t i = 0; i < CLIENT_THREADS; i++) {
        shares[i] = (struct share){s, i};
        if (pthread_create(&threads[i], NULL, cancel_share, &shares[i]) != 0)
            die("thread", NULL);
    }
    for (size_t i = 0; i < CLIENT_THREADS; i++)
        (void)pthread_join(threads[i], NULL);
}

static void full_house(struct scenario *s)
{
    enum { SLOTS = GROUPS * GROUP };
    static double served[SLOTS];
    begin(s, "d", SLOTS, false);
    for (unsigned i = 0; i < GROUPS; i++)
        (void)submit(s, i * GROUP, GROUP, "hold");
    until(&notes->started, SLOTS, "handlers run");
    (void)submit(s, SLOTS, SLOTS, "mark");
    while (work_messages(s) < 2 * SLOTS)
        bench_nap_us(10000);
    bench_nap_us(500 * 1000);
    uint64_t const from_ns = bench_wall_ns();
    cancel_all_groups(s);
    until(&notes->marked, SLOTS, "new activities started");
    until(&notes->fired, SLOTS, "tokens fired");
    for (size_t i = 0; i < SLOTS; i++)
        served[i] = ms_between(from_ns, atomic_load(&notes->at_ns[SLOTS + i]));
    printf("d: %d instances with %d activities, all %d slots busy, cancelled at once\n", GROUPS, GROUP,
           SLOTS);
    report_tokens(s);
    report("new work starts", served, SLOTS);
    stop(s->worker);
}

static void report_end(const char *what, const struct request *r, uint64_t at_ns)
{
    printf("  %-17s %9.3f ms from the request, %9.3f ms from the commit\n", what,
           ms_between(r->asked_ns, at_ns), ms_between(r->committed_ns, at_ns));
}

/* A push says that the rows are gone. */
static void on_push(void *arg, const struct delivery *delivery)
{
    atomic_uint_least64_t *const first_ns = arg;
    uint64_t none = 0;
    (void)delivery;
    (void)atomic_compare_exchange_strong(first_ns, &none, bench_wall_ns());
}

static struct subscription *listen(struct scenario *s, atomic_uint_least64_t *first_ns)
{
    char subject[128];
    struct subscription *subscription = NULL;
    thole_error error = {.status = THOLE_OK};
    (void)snprintf(subject, sizeof subject, "thole.%s.cancel.>", ns_name);
    if (connection_subscribe(s->histories.connection, subject, on_push, first_ns, &subscription, &error) !=
        THOLE_OK)
        die("subscribe", &error);
    return subscription;
}

static void withdrawn(struct scenario *s)
{
    static atomic_uint_least64_t pushed_ns;
    begin(s, "e", BLOCKERS, false);
    (void)submit(s, 0, BLOCKERS, "block");
    until(&notes->started, BLOCKERS, "slots taken");
    struct request *const r = submit(s, 0, QUEUED, "mark");
    while (work_messages(s) < BLOCKERS + QUEUED)
        bench_nap_us(10000);
    bench_nap_us(1000 * 1000);
    atomic_store(&pushed_ns, 0);
    struct subscription *const pushes = listen(s, &pushed_ns);
    cancel(s, r);
    while (work_messages(s) > BLOCKERS)
        bench_nap_us(2000);
    uint64_t const gone_ns = bench_wall_ns();
    atomic_store(&notes->release, true); /* now there are slots */
    bench_nap_us(1000 * 1000);
    subscription_close(pushes);
    read_commits(s);
    printf("e: %d queued activities of one instance withdrawn; started afterwards: %u\n", QUEUED,
           atomic_load(&notes->marked));
    report_end("rows gone", r, atomic_load(&pushed_ns));
    report_end("messages gone", r, gone_ns);
    stop(s->worker);
}

/* ---- all of it ---- */

static void open_all(struct scenario *s)
{
    (void)snprintf(ns_name, sizeof ns_name, "%s",
                   getenv("THOLE_NAMESPACE") == NULL ? "default" : getenv("THOLE_NAMESPACE"));
    if (!stand_client(&s->client) || !histories_open(&s->histories))
        exit(1);
}

static void run(struct scenario *s, char name)
{
    switch (name) {
    case 'a': one_by_one(s, false); break;
    case 'b': one_by_one(s, true); break;
    case 'c': all_of_one(s); break;
    case 'd': full_house(s); break;
    default: withdrawn(s); break;
    }
    (void)fflush(stdout);
}

/* Shared with the children, who find its descriptor in the environment. */
static void share_notes(void)
{
    const char *const known = getenv("CANCEL_NOTES");
    char text[16];
    int const fd = known == NULL ? memfd_create("cancel", 0) : (int)strtol(known, NULL, 10);
    (void)snprintf(text, sizeof text, "%d", fd);
    if (fd < 0 || ftruncate(fd, sizeof *notes) != 0 || setenv("CANCEL_NOTES", text, 1) != 0)
        die("memory", NULL);
    notes = mmap(NULL, sizeof *notes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (notes == MAP_FAILED)
        die("memory", NULL);
}

int main(int argc, char **argv)
{
    static struct scenario scenario;
    const char *all = argc > 1 ? argv[1] : "abcde";
    share_notes();
    if (argc > 1 && (strcmp(argv[1], "engine") == 0 || strcmp(argv[1], "worker") == 0))
        return serve(argc, argv);
    if (argc > 2 || strspn(all, "abcde") != strlen(all))
        return fprintf(stderr, "usage: %s [abcde]\n", argv[0]), 2;
    pid_t const engine = start_engine();
    open_all(&scenario);
    for (; *all != '\0'; all++)
        run(&scenario, *all);
    histories_close(&scenario.histories);
    thole_client_close(scenario.client);
    stop(engine);
    return 0;
}
