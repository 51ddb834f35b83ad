/* Reads histories, and prints the reports. */
#include "replay_host.h"
#include "call_site.h"
#include "clock.h"
#include "connection.h"
#include "file_fault.h"
#include "history_file.h"
#include "inbox_prefix.h"
#include "json_file.h"
#include "log_rule.h"
#include "message.h"
#include "reader.h"
#include "replayer.h"
#include "restored.h"
#include "subject.h"
#include "topology.h"
#include "values.h"
#include "write_flaw.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TIMEOUT_MS = 10000,
    THREADS_MAX = 64,
    STACKS_MAX = 30000, /* of all threads: two mappings each, vm.max_map_count is 65530 */
    REPORTS_MAX = 100,
    LACKING_MAX = 20, /* reports of running instances without code */
    CALL_SITE_BYTES = 2048,
    TEXT_BYTES = 8192,
    PROGRESS_MS = 200,
};

struct replay {
    const struct host_command *command;
    const thole_program *program;
    struct connection *connection;
    struct topology topology;
    size_t threads;
    atomic_uint next_partition, lacking;
    bool terminal; /* stderr is one: for --all, it shows how far it is */
    atomic_uint done_partitions;
    atomic_uint_least64_t records, progress_due_ms;
    pthread_mutex_t lock; /* guards the rest, and stdout */
    struct replay_counts counts;
    struct json json; /* of the single document; begun with the first report */
    bool begun;
    size_t reports;
    bool stopped;
    uint64_t until_execution, until_event;
    bool reached;
    uint64_t missing; /* ids that have no history */
    thole_status status;
    thole_error error;
};

/* State of reading, from a stream or a file. */
struct reading {
    struct replay *replay;
    struct replayer *replayer;
    uint64_t records, sequence; /* of the last one */
    thole_slice instance;       /* of one instance's history */
    bool deleted, restored;     /* not in the log (any more); the restored records are read */
    /* for a partition's whole log: as far as it was read; for one instance's records: with the log's last
     * EpochOpened */
    struct log_rule rule;
};

/* ---- progress, on a terminal ---- */

/* Under the lock, or in the one thread that there is. */
static void replay_host_clear_progress(const struct replay *replay)
{
    if (replay->terminal)
        (void)fputs("\r\033[K", stderr);
}

static void replay_host_show_progress(struct replay *replay)
{
    atomic_fetch_add(&replay->records, 1);
    if (!replay->terminal)
        return;
    uint64_t const now_ms = clock_monotonic_ms();
    uint64_t due_ms = atomic_load(&replay->progress_due_ms);
    if (now_ms < due_ms ||
        !atomic_compare_exchange_strong(&replay->progress_due_ms, &due_ms, now_ms + PROGRESS_MS))
        return;
    pthread_mutex_lock(&replay->lock);
    replay_host_clear_progress(replay);
    (void)fprintf(stderr, "%u of %u partitions replayed, %" PRIu64 " records",
                  atomic_load(&replay->done_partitions), replay->topology.partitions,
                  (uint64_t)atomic_load(&replay->records));
    pthread_mutex_unlock(&replay->lock);
}

/* ---- reports ---- */

static void put_escaped(thole_slice text, struct buf *to)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < 0x20 || text.ptr[i] == 0x7f)
            buf_printf(to, "\\x%02x", text.ptr[i]);
        else
            buf_append(to, &text.ptr[i], 1);
}

enum { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_JSONL }; /* of host_command.output */

static void replay_host_begin_document(struct replay *replay)
{
    if (replay->begun || replay->command->output != OUTPUT_JSON)
        return;
    replay->begun = true;
    json_document(&replay->json, stdout, "thole.replay.v1");
    json_key(&replay->json, "reports");
    json_array(&replay->json);
}

/* @p site: empty = unknown. Under the lock. */
static void report_json(struct replay *replay, const char *kind, const struct replay_report *report,
                        const char *site)
{
    struct json *json = &replay->json;
    replay_host_begin_document(replay);
    if (replay->command->output == OUTPUT_JSON) {
        json_object(json);
    } else {
        json_document(json, stdout, "thole.replay_report.v1");
    }
    json_member_text(json, "kind", kind);
    json_member(json, "instance", report->instance);
    if (report->execution > 0) {
        json_member_number(json, "execution", report->execution);
        json_member_number(json, "turn", report->turn);
    }
    json_member_text(json, "text", report->text);
    if (site[0] != '\0')
        json_member_text(json, "asked_for_at", site);
    json_end(json);
}

static void report_text(const char *kind, const struct replay_report *report, const char *site)
{
    struct buf text;
    buf_init(&text, TEXT_BYTES);
    buf_printf(&text, "%s ", kind);
    put_escaped(report->instance, &text);
    buf_printf(&text, " execution %" PRIu64 " turn %" PRIu64 ": ", report->execution, report->turn);
    put_escaped(thole_slice_from(report->text), &text);
    if (site[0] != '\0')
        buf_printf(&text, "\n  asked for at %s", site);
    (void)printf("%s\n", buf_cstr(&text));
    buf_release(&text);
}

static bool replay_host_on_report(void *arg, const struct replay_report *report)
{
    const struct reading *reading = arg;
    struct replay *replay = reading->replay;
    bool const lacks = report->status == THOLE_NOT_FOUND; /* the counts have them all */
    const char *kind = lacks ? "NO_CODE" : report->status == THOLE_NONDETERMINISM ? "DIVERGED" : "UNREADABLE";
    struct buf site;
    if (lacks && atomic_fetch_add(&replay->lacking, 1) >= LACKING_MAX)
        return true;
    buf_init(&site, CALL_SITE_BYTES);
    if (report->call_site != NULL)
        call_site_text(report->call_site, &site);
    pthread_mutex_lock(&replay->lock);
    replay_host_clear_progress(replay);
    if (replay->command->output == OUTPUT_TABLE)
        report_text(kind, report, buf_cstr(&site));
    else
        report_json(replay, kind, report, buf_cstr(&site));
    if (!lacks)
        replay->stopped |= ++replay->reports >= REPORTS_MAX;
    bool const go_on = !replay->stopped;
    pthread_mutex_unlock(&replay->lock);
    buf_release(&site);
    return go_on;
}

/* In the code's own stack: a debugger shows where it is. */
static void on_reached(void *arg, const struct replay_report *report)
{
    const struct reading *reading = arg;
    struct replay *replay = reading->replay;
    char text[64];
    struct replay_report said = *report;
    struct buf site;
    (void)snprintf(text, sizeof text, "has come to event %" PRIu64, replay->until_event);
    said.text = text;
    buf_init(&site, CALL_SITE_BYTES);
    if (report->call_site != NULL)
        call_site_text(report->call_site, &site);
    if (replay->command->output == OUTPUT_TABLE)
        report_text("REACHED", &said, buf_cstr(&site));
    else
        report_json(replay, "REACHED", &said, buf_cstr(&site));
    (void)fflush(stdout);
    buf_release(&site);
    replay->reached = true;
    if (replay->command->stop)
        (void)raise(SIGTRAP); /* a debugger stops here: "up" to the orchestration's function */
}

static void add_counts(struct replay *replay, struct replayer *replayer)
{
    replayer_cut(replayer);
    struct replay_counts const counts = replayer_counts(replayer);
    pthread_mutex_lock(&replay->lock);
    replay_counts_add(&replay->counts, &counts);
    pthread_mutex_unlock(&replay->lock);
}

/* A deletion removes the records one by one, also while they are read. */
static bool was_deleted(void *arg, thole_slice instance)
{
    const struct reading *reading = arg;
    const struct replay *replay = reading->replay;
    struct buf stream, subject;
    uint64_t deleted = 0;
    if (replay->connection == NULL || reading->restored) /* restored records do not change */
        return false;
    uint32_t const p = subject_partition(instance, replay->topology.partitions);
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = stream_name(&stream, replay->topology.ns, "HIST", p, NULL);
    if (status == THOLE_OK)
        status = subject_history(&subject, replay->topology.ns, p, instance, EXECUTION_DELETED, NULL);
    if (status == THOLE_OK)
        status = stream_last_by_subject(replay->connection, buf_cstr(&stream), buf_cstr(&subject), &deleted,
                                        NULL, NULL);
    buf_release(&stream);
    buf_release(&subject);
    return status == THOLE_OK && deleted > reading->sequence;
}

static struct replayer *open_replayer(struct reading *reading)
{
    const struct replay *replay = reading->replay;
    const struct host_options *options = &replay->command->options;
    uint64_t const payload_max = options->payload_max != 0    ? options->payload_max
                                 : replay->connection != NULL ? replay->topology.payload_max
                                                              : THOLE_PAYLOAD_BYTES_DEFAULT;
    struct replay_options const wish = {.program = replay->program,
                                        .memory_max = (size_t)replay->command->memory_max / replay->threads,
                                        .stacks_max = STACKS_MAX / replay->threads,
                                        .instance_memory_max = options->instance_memory_max,
                                        .payload_max = payload_max,
                                        .report = replay_host_on_report,
                                        .gone = was_deleted,
                                        .reached = on_reached,
                                        .until_execution = replay->until_execution,
                                        .until_event = replay->until_event,
                                        .arg = reading};
    return replayer_create(&wish);
}

/* ---- one record ---- */

/* The instance and execution that a history subject names. */
static void take_damaged(struct reading *reading, thole_slice subject, const thole_error *why,
                         thole_status *ret)
{
    enum { TOKEN_KIND = 2, TOKEN_INSTANCE = 4, TOKEN_EXECUTION = 5 };
    struct buf id;
    uint64_t execution = 0;
    thole_slice const digits = subject_nth(subject, TOKEN_EXECUTION);
    buf_init(&id, THOLE_ID_BYTES_MAX);
    for (size_t i = 0; i < digits.len && i < 19 && digits.ptr[i] >= '0' && digits.ptr[i] <= '9'; i++)
        execution = execution * 10 + (uint64_t)(digits.ptr[i] - '0');
    if (thole_slice_equal(subject_nth(subject, TOKEN_KIND), THOLE_STR("hist")) &&
        subject_token_decode(subject_nth(subject, TOKEN_INSTANCE), &id, NULL) == THOLE_OK)
        *ret = replayer_take_damage(reading->replayer, buf_bytes(&id), execution, why->status, why->text);
    buf_release(&id);
}

static thole_status replay_host_take(struct reading *reading, const struct record *record)
{
    if (record->kind == RECORD_TURN) {
        THOLE_TRY(replayer_take(reading->replayer, record));
        return reading->replay->reached ? THOLE_CANCELLED : THOLE_OK;
    }
    if (record->kind == RECORD_DELETED) {
        replayer_take_deletion(reading->replayer, record->deletion.instance);
        reading->records = 0; /* when one instance is replayed */
        reading->deleted = true;
    }
    return THOLE_OK;
}

/* In either case @p arena is the caller's to release. */
static thole_status decode_next(struct reading *reading, uint64_t sequence, thole_slice body,
                                struct arena *arena, struct record *ret, thole_error *reterr)
{
    arena_init(arena, (size_t)RECORD_BYTES_MAX * 8);
    reading->records++;
    reading->sequence = sequence;
    return record_decode(body, arena, ret, reterr);
}

static thole_status replay_host_on_log(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct reading *reading = arg;
    struct arena arena;
    struct record record;
    thole_error err = {.status = THOLE_OK};
    replay_host_show_progress(reading->replay);
    thole_status status = decode_next(reading, sequence, delivery->body, &arena, &record, &err);
    if (status == THOLE_OK && log_rule_feed_front(&reading->rule, &record, sequence) == LOG_COUNTS) {
        status = replay_host_take(reading, &record);
    } else if (status != THOLE_OK && status != THOLE_NOMEM) {
        status = THOLE_OK;
        take_damaged(reading, delivery->subject, &err, &status);
    }
    arena_release(&arena);
    return status;
}

static bool replay_host_is_of(const struct record *record, thole_slice instance)
{
    switch (record->kind) {
    case RECORD_TURN: return thole_slice_equal(record->turn.instance, instance);
    case RECORD_DELETED: return thole_slice_equal(record->deletion.instance, instance);
    default: return false;
    }
}

static thole_status replay_host_take_record(struct reading *reading, uint64_t sequence, thole_slice subject,
                                            thole_slice body)
{
    struct arena arena;
    struct record record;
    thole_error err = {.status = THOLE_OK};
    thole_status status = decode_next(reading, sequence, body, &arena, &record, &err);
    bool const is_void = status == THOLE_OK && log_rule_surely_void(&reading->rule, &record, sequence);
    bool const is_its = status == THOLE_OK && replay_host_is_of(&record, reading->instance);
    if (is_its && !is_void)
        status = replay_host_take(reading, &record);
    else if (status == THOLE_OK && !is_its)
        status = thole_fail(&err, THOLE_CORRUPT, "the record at %" PRIu64 " is of something else", sequence);
    if (status != THOLE_OK && status != THOLE_NOMEM && status != THOLE_CANCELLED) {
        status = THOLE_OK;
        if (subject.len > 0)
            take_damaged(reading, subject, &err, &status);
        else
            status = replayer_take_damage(reading->replayer, reading->instance, 1, err.status, err.text);
    }
    arena_release(&arena);
    return status;
}

static thole_status on_one(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    return replay_host_take_record(arg, sequence, delivery->subject, delivery->body);
}

/* ---- streams ---- */

static thole_status replay_host_connect(struct replay *replay, thole_error *reterr)
{
    const struct host_options *options = &replay->command->options;
    char inbox[INBOX_PREFIX_BYTES_MAX + 1];
    struct inbox_owner const owner = {.ns = options->ns, .role = "client"}; /* as thole replay */
    struct connection_options const connection = {.url = options->nats_url,
                                                  .creds = options->nats_creds,
                                                  .ca = options->nats_ca,
                                                  .cert = options->nats_cert,
                                                  .key = options->nats_key,
                                                  .server_name = options->nats_server_name,
                                                  .inbox =
                                                      inbox_prefix_or_own(options->nats_inbox, &owner, inbox),
                                                  .api_prefix = options->nats_api_prefix,
                                                  .name = "thole-replay",
                                                  .connect_timeout_ms = TIMEOUT_MS,
                                                  .request_timeout_ms = TIMEOUT_MS};
    THOLE_TRY(connection_open(&connection, &replay->connection, reterr));
    return topology_read(replay->connection, options->ns, &replay->topology, reterr);
}

static thole_status read_owner(struct reading *reading, const char *stream, uint32_t p, thole_error *reterr)
{
    struct connection *connection = reading->replay->connection;
    struct buf subject, body;
    struct arena arena;
    struct record record;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, RECORD_BYTES_MAX);
    arena_init(&arena, (size_t)RECORD_BYTES_MAX * 8);
    thole_status status = subject_control(&subject, reading->replay->topology.ns, p, "epoch", reterr);
    if (status == THOLE_OK)
        status = stream_last_by_subject(connection, stream, buf_cstr(&subject), &reading->rule.opened, &body,
                                        reterr);
    if (status == THOLE_OK && reading->rule.opened > 0)
        status = record_decode(buf_bytes(&body), &arena, &record, reterr);
    if (status == THOLE_OK && reading->rule.opened > 0)
        reading->rule.epoch = record.epoch;
    arena_release(&arena);
    buf_release(&subject);
    buf_release(&body);
    return status;
}

/* Reads the messages that are stored when it begins; @p filter NULL: all. */
static thole_status replay_host_read_stream(struct reading *reading, const char *stream, const char *filter,
                                            thole_error *reterr)
{
    struct connection *connection = reading->replay->connection;
    stream_delivery_fn *each = filter == NULL ? replay_host_on_log : on_one;
    struct stream_bounds bounds;
    THOLE_TRY(stream_bounds(connection, stream, &bounds, reterr));
    do {
        reading->records = 0;
        if (filter == NULL)
            reading->rule = (struct log_rule){0};
        THOLE_TRY(stream_read_deliveries(connection, stream, filter, 1, bounds.last, each, reading, reterr));
    } while (replayer_pass(reading->replayer));
    return THOLE_OK;
}

static thole_status replay_partition(struct replay *replay, uint32_t p, thole_error *reterr)
{
    struct reading reading = {.replay = replay};
    struct buf stream;
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    thole_status status = stream_name(&stream, replay->topology.ns, "HIST", p, reterr);
    if (status == THOLE_OK) {
        reading.replayer = open_replayer(&reading);
        status = replay_host_read_stream(&reading, buf_cstr(&stream), NULL, reterr);
        add_counts(replay, reading.replayer);
        atomic_fetch_add(&replay->done_partitions, 1);
    }
    replayer_destroy(reading.replayer);
    buf_release(&stream);
    return status;
}

static void say_missing(struct replay *replay, thole_slice instance)
{
    char text[THOLE_ID_BYTES_MAX + 128];
    (void)snprintf(text, sizeof text, "there is no instance \"%.*s\" in namespace %s", THOLE_FMT(instance),
                   replay->topology.ns);
    if (replay->command->output == OUTPUT_TABLE)
        (void)fprintf(stderr, "%s\n", text);
    else
        report_json(replay, "MISSING", &(struct replay_report){.instance = instance, .text = text}, "");
    replay->missing++;
}

static thole_status replay_host_on_restored(void *arg, uint64_t sequence, thole_slice bytes)
{
    return replay_host_take_record(arg, sequence, (thole_slice){NULL, 0}, bytes);
}

/* Of an instance that is not in the log. */
static thole_status replay_host_read_restored(struct reading *reading, uint32_t p, thole_error *reterr)
{
    const struct replay *replay = reading->replay;
    struct restored_place const place = {replay->topology.ns, p, reading->instance};
    bool is = false;
    THOLE_TRY(restored_receipt(replay->connection, &place, &is, NULL, reterr));
    if (!is)
        return THOLE_OK;
    reading->rule = (struct log_rule){0};
    reading->restored = true;
    replayer_destroy(reading->replayer); /* has seen the deletion */
    reading->replayer = open_replayer(reading);
    do {
        reading->records = 0;
        THOLE_TRY(restored_read(replay->connection, &place, replay_host_on_restored, reading, reterr));
    } while (replayer_pass(reading->replayer));
    return THOLE_OK;
}

static thole_status replay_one(struct replay *replay, thole_slice instance, thole_error *reterr)
{
    struct reading reading = {.replay = replay, .instance = instance};
    struct buf stream, filter;
    THOLE_TRY(id_check(instance, reterr));
    uint32_t const p = subject_partition(instance, replay->topology.partitions);
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    buf_init(&filter, SUBJECT_BYTES_MAX);
    thole_status status = stream_name(&stream, replay->topology.ns, "HIST", p, reterr);
    if (status == THOLE_OK)
        status = subject_history(&filter, replay->topology.ns, p, instance, EXECUTIONS_ALL, reterr);
    if (status == THOLE_OK)
        status = read_owner(&reading, buf_cstr(&stream), p, reterr);
    if (status == THOLE_OK) {
        reading.replayer = open_replayer(&reading);
        status = replay_host_read_stream(&reading, buf_cstr(&stream), buf_cstr(&filter), reterr);
        if (status == THOLE_OK && reading.records == 0 && reading.deleted)
            status = replay_host_read_restored(&reading, p, reterr);
        add_counts(replay, reading.replayer);
    }
    if (status == THOLE_OK && reading.records == 0)
        say_missing(replay, instance);
    replayer_destroy(reading.replayer);
    buf_release(&stream);
    buf_release(&filter);
    return status;
}

static void *replay_partitions(void *arg)
{
    struct replay *replay = arg;
    for (;;) {
        thole_error error = {.status = THOLE_OK};
        uint32_t const p = atomic_fetch_add(&replay->next_partition, 1);
        pthread_mutex_lock(&replay->lock);
        bool const go_on = p < replay->topology.partitions && replay->status == THOLE_OK && !replay->stopped;
        pthread_mutex_unlock(&replay->lock);
        if (!go_on)
            return NULL;
        thole_status const status = replay_partition(replay, p, &error);
        pthread_mutex_lock(&replay->lock);
        if (status != THOLE_OK && replay->status == THOLE_OK) {
            replay->status = status;
            replay->error = error;
        }
        pthread_mutex_unlock(&replay->lock);
    }
}

static thole_status replay_all(struct replay *replay, thole_error *reterr)
{
    pthread_t threads[THREADS_MAX];
    size_t started = 0;
    while (started + 1 < replay->threads &&
           pthread_create(&threads[started], NULL, replay_partitions, replay) == 0)
        started++;
    (void)replay_partitions(replay);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    replay_host_clear_progress(replay);
    return replay->status == THOLE_OK ? THOLE_OK
                                      : thole_fail(reterr, replay->status, "%s", replay->error.text);
}

static thole_status replay_ids(struct replay *replay, thole_error *reterr)
{
    const struct host_command *command = replay->command;
    for (int i = 0; i < command->words_len && !replay->stopped; i++)
        THOLE_TRY(replay_one(replay, thole_slice_from(command->words[i]), reterr));
    return THOLE_OK;
}

/* ---- files ---- */

static thole_status replay_host_file_begin(void *arg, thole_slice instance)
{
    struct reading *reading = arg;
    reading->instance = instance;
    reading->replayer = open_replayer(reading);
    return THOLE_OK;
}

static thole_status replay_host_file_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    return replay_host_take_record(arg, sequence, (thole_slice){NULL, 0}, bytes);
}

/* One history: it needs no second pass. */
static thole_status replay_host_file_end(void *arg)
{
    struct reading *reading = arg;
    (void)replayer_pass(reading->replayer);
    add_counts(reading->replay, reading->replayer);
    replayer_destroy(reading->replayer);
    reading->replayer = NULL;
    return THOLE_OK;
}

static thole_status replay_file(struct replay *replay, thole_error *reterr)
{
    const char *path = replay->command->file;
    bool const standard = strcmp(path, "-") == 0;
    struct reading reading = {.replay = replay};
    struct history_file_reader const reader = {.begin = replay_host_file_begin,
                                               .record = replay_host_file_record,
                                               .end = replay_host_file_end,
                                               .arg = &reading};
    thole_error err = {.status = THOLE_OK};
    FILE *from = standard ? stdin : fopen(path, "re");
    if (from == NULL)
        return file_fault_read(path, errno, reterr);
    thole_status status = history_file_read(from, &reader, &err);
    if (status != THOLE_OK && status != THOLE_CANCELLED)
        status = thole_fail(reterr, status, "%s: %.400s", path, err.text);
    if (reading.replayer != NULL) { /* the file ends within a history */
        (void)replayer_pass(reading.replayer);
        add_counts(replay, reading.replayer);
        replayer_destroy(reading.replayer);
    }
    if (!standard)
        (void)fclose(from);
    return status;
}

/* ---- all histories ---- */

/* Whether there are histories, but the program has code for none of them. */
static bool compared_nothing(const struct replay *replay)
{
    return replay->counts.executions == 0 && replay->counts.without_code > 0;
}

/* " a, b," */
static void unknown_json(struct json *json, const char *unknown)
{
    json_key(json, "unknown");
    json_array(json);
    for (const char *at = unknown; *at == ' ';) {
        size_t const len = strcspn(at + 1, ",");
        json_string(json, (thole_slice){(const uint8_t *)at + 1, len});
        at += 1 + len + 1;
    }
    json_end(json);
}

/* Whether another process traces this one. */
static bool is_debugged(void)
{
    char line[256];
    unsigned tracer = 0;
    FILE *from = fopen("/proc/self/status", "re");
    while (from != NULL && fgets(line, sizeof line, from) != NULL)
        if (strncmp(line, "TracerPid:", strlen("TracerPid:")) == 0)
            tracer = (unsigned)strtoul(line + strlen("TracerPid:"), NULL, 10);
    if (from != NULL)
        (void)fclose(from);
    return tracer != 0;
}

static void end_json(struct replay *replay, uint64_t elapsed_ms)
{
    const struct replay_counts *counts = &replay->counts;
    struct json *json = &replay->json;
    replay_host_begin_document(replay);
    if (replay->command->output == OUTPUT_JSON) {
        json_end(json);
    } else {
        json_document(json, stdout, "thole.replay.v1");
    }
    json_member_number(json, "instances", counts->instances);
    json_member_number(json, "executions", counts->executions);
    json_member_number(json, "events", counts->events);
    json_member_number(json, "elapsed_ms", elapsed_ms);
    json_member_number(json, "diverged", counts->diverged);
    json_member_number(json, "unreadable", counts->unreadable);
    json_member_number(json, "without_code", counts->without_code);
    json_member_number(json, "running_without_code", counts->running_without_code);
    unknown_json(json, counts->unknown);
    json_member_number(json, "missing", replay->missing);
    if (replay->until_event != 0)
        json_member_bool(json, "reached", replay->reached);
    json_member_bool(json, "complete", !replay->stopped); /* false: stopped after many reports */
    json_end(json);
}

static void replay_host_say_end(const struct replay *replay, uint64_t elapsed_ms)
{
    const struct replay_counts *counts = &replay->counts;
    uint64_t const per_s = counts->events * 1000 / (elapsed_ms == 0 ? 1 : elapsed_ms);
    (void)printf("%s%" PRIu64 " instances, %" PRIu64 " executions, %" PRIu64 " events replayed in %" PRIu64
                 ".%03" PRIu64 " s: %" PRIu64 " events/s; %" PRIu64 " diverged, %" PRIu64
                 " unreadable, %" PRIu64 " without code here",
                 replay->stopped ? "stopped after many reports: " : "", counts->instances, counts->executions,
                 counts->events, elapsed_ms / 1000, elapsed_ms % 1000, per_s, counts->diverged,
                 counts->unreadable, counts->without_code);
    if (counts->unknown[0] != '\0') /* " a, b," */
        (void)printf(" (%.*s)", (int)strlen(counts->unknown) - 2, counts->unknown + 1);
    if (counts->running_without_code > 0)
        (void)printf(", %" PRIu64 " of them run", counts->running_without_code);
    (void)printf("\n");
    (void)fflush(stdout); /* before the output on stderr */
    if (replay->until_event != 0 && !replay->reached)
        (void)fprintf(stderr, "no execution here comes to event %s\n", replay->command->until);
    else if (counts->running_without_code > 0 && !compared_nothing(replay))
        (void)fprintf(stderr,
                      "%s lacks code of instances that run: with it they would wait\n"
                      "Try: keep that version registered until they have ended\n",
                      replay->program->name);
    if (compared_nothing(replay))
        (void)fprintf(stderr,
                      "%s has code for none of these histories: nothing was compared\n"
                      "Try: the program that registers those orchestrations, or another namespace (-n)\n",
                      replay->program->name);
}

static int replay_host_verdict(const struct replay *replay)
{
    if (replay->counts.diverged > 0)
        return EXIT_REPLAY_DIVERGED;
    if (replay->counts.unreadable > 0)
        return EXIT_REPLAY_FAILED;
    if (compared_nothing(replay) || replay->counts.running_without_code > 0)
        return EXIT_REPLAY_NO_CODE;
    bool const unreached = replay->until_event != 0 && !replay->reached;
    return replay->missing > 0 || unreached ? EXIT_REPLAY_NOT_FOUND : EXIT_REPLAY_SAME;
}

static size_t count_threads(const struct host_command *command, const struct topology *topology)
{
    long const cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t threads = command->threads != 0 ? command->threads : cores < 1 ? 1 : (size_t)cores;
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    return threads < topology->partitions ? threads : topology->partitions;
}

/* "17", "2.17". */
static thole_status replay_host_read_until(struct replay *replay, thole_error *reterr)
{
    const char *text = replay->command->until, *dot = text == NULL ? NULL : strchr(text, '.');
    char execution[24] = "";
    if (text == NULL)
        return THOLE_OK;
    if (dot != NULL)
        (void)snprintf(execution, sizeof execution, "%.*s", (int)(dot - text), text);
    bool const good = (dot == NULL || number_parse(execution, &replay->until_execution, NULL) == THOLE_OK) &&
                      number_parse(dot == NULL ? text : dot + 1, &replay->until_event, NULL) == THOLE_OK;
    if (!good || replay->until_event == 0)
        return thole_fail(reterr, THOLE_INVALID,
                          "--until: %.60s is no event; expected 17, or 2.17 of execution 2", text);
    if (replay->command->stop && !is_debugged())
        return thole_fail(reterr, THOLE_INVALID,
                          "--break: no debugger runs this program; try: gdb --args PROGRAM replay ...");
    return THOLE_OK;
}

static thole_status replay_host_execute(struct replay *replay, thole_error *reterr)
{
    THOLE_TRY(replay_host_read_until(replay, reterr));
    if (replay->command->file != NULL)
        return replay_file(replay, reterr);
    THOLE_TRY(replay_host_connect(replay, reterr));
    if (!replay->command->all)
        return replay_ids(replay, reterr);
    replay->threads = count_threads(replay->command, &replay->topology);
    return replay_all(replay, reterr);
}

/* The document is complete JSON also when reading fails. */
static void end_broken(struct replay *replay)
{
    json_end(&replay->json);
    json_member_bool(&replay->json, "complete", false);
    json_end(&replay->json);
}

void replay_host_complain(const struct host_command *command, const thole_program *program, int code,
                          const thole_error *error)
{
    struct json json;
    if (command->output == OUTPUT_TABLE) {
        (void)fprintf(stderr, "%s replay: %s\n", program->name, error->text);
        return;
    }
    json_document(&json, stderr, "thole.error.v1");
    json_key(&json, "error");
    json_object(&json);
    json_member_text(&json, "status", thole_status_name(error->status));
    json_member_number(&json, "exit_code", (uint64_t)code);
    json_member(&json, "verb", THOLE_STR("replay"));
    json_member_text(&json, "message", error->text);
    json_end(&json);
    json_end(&json);
}

thole_status replay_host_run(const struct host_command *command, const thole_program *program, int *ret_code,
                             thole_error *reterr)
{
    struct replay replay = {.command = command,
                            .program = program,
                            .threads = 1,
                            .terminal = command->output == OUTPUT_TABLE && isatty(STDERR_FILENO) == 1};
    pthread_mutex_init(&replay.lock, NULL);
    uint64_t const began_ms = clock_monotonic_ms();
    thole_status status = replay_host_execute(&replay, reterr);
    if (status == THOLE_CANCELLED && (replay.stopped || replay.reached))
        status = THOLE_OK;
    if (status == THOLE_OK && command->output == OUTPUT_TABLE)
        replay_host_say_end(&replay, clock_monotonic_ms() - began_ms);
    else if (status == THOLE_OK)
        end_json(&replay, clock_monotonic_ms() - began_ms);
    else if (replay.begun)
        end_broken(&replay);
    *ret_code = replay_host_verdict(&replay);
    connection_close(replay.connection);
    pthread_mutex_destroy(&replay.lock);
    int const flaw = status == THOLE_OK ? write_flaw(stdout) : 0;
    return flaw == 0 ? status : file_fault_write("stdout", flaw, reterr);
}
