/* A shard's whole start and loop. shard_loop.transcript has the events that happen while its thread waits
 * ("$ … | …", a step for each wait), each followed by what the loop did, with which time, and until when it
 * waits. Machines and the other parts are played. With THOLE_WRITE_TRANSCRIPT=1 in the environment the file
 * is written again, to be read and committed. Words of a step:
 *   link+ link- shared+ shared- store+ store- older own=P:MS disown=P rows=P epoch=P:N stop inbox lost query
 *   answer                            mails to the shard
 *   state=P:STATE touch=P reader=P:1  the new state of partition P's machine, and of its reader
 *   NAME=N                            what the function NAME returns from now on, or a time */
#include "coro.h"
#include "deadlines.h"
#include "engine.h"
#include "membership.h"
#include "partition.h"
#include "shard_parts.h"
#include "store.h"
#include "thole_cunit.h"
#include "transcript.h"
#include "wrap_cork.h"
#include "wrap_mutexes.h"
#include "wrap_shard_waits.h"
#include <inttypes.h>
#include <stdlib.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/engine_role/shard_loop.transcript"
enum { PARTITIONS = 5, SHARDS = 2, INDEX = 1, NOW_MS = 5000, WALL_MS = 900000 };

static struct {
    FILE *said;
    const char *script;
    struct engine_host engine;
    struct shard shard;
    struct crash_page *page;
    uint64_t now_ms, machine, sweep, watch, looks, requests, limits,
        counts; /* due times of the parts, from NOW_MS */
    uint64_t pending, calling;
    enum partition_state states[PARTITIONS];
    char names[64]; /* names that the live instances need, a letter each */
    bool more;      /* one more output exists */
    char cared[64]; /* partitions looked after in this step, and by which part */
    bool whole;     /* a line without steps: how it starts, and ends, is said too */
    bool over;
} play;

static uint64_t partition_of(const struct partition *p)
{
    return (uintptr_t)p - 1;
}

static uint64_t due(uint64_t in_ms)
{
    return in_ms == 0 ? UINT64_MAX : NOW_MS + in_ms;
}

/* As what it is after the begin. */
static const char *time_text(uint64_t at_ms)
{
    static char text[32];
    (void)snprintf(text, sizeof text, at_ms == UINT64_MAX ? "ever" : "%" PRId64, (int64_t)(at_ms - NOW_MS));
    return text;
}

static bool is_over(void)
{
    return play.over; /* at the end nobody looks */
}

/* ---- clocks and servers ---- */

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

uint64_t __wrap_clock_wall_ms(void)
{
    return WALL_MS + play.now_ms - NOW_MS;
}

uint64_t __wrap_connection_epoch(const struct connection *connection)
{
    (void)connection;
    return 1;
}

size_t __wrap_connection_max_payload(const struct connection *connection)
{
    (void)connection;
    return 1 << 20;
}

thole_status __wrap_requests_open(struct connection *connection, size_t window, uint64_t timeout_ms,
                                  request_done_fn *done, void *arg, struct requests **ret,
                                  thole_error *reterr)
{
    (void)connection, (void)reterr;
    CU_ASSERT_PTR_EQUAL(arg, &play.shard);
    CU_ASSERT_PTR_EQUAL(done, request_on_reply);
    if (play.whole)
        (void)fprintf(play.said, "  a window of %zu, %" PRIu64 " ms\n", window, timeout_ms);
    *ret = NULL;
    return THOLE_OK;
}

thole_status __wrap_store_start(struct shard *shard, struct store **ret, thole_error *reterr)
{
    (void)reterr;
    CU_ASSERT_PTR_EQUAL(shard, &play.shard);
    if (play.whole)
        (void)fprintf(play.said, "  the store starts\n");
    *ret = NULL;
    return THOLE_OK;
}

struct stack_pool *__wrap_stack_pool_create(size_t keep_max, size_t stacks_max)
{
    if (play.whole)
        (void)fprintf(play.said, "  stacks: %zu, %zu kept\n", stacks_max, keep_max);
    return NULL;
}

void __wrap_stack_pool_destroy(struct stack_pool *pool)
{
    (void)pool;
}

/* ---- the machines ---- */

struct partition *__wrap_partition_create(const struct partition_options *options)
{
    static const uint8_t key[NONCE_KEY_BYTES] = {9};
    CU_ASSERT_EQUAL(memcmp(options->nonce_key, key, sizeof key), 0);
    CU_ASSERT_PTR_EQUAL(options->watch, &play.shard.watch);
    CU_ASSERT_PTR_EQUAL(options->orchestrations, play.engine.program->orchestrations);
    if (play.whole)
        (void)fprintf(
            play.said,
            "  machine of %u: node %.*s orchestrations %zu payload %zu record %zu memory %zu parked %zu "
            "crashes %u early %" PRIu64 " quarantine %" PRIu64 "\n",
            options->partition, THOLE_FMT(options->node), options->orchestrations_len, options->payload_max,
            options->record_max, options->instance_memory_max, (size_t)options->parked_max,
            (unsigned)options->crash_limit, options->early_event_ms, options->quarantine_ms);
    return (struct partition *)(uintptr_t)(options->partition + 1);
}

void __wrap_partition_destroy(struct partition *partition)
{
    (void)partition;
}

enum partition_state __wrap_partition_state(const struct partition *p)
{
    return play.states[partition_of(p)];
}

uint64_t __wrap_partition_open_activities(const struct partition *p)
{
    (void)p;
    return 0;
}

uint64_t __wrap_partition_epoch(const struct partition *p)
{
    (void)p;
    return 7;
}

uint64_t __wrap_partition_committed_sequence(const struct partition *p)
{
    (void)p;
    return 0;
}

size_t __wrap_partition_pending(const struct partition *p)
{
    return play.pending * partition_of(p);
}

size_t __wrap_partition_pending_bytes(const struct partition *p)
{
    return 100 * play.pending * partition_of(p);
}

uint64_t __wrap_partition_deadline_ms(const struct partition *p)
{
    return play.machine == 0 || partition_of(p) != 1 ? UINT64_MAX : WALL_MS + play.machine;
}

/* Said while it is so. */
void __wrap_partition_forms_read(struct partition *p, struct record_forms by_all)
{
    if (by_all.ranges && !is_over())
        (void)fprintf(play.said, "  %" PRIu64 " may write ranges\n", partition_of(p));
    if (by_all.references && !is_over())
        (void)fprintf(play.said, "  %" PRIu64 " may write references\n", partition_of(p));
    if (by_all.lists && !is_over())
        (void)fprintf(play.said, "  %" PRIu64 " may write lists\n", partition_of(p));
}

bool __wrap_partition_flush(struct partition *p, uint64_t now_ms, bool rows)
{
    play.more = true;
    if (!is_over())
        (void)fprintf(play.said, "  %" PRIu64 " is stepped at %" PRIu64 "%s\n", partition_of(p),
                      now_ms - WALL_MS, rows ? "" : ", and keeps its rows");
    return !rows && partition_of(p) == 1;
}

bool __wrap_store_is_calling(const struct store *store)
{
    CU_ASSERT_PTR_EQUAL(store, play.shard.store);
    return play.calling != 0;
}

bool __wrap_partition_poll(struct partition *p, struct partition_out *ret)
{
    bool const more = play.more;
    (void)p;
    *ret = (struct partition_out){.kind = PARTITION_OUT_SEND};
    play.more = false;
    return more;
}

void __wrap_shard_do(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    CU_ASSERT_PTR_EQUAL(shard, &play.shard);
    if (!is_over())
        (void)fprintf(play.said, "  %u does an output %d\n", owned->p, out->kind == PARTITION_OUT_SEND);
}

size_t __wrap_partition_live_names(const struct partition *p, const thole_slice **ret)
{
    static thole_slice names[64];
    size_t const n = strlen(play.names);
    (void)p;
    for (size_t i = 0; i < n; i++)
        names[i] = (thole_slice){(uint8_t *)&play.names[i], 1};
    *ret = names;
    return n;
}

void __wrap_membership_needs_changed(struct membership *m)
{
    (void)m;
    (void)fprintf(play.said, "  the needs have grown\n");
}

void __wrap_shard_input(struct owned *owned, const struct partition_in *in)
{
    static const char *const names[] = {
        [PARTITION_IN_OPEN] = "open", [PARTITION_IN_CLOSE] = "close", [PARTITION_IN_RIVAL] = "rival"};
    if (in->kind == PARTITION_IN_OPEN)
        play.states[owned->p] = PARTITION_OPENING;
    if (!is_over())
        (void)fprintf(play.said, "  %u gets %s %" PRIu64 "\n", owned->p, names[in->kind],
                      in->kind == PARTITION_IN_RIVAL ? in->rival.epoch : 0);
}

void __wrap_shard_step_down(struct owned *owned, const char *text)
{
    if (!is_over())
        (void)fprintf(play.said, "  %u steps down: %s, counted as %d\n", owned->p, text, owned->cause);
    owned->cause = CLOSED_OTHER;
}

/* ---- the other parts ---- */

/* A letter for each part that looks after the partition; all are given the time of the step. */
static void looks_after(const struct shard *shard, const struct owned *owned, uint64_t now_ms, char part)
{
    size_t const len = strlen(play.cared);
    CU_ASSERT_PTR_EQUAL(shard, &play.shard);
    CU_ASSERT_EQUAL(now_ms, play.now_ms);
    (void)snprintf(play.cared + len, sizeof play.cared - len, "%u%c", owned->p, part);
}

void __wrap_sweeper_run(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    looks_after(shard, owned, now_ms, 's');
}

void __wrap_inbox_watch(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    looks_after(shard, owned, now_ms, 'i');
}

void __wrap_rows_watch(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    looks_after(shard, owned, now_ms, 'r');
}

void __wrap_queries_retry(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    looks_after(shard, owned, now_ms, 'q');
}

uint64_t __wrap_sweeper_deadline_ms(const struct owned *owned)
{
    return owned->p == 1 ? due(play.sweep) : UINT64_MAX;
}

uint64_t __wrap_inbox_watch_ms(const struct owned *owned)
{
    return owned->p == 3 ? due(play.watch) : UINT64_MAX;
}

uint64_t __wrap_rows_watch_ms(const struct owned *owned)
{
    return owned->p == 3 ? due(play.looks) : UINT64_MAX;
}

void __wrap_queries_close(struct shard *shard, struct owned *owned)
{
    (void)shard;
    if (play.whole)
        (void)fprintf(play.said, "  the queries of %u are closed\n", owned->p);
}

void __wrap_inbox_held(struct shard *shard, size_t messages, size_t bytes)
{
    (void)shard;
    if (!is_over() && messages > 0)
        (void)fprintf(play.said, "  holds %zu messages, %zu bytes\n", messages, bytes);
}

uint64_t __wrap_requests_run(struct shard *shard, uint64_t now_ms)
{
    (void)shard;
    CU_ASSERT_EQUAL(now_ms, play.now_ms);
    return due(play.requests);
}

uint64_t __wrap_log_limits_rest(struct log_limits *limits, uint64_t now_ms)
{
    (void)limits;
    CU_ASSERT_EQUAL(now_ms, play.now_ms);
    return due(play.limits);
}

uint64_t __wrap_shard_count_partitions(struct shard *shard, uint64_t now_ms)
{
    CU_ASSERT_EQUAL(now_ms, play.now_ms);
    if (shard->uncounted && !is_over())
        (void)fprintf(play.said, "  is counted\n");
    shard->uncounted = false;
    return due(play.counts);
}

void __wrap_shard_count_link(struct shard *shard, bool was_up, bool up)
{
    (void)shard;
    if (!is_over())
        (void)fprintf(play.said, "  NATS is %s, was %s\n", up ? "up" : "down", was_up ? "up" : "down");
}

void __wrap_shard_count_store(struct shard *shard, bool up)
{
    (void)shard;
    if (!is_over())
        (void)fprintf(play.said, "  Postgres is %s\n", up ? "up" : "down");
}

void __wrap_inbox_take(struct shard *shard, struct shard_mail *mail)
{
    (void)shard;
    (void)fprintf(play.said, "  a message for %u\n", mail->p);
    free(mail);
}

void __wrap_inbox_lost(struct shard *shard, const struct shard_mail *mail)
{
    (void)shard;
    (void)fprintf(play.said, "  the reader of %u is lost\n", mail->p);
}

void __wrap_query_take(struct shard *shard, const struct shard_mail *mail)
{
    (void)shard;
    (void)fprintf(play.said, "  a question for %u\n", mail->p);
}

void __wrap_request_answered(struct request *request)
{
    (void)fprintf(play.said, "  the answer for %u\n", request->mail.p);
    free(request);
}

/* ---- events ---- */

static struct shard_mail *send(enum shard_mail_kind kind, uint64_t p)
{
    struct shard_mail *const mail = shard_mail_create(kind, (uint32_t)p, sizeof(struct request));
    shard_send(&play.shard, mail);
    return mail; /* this is the thread that takes it */
}

static struct owned *owned_of(uint64_t p)
{
    return &play.shard.owned[p / SHARDS];
}

static bool mail_comes(const char *name, uint64_t p, uint64_t value)
{
    if (strcmp(name, "link+") == 0 || strcmp(name, "link-") == 0)
        shard_tell_link(&play.shard, name[4] == '+', false);
    else if (strcmp(name, "shared+") == 0 || strcmp(name, "shared-") == 0)
        shard_tell_link(&play.shard, name[6] == '+', true);
    else if (strcmp(name, "store+") == 0 || strcmp(name, "store-") == 0)
        send(SHARD_STORE_LINK, 0)->up = name[5] == '+';
    else if (strcmp(name, "older") == 0)
        send(SHARD_STORE_LINK, 0)->restored = true;
    else if (strcmp(name, "own") == 0)
        send(SHARD_OWN, p)->since_ms = NOW_MS + value;
    else if (strcmp(name, "epoch") == 0)
        send(SHARD_EPOCH, p)->epoch = value;
    else if (strcmp(name, "disown") == 0)
        (void)send(SHARD_DISOWN, p);
    else if (strcmp(name, "rows") == 0)
        (void)send(SHARD_ROWS_REMOVED, p);
    else if (strcmp(name, "inbox") == 0)
        (void)send(SHARD_INBOX, p);
    else if (strcmp(name, "lost") == 0)
        (void)send(SHARD_INBOX_LOST, p);
    else if (strcmp(name, "query") == 0)
        (void)send(SHARD_QUERY, p);
    else if (strcmp(name, "answer") == 0)
        (void)send(SHARD_ANSWER, p);
    else if (strcmp(name, "stop") == 0)
        (void)send(SHARD_STOP, 0);
    else
        return false;
    return true;
}

static void becomes(const char *word)
{
    static int reader;
    const struct {
        const char *name;
        uint64_t *to;
    } times[] = {{"machine", &play.machine}, {"sweep", &play.sweep},       {"watch", &play.watch},
                 {"looks", &play.looks},     {"requests", &play.requests}, {"limits", &play.limits},
                 {"counts", &play.counts},   {"pending", &play.pending},   {"calling", &play.calling}};
    char name[32] = "", text[32] = "";
    uint64_t p = 0, value = 0;
    (void)sscanf(word, "%31[^=]=%31s", name, text);
    if (strchr(text, ':') != NULL)
        (void)sscanf(text, "%" SCNu64 ":%" SCNu64, &p, &value);
    else
        p = value = strtoull(text, NULL, 10);
    if (mail_comes(name, p, value))
        return;
    if (strcmp(name, "state") == 0)
        play.states[p] = (enum partition_state)value;
    else if (strcmp(name, "touch") == 0)
        owned_of(p)->touched = true;
    else if (strcmp(name, "reader") == 0)
        owned_of(p)->reader = value == 1 ? (struct inbox_reader *)&reader : NULL;
    else if (strcmp(name, "queries") == 0)
        owned_of(p)->queries_ms = NOW_MS + value;
    else if (strcmp(name, "failures") == 0)
        owned_of(p)->failures = (uint32_t)value;
    else if (strcmp(name, "needs") == 0)
        (void)snprintf(play.names, sizeof play.names, "%s", text);
    else if (strcmp(name, "now") == 0)
        play.now_ms = NOW_MS + value;
    else {
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(times); i++)
            if (strcmp(name, times[i].name) == 0) {
                *times[i].to = value;
                known = true;
            }
        CU_ASSERT_TRUE(known);
    }
}

static void say_shared(void)
{
    for (uint32_t p = 0; p < PARTITIONS; p++)
        for (size_t i = 0; i < play.engine.needs[p].names_len; i++)
            (void)fprintf(play.said, "%s%.*s", i == 0 ? ", needs " : "",
                          THOLE_FMT(play.engine.needs[p].names[i]));
    (void)fprintf(play.said, "\n");
}

/* The next step; after the last one all is closed, and its thread is stopped. */
void __wrap_connection_read(struct connection *connection, struct pollfd *also, size_t n,
                            uint64_t deadline_ms, connection_awake_fn *awake, void *arg)
{
    CU_ASSERT_FALSE(wrap_cork_is_on()); /* nothing is held back while it sleeps */
    CU_ASSERT_PTR_EQUAL(connection, play.shard.connection);
    wrap_shard_waits(&play.shard, also, n);
    awake(arg);
    if (is_over())
        return;
    CHECK_STR("looked after", play.cared, "1s1i1r1q3s3i3r3q");
    play.cared[0] = '\0';
    (void)fprintf(play.said, "  waits until %s", time_text(deadline_ms));
    for (size_t i = 0; i < play.shard.owned_len; i++)
        if (play.shard.owned[i].failures > 0)
            (void)fprintf(play.said, ", %u has failed %u times", play.shard.owned[i].p,
                          play.shard.owned[i].failures);
    say_shared();
    if (*play.script == '\0') {
        play.over = true;
        for (size_t i = 0; i < play.shard.owned_len; i++)
            play.shard.owned[i].reader = NULL;
        memset(play.states, 0, sizeof play.states);
        (void)send(SHARD_STOP, 0);
        return;
    }
    size_t const len = strcspn(play.script, "|");
    char step[256], *rest = step;
    (void)snprintf(step, sizeof step, "%.*s", (int)len, play.script);
    (void)fprintf(play.said, " *%.*s\n", (int)(len - (len > 0 && step[len - 1] == ' ')), step);
    for (const char *word; (word = strtok_r(rest, " ", &rest)) != NULL;)
        becomes(word);
    play.script += len + (play.script[len] == '|');
}

void __wrap_connection_leave(struct connection *connection)
{
    CU_ASSERT_PTR_EQUAL(connection, play.shard.connection);
    if (play.whole)
        (void)fprintf(play.said, "  its connection reads itself\n");
}

void __wrap_connection_close(struct connection *connection)
{
    CU_ASSERT_PTR_EQUAL(connection, play.shard.connection);
}

static void begin(FILE *to)
{
    static const thole_orchestration_entry orchestrations[3];
    static const thole_program program = {.orchestrations = orchestrations, .orchestrations_len = 3};
    memset(&play, 0, sizeof play);
    play.said = to;
    play.now_ms = NOW_MS;
    play.page = crash_page_create();
    play.engine.program = &program;
    play.engine.options = (struct host_options){.node = "a",
                                                .crash_page = play.page,
                                                .payload_max = 1001,
                                                .instance_memory_max = 1002,
                                                .parked_max = 1003,
                                                .crash_limit = 1004,
                                                .early_event_ms = 1005,
                                                .quarantine_ms = 1006};
    play.engine.topology.partitions = PARTITIONS;
    play.engine.topology.nonce_key.bytes[0] = 9;
    (void)snprintf(play.engine.topology.ns, sizeof play.engine.topology.ns, "shop");
    play.engine.shards = &play.shard;
    play.engine.shards_len = SHARDS;
    shard_init(&play.engine, INDEX, &play.shard);
    play.shard.connection = (struct connection *)&play;
    play.engine.needs = calloc(PARTITIONS, sizeof *play.engine.needs);
    pthread_mutex_init(&play.engine.needs_lock, NULL);
}

static void end(void)
{
    shard_stop(&play.shard);
    shard_release(&play.shard);
    for (size_t p = 0; p < PARTITIONS; p++)
        free(play.engine.needs[p].names);
    free(play.engine.needs);
    pthread_mutex_destroy(&play.engine.needs_lock);
    crash_page_destroy(play.page);
}

static void play_line(const char *line, FILE *to)
{
    begin(to);
    play.whole = strchr(line, '|') == NULL;
    play.script = line + strcspn(line, "|");
    play.script += *play.script == '|';
    CU_ASSERT_EQUAL_FATAL(shard_start(&play.shard, NULL), THOLE_OK);
    pthread_join(play.shard.thread, NULL);
    play.shard.running = false;
    CU_ASSERT_EQUAL(play.shard.owned_len, PARTITIONS / SHARDS);
    for (size_t i = 0; play.whole && i < play.shard.owned_len; i++)
        (void)fprintf(to, "  %u: %s %s\n", play.shard.owned[i].p, play.shard.owned[i].hist_stream,
                      play.shard.owned[i].in_stream);
    end();
}

static void test_transcript(void)
{
    transcript_check(TRANSCRIPT, play_line);
}

static void test_heap(void)
{
    transcript_check_heap(TRANSCRIPT, play_line);
}

static const struct thole_test tests[] = {{"transcript", test_transcript}, {"heap", test_heap}};
THOLE_TEST_MAIN("shard_loop", tests)
