/* All counters of a shard and of a worker's loop: role_counts.transcript has events ("$ …"), each followed by
 * the metrics that are not 0; of a histogram its number and its sum. "$ table" is all of them. With
 * THOLE_WRITE_TRANSCRIPT=1 in the environment the file is written again, to be read and committed. */
#include "engine_lines.h"
#include "thole_cunit.h"
#include "transcript.h"
#include "worker_parts.h"
#include "wrap_shard_world.h"
#include <inttypes.h>
#include <stdlib.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/metrics/role_counts.transcript"
enum { TEXT_MAX = 256 * 1024, OWNED = 5, WALL_US = 5000000 };

static struct {
    enum partition_state states[OWNED];
    uint64_t epoch;
    uint64_t monotonic_us;
    struct worker_host worker;
    struct thole_activity act;
    struct owned owned[OWNED];
    bool unsent;
} play;

static const char *const activities[] = {"charge", "ship"};

/* ---- played calls ---- */

uint64_t __wrap_clock_monotonic_us(void)
{
    return play.monotonic_us;
}

uint64_t __wrap_clock_wall_us(void)
{
    return WALL_US;
}

static size_t number_of(const struct partition *p)
{
    return (size_t)(uintptr_t)p;
}

enum partition_state __wrap_partition_state(const struct partition *p)
{
    return play.states[number_of(p) - 1];
}

/* Of the n-th partition a digit that no other fact has, n times. */
struct partition_facts __wrap_partition_facts(const struct partition *p)
{
    size_t const n = number_of(p);
    return (struct partition_facts){.turns = n,
                                    .unprojected = n * 100,
                                    .open_activities = n * 10000,
                                    .appends = n * 1000000,
                                    .append_bytes = n * 100000000,
                                    .instances = n * 10000000000,
                                    .parked = n * 1000000000000,
                                    .early = n * 10000000000000,
                                    .early_bytes = n * 100000000000000};
}

size_t __wrap_partition_pending(const struct partition *p)
{
    return number_of(p) * 3;
}

size_t __wrap_partition_pending_bytes(const struct partition *p)
{
    return number_of(p) * 700;
}

uint64_t __wrap_log_limits_total(struct log_limits *limits, size_t kind)
{
    (void)limits;
    return 100 + kind;
}

uint64_t __wrap_connection_epoch(const struct connection *connection)
{
    (void)connection;
    return play.epoch;
}

struct worker_counters __wrap_worker_counters(const struct worker_machine *w)
{
    (void)w;
    return (struct worker_counters){1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                    12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22};
}

size_t __wrap_worker_held(const struct worker_machine *w)
{
    (void)w;
    return 33;
}

/* ---- a shard ---- */

static void link_changes(const char *words)
{
    bool was_up = false;
    world.shard.index = (uint32_t)strtoul(words, NULL, 10);
    for (const char *at = strchr(words, ' '); at != NULL; at = strchr(at + 1, ' ')) {
        bool const up = at[1] == 'u';
        shard_count_link(&world.shard, was_up, up);
        was_up = up;
    }
}

static void store_changes(const char *words)
{
    shard_count_store(&world.shard, strcmp(words, "up") == 0);
}

/* KIND STATUS RESULT; the kind may be * for all, each a millisecond more than the one before it. */
static void answered(const char *words)
{
    char kind[8] = "";
    unsigned status = 0, result = 0;
    (void)sscanf(words, "%7s %u %u", kind, &status, &result);
    for (unsigned k = 0; k < REQ_KINDS; k++)
        if (kind[0] == '*' || strtoul(kind, NULL, 10) == k) {
            struct request request = {.kind = k, .shard = &world.shard, .status = (thole_status)status};
            request.reply.result = result;
            request.begun_us = 1000;
            play.monotonic_us = 1000 + 1000 * (k + 1);
            shard_count_request(&request);
        }
}

static void uncounted(const char *words)
{
    struct request request = {.kind = REQ_APPEND, .shard = &world.shard, .status = THOLE_INVALID};
    (void)words;
    shard_count_request(&request); /* not begun */
}

static void message(const char *words)
{
    shard_count_message(&world.shard, strtoull(words, NULL, 10));
}

thole_status __wrap_cancel_notice_publish(struct connection *connection, const char *ns,
                                          const struct nonce_key *key, const struct cancel_notice *notice,
                                          thole_error *reterr)
{
    (void)connection, (void)ns, (void)key, (void)notice;
    return play.unsent ? thole_fail(reterr, THOLE_UNAVAILABLE, "NATS is away") : THOLE_OK;
}

static void push(const char *words)
{
    play.unsent = strstr(words, "unsent") != NULL;
    struct cancel_notice notice = {.activity_ids_len = 3, .decided_ms = strtoull(words, NULL, 10)};
    notice_cancel(&world.shard, &notice);
}

static void opened(const char *words)
{
    play.owned[0].cause = CLOSED_RIVAL;
    shard_count_opened(&world.shard, &play.owned[0]);
    CU_ASSERT_EQUAL(play.owned[0].cause, CLOSED_OTHER);
    (void)words;
}

static void closed(const char *words)
{
    unsigned cause = 0, reopen = 0;
    (void)sscanf(words, "%u %u", &cause, &reopen);
    play.owned[0].cause = (enum closed_cause)cause;
    shard_count_closed(&world.shard, &play.owned[0], reopen != 0);
    CU_ASSERT_EQUAL(play.owned[0].cause, CLOSED_OTHER);
}

/* SHARD NOW: the first wanted ones, in five states. */
static void partitions(const char *words)
{
    unsigned index = 0, now = 0;
    uint64_t again;
    (void)sscanf(words, "%u %u", &index, &now);
    world.shard.index = index;
    world.shard.counted_ms = 900;
    world.shard.uncounted = true;
    again = shard_count_partitions(&world.shard, now);
    if (now < 1000) {
        CU_ASSERT_EQUAL(again, 1000);
        CU_ASSERT_TRUE(world.shard.uncounted);
        return;
    }
    CU_ASSERT_EQUAL(again, UINT64_MAX);
    CU_ASSERT_FALSE(world.shard.uncounted);
    CU_ASSERT_EQUAL(world.shard.counted_ms, now);
    CU_ASSERT_EQUAL(shard_count_partitions(&world.shard, now + 1000), UINT64_MAX); /* nothing has happened */
    CU_ASSERT_EQUAL(world.shard.counted_ms, now);
}

/* ---- a worker ---- */

static void answers(const char *words)
{
    struct worker_row rows[WORKER_ROW_FORGED + 1];
    unsigned kind = 0, unknown = 0;
    (void)sscanf(words, "%u %u", &kind, &unknown);
    struct row_call call = {.kind = kind, .rows = rows, .len = ARRAY_LEN(rows), .unknown = unknown != 0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        rows[i] = (struct worker_row){.state = (enum worker_row_state)i};
    worker_count_answer(&play.worker, &call);
}

static void epochs(const char *words)
{
    for (const char *at = words; *at != '\0'; at += strcspn(at, " "), at += *at == ' ') {
        play.epoch = strtoull(at, NULL, 10);
        worker_count_link(&play.worker);
    }
}

/* PATH SINCE_MS: it is 2 s. */
static void fired(const char *words)
{
    unsigned path = 0, since_ms = 0;
    (void)sscanf(words, "%u %u", &path, &since_ms);
    play.monotonic_us = 2000000;
    worker_count_fired(&play.worker,
                       &(struct worker_out){.path = (enum worker_path)path, .since_ms = since_ms});
}

/* DECIDED_MS: a push; it is 2 s, and 5 s by the wall clock. */
static void pushed(const char *words)
{
    play.monotonic_us = 2000000;
    worker_count_fired(&play.worker,
                       &(struct worker_out){.path = WORKER_PATH_PUSH,
                                            .since_ms = worker_since_ms(strtoull(words, NULL, 10))});
}

/* ENTRY STATUS FIRED_MS: it has run for 250 ms; others run. */
static void returned(const char *words)
{
    unsigned entry = 0, status = 0, fired_ms = 0;
    (void)sscanf(words, "%u %u %u", &entry, &status, &fired_ms);
    play.worker.running = 4;
    play.monotonic_us = 1000000;
    worker_count_started(&play.worker, &play.act);
    CU_ASSERT_EQUAL(play.worker.running, 5);
    play.act.entry = entry;
    play.act.status = (thole_status)status;
    play.act.fired_ms = fired_ms;
    play.act.fired_kind = fired_ms > 0 ? THOLE_CANCEL_REQUESTED : THOLE_CANCEL_NONE;
    play.monotonic_us = 1250000;
    worker_count_returned(&play.worker, &play.act);
    CU_ASSERT_EQUAL(play.worker.running, 4);
}

static void published(const char *words)
{
    worker_count_published(&play.worker, strcmp(words, "stored") == 0);
}

/* END SINCE_MS: it is 2 s. */
static void ended(const char *words)
{
    unsigned end = 0, since_ms = 0;
    (void)sscanf(words, "%u %u", &end, &since_ms);
    play.monotonic_us = 2000000;
    worker_count_end(&play.worker, &(struct worker_out){.end = (enum worker_end)end, .since_ms = since_ms});
}

static void machine(const char *words)
{
    (void)words;
    play.worker.running = 44;
    play.worker.options.slots = 55;
    worker_count_machine(&play.worker);
}

/* ---- the lines ---- */

static void nothing(const char *words)
{
    (void)words;
}

static const struct {
    const char *name;
    void (*happens)(const char *words);
    unsigned roles;
} rows[] = {{"link", link_changes, METRIC_ENGINE},     {"store", store_changes, METRIC_ENGINE},
            {"request", answered, METRIC_ENGINE},      {"uncounted", uncounted, METRIC_ENGINE},
            {"message", message, METRIC_ENGINE},       {"push", push, METRIC_ENGINE},
            {"opened", opened, METRIC_ENGINE},         {"closed", closed, METRIC_ENGINE},
            {"partitions", partitions, METRIC_ENGINE}, {"answer", answers, METRIC_WORKER},
            {"epochs", epochs, METRIC_WORKER},         {"fired", fired, METRIC_WORKER},
            {"pushed", pushed, METRIC_WORKER},         {"returned", returned, METRIC_WORKER},
            {"published", published, METRIC_WORKER},   {"ended", ended, METRIC_WORKER},
            {"machine", machine, METRIC_WORKER},       {"table", nothing, METRIC_EACH}};

static void say_metrics(const struct metrics *metrics, bool all, FILE *to)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    metrics_text(metrics, 0, &text);
    for (const char *line = buf_cstr(&text), *end; *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        int const len = (int)(end - line);
        if (!all &&
            (line[0] == '#' || strncmp(end - 2, " 0", 2) == 0 || strncmp(end - 6, " 0.000", 6) == 0 ||
             strncmp(end - 9, " 0.000000", 9) == 0 || memmem(line, (size_t)len, "_bucket{", 8) != NULL ||
             strncmp(line, "thole_build", 11) == 0 || strncmp(line, "thole_loop", 10) == 0))
            continue;
        (void)fprintf(to, "  %.*s\n", len, line);
    }
    buf_release(&text);
}

static void begin(struct metrics *metrics)
{
    memset(&play, 0, sizeof play);
    shard_world_begin(request_rules);
    for (size_t i = 0; i < OWNED; i++) {
        play.owned[i].machine = (struct partition *)(uintptr_t)(i + 1);
        play.owned[i].wanted = i < 2;
    }
    play.states[0] = PARTITION_CLOSED;
    play.states[1] = PARTITION_OPENING;
    play.states[2] = PARTITION_CLOSED; /* neither wanted nor held */
    play.states[3] = PARTITION_OPEN;
    play.states[4] = PARTITION_CLOSING;
    world.shard.owned = play.owned;
    world.shard.owned_len = OWNED;
    for (size_t i = 0; i < OWNED; i++)
        play.owned[i].sweeps.waiting_ms = i == 2 ? 7000 : i * 1000;
    world.shard.cells = play.worker.cells = metrics_cells(metrics);
}

static void play_line(const char *line, FILE *to)
{
    size_t const len = strcspn(line, " ");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strlen(rows[i].name) != len || strncmp(rows[i].name, line, len) != 0)
            continue;
        struct metrics *const metrics = metrics_create(
            &(struct metrics_options){.roles = rows[i].roles, .activities = activities, .activities_len = 2});
        begin(metrics);
        rows[i].happens(line + len + (line[len] != '\0'));
        say_metrics(metrics, rows[i].roles == METRIC_EACH, to);
        metrics_destroy(metrics);
        begin(NULL); /* without metrics nothing is counted */
        if (strcmp(rows[i].name, "partitions") != 0)
            rows[i].happens(line + len + (line[len] != '\0'));
        return;
    }
    CU_FAIL("no such line");
}

static void test_transcript(void)
{
    transcript_check(TRANSCRIPT, play_line);
}

static void test_nothing_stays(void)
{
    transcript_check_heap(TRANSCRIPT, play_line);
}

static void test_uncounted(void)
{
    begin(NULL);
    world.shard.uncounted = true;
    CU_ASSERT_EQUAL(shard_count_partitions(&world.shard, 5000), UINT64_MAX);
    CU_ASSERT_TRUE(world.shard.uncounted);
}

static const struct thole_test tests[] = {
    {"transcript", test_transcript}, {"nothing stays", test_nothing_stays}, {"uncounted", test_uncounted}};
THOLE_TEST_MAIN("role_counts", tests)
