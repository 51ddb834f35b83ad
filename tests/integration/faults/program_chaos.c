/*
 * Rounds of faults: program_chaos [--minutes N | --rounds N] [--seed N] [--only TEXT] [--servers 1|3].
 * scripts/chaos builds and runs it. While a client starts instances all the time, one kind of fault is done
 * several times; then the faults end, and
 *   - no engine and no worker has ended by itself,
 *   - everything that was acknowledged completes, within COMPLETE_MS,
 *   - each history has no gap, one end, and each activity's result once; each effect happened; what
 *     ran twice did so for a cause that docs/guarantees.md names,
 *   - the tables of work and timers are empty, the work stream is empty, no instance is stuck.
 * Rounds whose number is the same under the same seed do the same to the same targets; times are the
 * machine's.
 */
#include "chaos_causes.h"
#include <inttypes.h>
#include <nats/nats.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum {
    CLIENTS = 6,
    STARTS_MAX = 1024, /* of a client in a round */
    START_PAUSE_MS = 250,
    FAULTS = 3,
    FAULT_MS_MIN = 500,
    FAULT_MS_MORE = 4500,
    COMPLETE_MS = 120000,
    EMPTY_MS = 90000,
    DOCTOR_MS = 30000,
    DOCTOR_BYTES = 64 * 1024,
    ROUNDS_MAX = 100000,
    KINDS_MAX = 32,
    SHOWN_MAX = 5
};

struct start {
    char id[32];
    char kind; /* o: order, n: nap, r: race */
};

/* State shared by a client's thread and the rounds. */
struct load {
    pthread_t thread;
    thole_client *client;
    unsigned round, number;
    atomic_bool stop;
    struct start starts[STARTS_MAX];
    size_t starts_len; /* acknowledged */
    unsigned refused;
};

struct kind_sum {
    unsigned rounds, failed;
    uint64_t starts, activities, runs, recovery_ms_max;
};

static struct chaos chaos;
static struct load loads[CLIENTS];
static thole_client *client;
static const struct chaos_fault *kinds[KINDS_MAX]; /* those that can be done here */
static size_t kinds_len;
static struct kind_sum sums[KINDS_MAX];
static uint64_t causes[CHAOS_CAUSES]; /* how often something ran again because of each */
static uint64_t minutes = 0, rounds_max = ROUNDS_MAX, servers = CHAOS_NATS, seed;
static const char *only = "";

/* ---- the load ---- */

/* Until it is acknowledged: a start that was stored although its answer was lost is a conflict the next time.
 */
static bool start_one(struct load *to, const char *id, char kind)
{
    thole_slice const name = kind == 'o'   ? THOLE_STR("order")
                             : kind == 'n' ? THOLE_STR("nap")
                                           : THOLE_STR("race");
    thole_slice const input = kind == 'r' ? THOLE_STR("5000") : THOLE_STR("x");
    for (unsigned tries = 0; !atomic_load(&to->stop) || tries == 0; tries++) {
        thole_error err = {0};
        bool accepted = false;
        thole_status const status =
            thole_client_start(to->client, thole_slice_from(id), name, input, &accepted, &err);
        if (status == THOLE_OK || (status == THOLE_CONFLICT && tries > 0))
            return true;
        if (status != THOLE_UNAVAILABLE) {
            fprintf(stderr, "  start of %s: %s: %s\n", id, thole_status_name(status), err.text);
            to->refused++;
            return false;
        }
        pause_ms(100);
    }
    return false;
}

static void *start_all(void *arg)
{
    struct load *to = arg;
    for (unsigned n = 0; !atomic_load(&to->stop) && to->starts_len < STARTS_MAX; n++) {
        struct start *next = &to->starts[to->starts_len];
        (void)snprintf(next->id, sizeof next->id, "r%05u-%u%04u", to->round, to->number, n);
        next->kind = n % 5 == 3 ? 'n' : n % 5 == 4 ? 'r' : 'o';
        if (start_one(to, next->id, next->kind))
            to->starts_len++;
        if (!atomic_load(&chaos.bursts))
            pause_ms(START_PAUSE_MS);
    }
    return NULL;
}

static void begin_load(unsigned round)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct load *load = &loads[i];
        load->round = round;
        load->number = i;
        load->starts_len = load->refused = 0;
        atomic_store(&load->stop, false);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&load->thread, NULL, start_all, load), 0);
    }
}

static size_t end_load(void)
{
    size_t starts = 0;
    for (size_t i = 0; i < CLIENTS; i++)
        atomic_store(&loads[i].stop, true);
    for (size_t i = 0; i < CLIENTS; i++) {
        (void)pthread_join(loads[i].thread, NULL);
        starts += loads[i].starts_len;
    }
    return starts;
}

/* ---- invariants after a round ---- */

struct tally {
    unsigned scheduled, completed, ended;
    uint64_t last_id;
    bool gap;
};

static thole_status count_event(void *arg, const thole_history_event *event)
{
    struct tally *t = arg;
    t->gap |= event->id != t->last_id + 1;
    t->last_id = event->id;
    t->scheduled += strcmp(event->kind, "ActivityScheduled") == 0;
    t->completed += strcmp(event->kind, "ActivityCompleted") == 0;
    t->ended += strcmp(event->kind, "Completed") == 0;
    return THOLE_OK;
}

static bool right_output(char kind, const char *output)
{
    if (kind == 'o')
        return strcmp(output, "x,reserve,charge,ship") == 0;
    return kind == 'n' ? output[0] == '\0' : strcmp(output, "timer") == 0 || strcmp(output, "activity") == 0;
}

static bool check_instance(const struct start *start, uint64_t end_ms)
{
    thole_instance_status status;
    struct tally t = {0};
    thole_error err = {0};
    uint64_t const now_ms = clock_monotonic_ms();
    const char *output = stack_outcome(client, start->id, end_ms > now_ms ? end_ms - now_ms : 1, &status);
    bool good = status == THOLE_INSTANCE_COMPLETED && right_output(start->kind, output) &&
                thole_client_history(client, thole_slice_from(start->id), count_event, &t, &err) == THOLE_OK;
    unsigned const activities = start->kind == 'o' ? 3 : start->kind == 'n' ? 0 : 1;
    good = good && !t.gap && t.ended == 1 && t.scheduled == activities &&
           (start->kind == 'r' ? t.completed <= 1 : t.completed == activities);
    if (!good)
        fprintf(stderr, "    %s: %s '%s' %s: scheduled %u, completed %u, ended %u, gap %d\n", start->id,
                thole_instance_status_name(status), output, err.text, t.scheduled, t.completed, t.ended,
                t.gap);
    return good;
}

/* How many are not as they must be; it stops at a few of them. */
static unsigned check_instances(void)
{
    uint64_t const end_ms = clock_monotonic_ms() + COMPLETE_MS;
    unsigned bad = 0;
    for (size_t k = 0; k < CLIENTS; k++)
        for (size_t i = 0; i < loads[k].starts_len && bad < SHOWN_MAX; i++)
            if (!check_instance(&loads[k].starts[i], end_ms))
                bad++;
    return bad;
}

/* The round's runs: how many, how many different ones; each that is not the first has a cause. Returns how
 * many have none. */
static unsigned count_effects(unsigned round, uint64_t *ret_runs, uint64_t *ret_different)
{
    char prefix[32];
    size_t n;
    unsigned unexplained = 0;
    (void)snprintf(prefix, sizeof prefix, "r%05u-", round);
    struct chaos_run *runs = chaos_runs(&chaos, prefix, &n);
    *ret_runs = n;
    *ret_different = n > 0;
    for (size_t i = 1; i < n; i++) {
        if (strcmp(runs[i].key, runs[i - 1].key) != 0) {
            ++*ret_different;
            continue;
        }
        enum chaos_cause const cause = chaos_cause(&chaos, &runs[i - 1], &runs[i]);
        causes[cause]++;
        unexplained += cause == CAUSE_NONE;
        fprintf(stderr, "    %s %s ran again after %" PRIu64 " ms: %s\n", runs[i].key, runs[i].name,
                runs[i].at_ms - runs[i - 1].at_ms, chaos_cause_names[cause]);
    }
    free(runs);
    return unexplained;
}

/* Each order's three effects; a race's activity may be withdrawn before it begins. */
static unsigned check_effects(unsigned round, struct kind_sum *sum)
{
    uint64_t runs, different, want = 0, more = 0;
    for (size_t k = 0; k < CLIENTS; k++) {
        more += 3 * (1 + loads[k].refused); /* one start of each client may be given up unacknowledged */
        for (size_t i = 0; i < loads[k].starts_len; i++) {
            want += loads[k].starts[i].kind == 'o' ? 3 : 0;
            more += loads[k].starts[i].kind == 'r';
        }
    }
    unsigned const unexplained = count_effects(round, &runs, &different);
    sum->runs += runs;
    sum->activities += different;
    if (different >= want && different <= want + more)
        return unexplained;
    fprintf(stderr, "    %" PRIu64 " different effects, %" PRIu64 " to %" PRIu64 " expected\n", different,
            want, want + more);
    return 1;
}

static bool becomes_zero(const char *what, const char *statement)
{
    const char *got = "";
    for (uint64_t const end = clock_monotonic_ms() + EMPTY_MS; clock_monotonic_ms() < end; pause_ms(200))
        if (strcmp(got = stack_sql(&chaos.stack, statement), "0") == 0)
            return true;
    fprintf(stderr, "    %s: %s are left\n", what, got);
    return false;
}

/* -1: not known. */
static int64_t work_messages(void)
{
    natsConnection *nats = NULL;
    jsCtx *js = NULL;
    jsStreamInfo *info = NULL;
    int64_t n = -1;
    if (natsConnection_ConnectTo(&nats, getenv("THOLE_NATS_URL")) == NATS_OK &&
        natsConnection_JetStream(&js, nats, NULL) == NATS_OK &&
        js_GetStreamInfo(&info, js, "THOLE_default_WORK", NULL, NULL) == NATS_OK)
        n = (int64_t)info->State.Msgs;
    jsStreamInfo_Destroy(info);
    jsCtx_Destroy(js);
    natsConnection_Destroy(nats);
    return n;
}

static unsigned check_emptiness(void)
{
    unsigned bad = 0;
    bad += !becomes_zero("rows of work", "SELECT count(*) FROM thole_default.worker_queue");
    bad += !becomes_zero("timers", "SELECT count(*) FROM thole_default.timers");
    bad += !becomes_zero("instances that have not completed",
                         "SELECT count(*) FROM thole_default.instances WHERE status <> 4");
    int64_t n = 0;
    for (uint64_t const end = clock_monotonic_ms() + EMPTY_MS; clock_monotonic_ms() < end; pause_ms(200))
        if ((n = work_messages()) == 0)
            return bad;
    fprintf(stderr, "    messages of work: %" PRId64 " are left\n", n);
    return bad + 1;
}

/* All damage is healed, and thole doctor finds nothing wrong. */
static unsigned check_doctor(void)
{
    static char output[DOCTOR_BYTES];
    for (uint64_t const end = clock_monotonic_ms() + DOCTOR_MS; clock_monotonic_ms() < end; pause_ms(500))
        if (stage_command(THOLE_COMMAND " doctor 2>&1", output, sizeof output) == 0)
            return 0;
    fprintf(stderr, "    doctor:\n%s\n", output);
    return 1;
}

/* ---- rounds ---- */

static void choose_kinds(const struct chaos_fault *faults, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(faults[i].name, only) == NULL)
            continue;
        else if (faults[i].possible != NULL && !faults[i].possible(&chaos))
            fprintf(stderr, "chaos: %s is left out: it needs root, or three servers\n", faults[i].name);
        else if (kinds_len < KINDS_MAX)
            kinds[kinds_len++] = &faults[i];
}

static void disturb(const struct chaos_fault *fault)
{
    for (unsigned n = 0; n < FAULTS; n++) {
        size_t const target = chaos_random(&chaos, fault->targets);
        pause_ms(500 + (unsigned)chaos_random(&chaos, 1000));
        fault->begin(&chaos, target);
        pause_ms(FAULT_MS_MIN + (unsigned)chaos_random(&chaos, FAULT_MS_MORE));
        fault->end(&chaos, target);
    }
}

static void play_round(unsigned round, size_t kind)
{
    const struct chaos_fault *fault = kinds[kind];
    struct kind_sum *sum = &sums[kind];
    struct kind_sum const before = *sum;
    unsigned const alone = chaos.ended_alone;
    for (size_t k = 0; k < CLIENTS; k++)
        for (size_t i = 0; i < loads[k].starts_len; i++)
            chaos_removal_offer(loads[k].starts[i].id);
    begin_load(round);
    disturb(fault);
    chaos_heal(&chaos);
    uint64_t const healed_ms = clock_monotonic_ms();
    size_t const starts = end_load();
    unsigned bad = check_instances();
    uint64_t const recovery_ms = clock_monotonic_ms() - healed_ms;
    bad += check_emptiness();
    bad += check_effects(round, sum);
    bad += chaos_removal_check(&chaos);
    bad += check_doctor();
    bad += chaos.ended_alone - alone;
    sum->rounds++;
    sum->failed += bad > 0;
    sum->starts += starts;
    if (recovery_ms > sum->recovery_ms_max)
        sum->recovery_ms_max = recovery_ms;
    fprintf(stderr,
            "  round %u, %s: %zu starts, %" PRIu64 " activities, %" PRIu64
            " run again, all done after %" PRIu64 " ms%s\n",
            round, fault->name, starts, sum->activities - before.activities,
            sum->runs - before.runs - (sum->activities - before.activities), recovery_ms,
            bad > 0 ? ": FAILED" : "");
    CU_ASSERT_EQUAL(bad, 0);
}

static void print_summary(void)
{
    fprintf(stderr, "\n  %-30s %7s %7s %7s %11s %10s %12s\n", "kind", "rounds", "failed", "starts",
            "activities", "run again", "slowest (ms)");
    for (size_t i = 0; i < kinds_len; i++)
        if (sums[i].rounds > 0)
            fprintf(stderr, "  %-30s %7u %7u %7" PRIu64 " %11" PRIu64 " %10" PRIu64 " %12" PRIu64 "\n",
                    kinds[i]->name, sums[i].rounds, sums[i].failed, sums[i].starts, sums[i].activities,
                    sums[i].runs - sums[i].activities, sums[i].recovery_ms_max);
        else
            fprintf(stderr, "  %-30s not done\n", kinds[i]->name);
}

static void print_causes(void)
{
    for (size_t i = 0; i < CHAOS_CAUSES; i++)
        fprintf(stderr, "  run again because %s: %" PRIu64 "\n",
                i == CAUSE_NONE ? "of something else" : chaos_cause_names[i], causes[i]);
}

/* Complaints in the logs of all nats-servers. */
static void print_complaints(void)
{
    static const char *const texts[] = {"errored, will retry", "too many retries",
                                        "Resetting stream cluster state"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        size_t n = 0;
        for (size_t k = 0; k < chaos.nats_len; k++) {
            char path[256];
            (void)snprintf(path, sizeof path, "%s/nats.log", chaos.nats[k].dir);
            n += stack_count(path, texts[i]);
        }
        fprintf(stderr, "  nats-server said \"%s\" %zu times\n", texts[i], n);
    }
}

/* Every kind once, in an order that the seed gives, then again. */
static void test_rounds(void)
{
    size_t order[KINDS_MAX];
    uint64_t const end_ms = minutes == 0 ? UINT64_MAX : clock_monotonic_ms() + minutes * 60000;
    choose_kinds(chaos_faults, chaos_faults_len);
    choose_kinds(chaos_store_faults, chaos_store_faults_len);
    for (size_t i = 0; i < kinds_len; i++)
        order[i] = i;
    CU_ASSERT_FATAL(kinds_len > 0 && chaos_faults_len + chaos_store_faults_len <= KINDS_MAX);
    for (unsigned round = 0; round < rounds_max && clock_monotonic_ms() < end_ms; round++) {
        size_t const at = round % kinds_len, with = at + chaos_random(&chaos, kinds_len - at);
        size_t const kind = order[with];
        order[with] = order[at];
        order[at] = kind;
        play_round(round, kind);
    }
    print_summary();
    print_causes();
    print_complaints();
}

static bool read_options(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], "--minutes") == 0)
            minutes = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds_max = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0)
            only = argv[i + 1];
        else if (strcmp(argv[i], "--servers") == 0)
            servers = strtoull(argv[i + 1], NULL, 10);
        else
            return false;
    return argc % 2 == 1 && (servers == 1 || servers == CHAOS_NATS);
}

int main(int argc, char **argv)
{
    static const struct thole_test tests[] = {{"rounds", test_rounds}};
    seed = (uint64_t)time(NULL);
    if (!read_options(argc, argv)) {
        fprintf(stderr, "usage: %s [--minutes N | --rounds N] [--seed N] [--only TEXT] [--servers 1|3]\n",
                argv[0]);
        return 2;
    }
    skip_without_nats();
    skip_without_postgres();
    chaos_start(&chaos, seed, (size_t)servers);
    fprintf(stderr, "chaos: seed %" PRIu64 ", folder %s\n", seed, chaos.stack.dir);
    for (size_t i = 0; i < CLIENTS; i++)
        loads[i].client = stack_client(&chaos.stack);
    client = stack_client(&chaos.stack);
    int const failed = thole_run_suite("chaos", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    for (size_t i = 0; i < CLIENTS; i++)
        thole_client_close(loads[i].client);
    if (failed != 0)
        setenv("THOLE_TEST_KEEP", "1", 1); /* the logs */
    chaos_stop(&chaos);
    return failed;
}
