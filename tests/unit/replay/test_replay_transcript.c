/* The whole replay role. replay.transcript has runs ("$ …") with what is stored and which calls fail, each
 * followed by the calls of the role, its output, its exit code and its error.
 *
 *   ID=KIND[.EXECUTION[.TURN]][,epoch=N] …   records in their partition's history; KIND is a key of `bodies`
 *   epochP, emptyP       a new epoch of partition P, or a message there that cannot be read
 *   meanwhile            what follows is stored while the run reads
 *   fails=CALL[.N]       the Nth such call fails
 *   cut=N                the file lacks its last N bytes
 *   -- WORD …            ids, --all, --file NAME, --json, --jsonl, --threads N, --memory KiB, --payload N
 */
#include "captured.h"
#include "clock.h"
#include "connection.h"
#include "coro.h"
#include "history_file.h"
#include "message.h"
#include "play.h"
#include "reader.h"
#include "replay_host.h"
#include "replayer.h"
#include "subject.h"
#include "thole_cunit.h"
#include "topology.h"
#include "transcript.h"
#include "wrap_mutexes.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { PARTITIONS = 2, RECORDS_MAX = 300, WORDS_MAX = 16 };

static thole_status order(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("ship"), input), ret_output);
}

static const thole_orchestration_entry entries[] = {{"order", order, 1}};
static const thole_program program = {
    .size = sizeof program, .name = "shop", .orchestrations = entries, .orchestrations_len = 1};

static const struct {
    const char *kind, *turns;
} bodies[] = {
    {"good", "#1 Started order@1(in) | #2 ActivityScheduled ship(in) / #3 ActivityCompleted #2 (ok) | "
             "#4 Completed (ok)"},
    {"bad", "#1 Started order@1(in) | #2 ActivityScheduled charge(in)"},
    {"gone", "#1 Started gone@1(in) | #2 ActivityScheduled ship(in)"},
    {"older", "#1 Started older@1(in) | #2 ActivityScheduled ship(in)"},
    {"other", "#1 Started order@1(in) | #2 ActivityScheduled ship(in)"},
};

struct stored {
    uint32_t p;
    uint64_t sequence;
    bool later; /* stored while the run reads */
    char id[64], subject[200];
    struct buf body;
};

static struct {
    FILE *said;
    struct stored records[RECORDS_MAX];
    size_t records_len;
    uint64_t last[PARTITIONS], epoch[PARTITIONS], opened[PARTITIONS][8];
    bool later;
    char fails[32];
    size_t fails_at, cut;
    uint64_t now_ms;
    struct host_command command;
    char words[WORDS_MAX][64];
    char *word_list[WORDS_MAX];
    thole_status status;
    thole_error error;
    int code;
    char *err;
} play;

static bool fails(const char *call)
{
    return strcmp(play.fails, call) == 0 && play.fails_at-- == 1;
}

/* ---- calls of the run ---- */

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms += 1250;
}

long __wrap_sysconf(int name)
{
    CU_ASSERT_EQUAL(name, _SC_NPROCESSORS_ONLN);
    return fails("sysconf") ? -1 : 100;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg);
int __real_pthread_join(pthread_t thread, void **ret);
/* The thread runs to its end at once, so that the order is always the same. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    (void)fprintf(play.said, "thread\n");
    if (fails("pthread_create"))
        return EAGAIN;
    int const error = __real_pthread_create(thread, attr, run, arg);
    CU_ASSERT_EQUAL(error, 0);
    return __real_pthread_join(*thread, NULL);
}

int __wrap_pthread_join(pthread_t thread, void **ret)
{
    (void)thread, (void)ret;
    (void)fprintf(play.said, "thread joined\n");
    return 0;
}

int __real_fflush(FILE *file);
int __wrap_fflush(FILE *file)
{
    if (file == stdout && fails("fflush")) {
        errno = ENOSPC;
        return EOF;
    }
    return __real_fflush(file);
}

struct replayer *__real_replayer_create(const struct replay_options *options);
struct replayer *__wrap_replayer_create(const struct replay_options *options)
{
    (void)fprintf(play.said, "replayer: memory %zu, stacks %zu, instance memory %zu, payload %zu\n",
                  options->memory_max, options->stacks_max, (size_t)options->instance_memory_max,
                  (size_t)options->payload_max);
    return __real_replayer_create(options);
}

thole_status __wrap_connection_open(const struct connection_options *options, struct connection **ret,
                                    thole_error *reterr)
{
    (void)fprintf(play.said,
                  "connects to %s as %s, with %s, %s, %s, %s, %s and %s, within %" PRIu64 " and %" PRIu64
                  " ms\n",
                  options->url, options->name, options->creds, options->ca, options->cert, options->key,
                  options->server_name, options->inbox, (uint64_t)options->connect_timeout_ms,
                  (uint64_t)options->request_timeout_ms);
    if (fails("connection_open"))
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no server");
    *ret = (struct connection *)&play;
    return THOLE_OK;
}

void __wrap_connection_close(struct connection *connection)
{
    if (connection != NULL)
        (void)fprintf(play.said, "closes\n");
}

thole_status __wrap_topology_read(struct connection *connection, const char *ns, struct topology *ret,
                                  thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(connection, (struct connection *)&play);
    if (fails("topology_read"))
        return thole_fail(reterr, THOLE_NOT_FOUND, "no namespace");
    *ret = (struct topology){.partitions = PARTITIONS, .payload_max = 2048};
    (void)snprintf(ret->ns, sizeof ret->ns, "%s", ns);
    return THOLE_OK;
}

static uint32_t partition_of(const char *stream)
{
    const char *const dash = strrchr(stream, '_');
    CU_ASSERT_PTR_NOT_NULL_FATAL(dash);
    uint32_t const p = (uint32_t)strtoul(dash + 1, NULL, 10);
    CU_ASSERT_FATAL(p < PARTITIONS);
    return p;
}

static bool matches(const char *filter, const char *subject)
{
    if (filter == NULL)
        return true;
    for (; *filter != '\0' && *filter != '*'; filter++, subject++)
        if (*filter != *subject)
            return false;
    return *filter == *subject || (*filter == '*' && strchr(subject, '.') == NULL);
}

thole_status __wrap_stream_bounds(struct connection *connection, const char *stream,
                                  struct stream_bounds *ret, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(connection, (struct connection *)&play);
    if (fails("stream_bounds"))
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no leader");
    *ret = (struct stream_bounds){.first = 1};
    for (size_t i = 0; i < play.records_len; i++)
        if (play.records[i].p == partition_of(stream) && !play.records[i].later)
            ret->last = play.records[i].sequence;
    return THOLE_OK;
}

thole_status __wrap_stream_last_by_subject(struct connection *connection, const char *stream,
                                           const char *subject, uint64_t *ret_sequence, struct buf *ret_body,
                                           thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(connection, (struct connection *)&play);
    (void)fprintf(play.said, "last of %s in %s\n", subject, stream);
    if (fails("stream_last_by_subject"))
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no answer");
    *ret_sequence = 0;
    for (size_t i = 0; i < play.records_len; i++) {
        struct stored *const record = &play.records[i];
        if (record->p != partition_of(stream) || !matches(subject, record->subject))
            continue;
        *ret_sequence = record->sequence;
        if (ret_body != NULL) {
            buf_clear(ret_body);
            buf_append(ret_body, buf_bytes(&record->body).ptr, buf_bytes(&record->body).len);
        }
    }
    return THOLE_OK;
}

thole_status __wrap_stream_read_deliveries(struct connection *connection, const char *stream,
                                           const char *filter, uint64_t from, uint64_t to,
                                           stream_delivery_fn *each, void *arg, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    CU_ASSERT_PTR_EQUAL(connection, (struct connection *)&play);
    (void)fprintf(play.said, "reads %s %s from %" PRIu64 " to %" PRIu64 "\n", stream,
                  filter == NULL ? "all" : filter, from, to);
    for (size_t i = 0; i < play.records_len && status == THOLE_OK; i++) {
        const struct stored *const record = &play.records[i];
        if (record->p == partition_of(stream) && record->sequence >= from && record->sequence <= to &&
            matches(filter, record->subject))
            status = each(arg, record->sequence,
                          &(struct delivery){.subject = thole_slice_from(record->subject),
                                             .body = buf_bytes(&record->body)});
    }
    if (status == THOLE_OK && fails("stream_read"))
        return thole_fail(reterr, THOLE_UNAVAILABLE, "it breaks off");
    return status;
}

/* ---- stored records ---- */

static struct stored *store(uint32_t p)
{
    struct stored *const to = &play.records[play.records_len++];
    CU_ASSERT_FATAL(play.records_len < RECORDS_MAX);
    *to = (struct stored){.p = p, .sequence = ++play.last[p], .later = play.later};
    buf_init(&to->body, RECORD_BYTES_MAX);
    return to;
}

static void store_epoch(uint32_t p, bool readable)
{
    struct stored *const to = store(p);
    (void)snprintf(to->subject, sizeof to->subject, "thole.shop.ctl.%u.epoch", p);
    if (!readable) {
        buf_text(&to->body, "garbage");
        return;
    }
    struct record const record = {
        .kind = RECORD_EPOCH_OPENED, .epoch = ++play.epoch[p], .node = THOLE_STR("a")};
    play.opened[p][play.epoch[p]] = to->sequence;
    CU_ASSERT_EQUAL(record_encode(&record, &to->body), THOLE_OK);
}

static void set_subject(struct stored *to, uint64_t execution)
{
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    CU_ASSERT_EQUAL(subject_history(&subject, "shop", to->p, thole_slice_from(to->id), execution, NULL),
                    THOLE_OK);
    (void)snprintf(to->subject, sizeof to->subject, "%s", buf_cstr(&subject));
    buf_release(&subject);
}

static void store_turn(struct stored *to, const char *kind, unsigned turn, struct record *record)
{
    struct play_turns turns;
    bool found = false;
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        if (strcmp(bodies[i].kind, kind) != 0)
            continue;
        found = true;
        play_parse(bodies[i].turns, &turns);
        CU_ASSERT_FATAL(turn >= 1 && turn <= turns.len);
        unsigned const execution = (unsigned)record->turn.execution;
        record->turn = turns.turns[turn - 1];
        record->turn.instance = strcmp(kind, "other") == 0 ? THOLE_STR("someone") : thole_slice_from(to->id);
        record->turn.execution = execution;
        CU_ASSERT_EQUAL(record_encode(record, &to->body), THOLE_OK);
        play_turns_release(&turns);
    }
    CU_ASSERT_FATAL(found);
}

/* ID=KIND[.EXECUTION[.TURN]][,epoch=N] */
static void store_record(const char *word)
{
    char id[64], kind[32];
    unsigned execution = 1, turn = 1;
    CU_ASSERT_FATAL(sscanf(word, "%63[^=]=%31[^.,].%u.%u", id, kind, &execution, &turn) >= 2);
    uint32_t const p = subject_partition(thole_slice_from(id), PARTITIONS);
    const char *const epoch = strstr(word, ",epoch=");
    struct stored *const to = store(p);
    (void)snprintf(to->id, sizeof to->id, "%s", id);
    struct record record = {.kind = RECORD_TURN,
                            .epoch = epoch == NULL ? play.epoch[p] : strtoul(epoch + 7, NULL, 10)};
    record.n = to->sequence - play.opened[p][record.epoch];
    record.committed = record.n - 1;
    record.turn.execution = execution;
    bool const deleted = strcmp(kind, "deleted") == 0;
    set_subject(to, deleted ? EXECUTION_DELETED : execution);
    if (strcmp(kind, "garbage") == 0) {
        buf_text(&to->body, "garbage");
    } else if (deleted) {
        record.kind = RECORD_DELETED;
        record.deletion = (struct deletion){.instance = thole_slice_from(to->id), .execution = execution};
        CU_ASSERT_EQUAL(record_encode(&record, &to->body), THOLE_OK);
    } else {
        store_turn(to, kind, turn, &record);
    }
}

static void given(const char *word)
{
    unsigned n = 0;
    if (strcmp(word, "meanwhile") == 0) {
        play.later = true;
    } else if (sscanf(word, "epoch%u", &n) == 1) {
        store_epoch(n, true);
    } else if (sscanf(word, "empty%u", &n) == 1) {
        store_epoch(n, false);
    } else if (strncmp(word, "fails=", 6) == 0) {
        play.fails_at = 1;
        CU_ASSERT_FATAL(sscanf(word + 6, "%31[^.].%zu", play.fails, &play.fails_at) >= 1);
    } else if (sscanf(word, "cut=%zu", &play.cut) != 1) {
        store_record(word);
    }
}

/* ---- the command ---- */

static void add_argument(const char *word, const char *value, bool *took)
{
    struct host_command *const to = &play.command;
    *took = false;
    if (strcmp(word, "--all") == 0) {
        to->all = true;
    } else if (strcmp(word, "--json") == 0) {
        to->output = 1;
    } else if (strcmp(word, "--jsonl") == 0) {
        to->output = 2;
    } else if (word[0] != '-') {
        char *const room = play.words[to->words_len];
        (void)snprintf(room, sizeof play.words[0], "%s", word);
        play.word_list[to->words_len++] = room;
        CU_ASSERT_FATAL(to->words_len < WORDS_MAX);
    } else {
        *took = true;
        uint64_t const n = strtoull(value, NULL, 10);
        if (strcmp(word, "--threads") == 0)
            to->threads = (uint32_t)n;
        else if (strcmp(word, "--memory") == 0)
            to->memory_max = n * 1024;
        else if (strcmp(word, "--payload") == 0)
            to->options.payload_max = n;
        else if (strcmp(word, "--file") == 0)
            to->file = value;
        else
            CU_FAIL_FATAL("an argument that there is not");
    }
}

/* The histories as `thole history --raw` writes them: a file for consecutive ones. */
static void write_histories(const char *path)
{
    char *text = NULL;
    size_t len = 0;
    FILE *const to = open_memstream(&text, &len);
    struct history_writer writer;
    history_writer_init(&writer, to, HISTORY_BINARY, "shop");
    for (size_t i = 0; i < play.records_len; i++) {
        const struct stored *const record = &play.records[i];
        bool const first = i == 0 || strcmp(play.records[i - 1].id, record->id) != 0;
        if (first && i > 0)
            history_writer_end(&writer);
        if (first)
            history_writer_begin(&writer, record->p, thole_slice_from(record->id));
        history_writer_record(&writer, record->sequence, buf_bytes(&record->body));
    }
    if (play.records_len > 0)
        history_writer_end(&writer);
    history_writer_release(&writer);
    (void)fclose(to);
    FILE *const file = fopen(path, "we");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_FATAL(play.cut <= len);
    CU_ASSERT_EQUAL(fwrite(text, 1, len - play.cut, file), len - play.cut);
    (void)fclose(file);
    free(text);
}

static void run_replay(void *arg)
{
    (void)arg;
    play.status = replay_host_run(&play.command, &program, &play.code, &play.error);
    if (play.status != THOLE_OK)
        replay_host_complain(&play.command, &program, EXIT_REPLAY_FAILED, &play.error);
}

static void run_within(void *arg)
{
    play.err = captured(STDERR_FILENO, run_replay, arg);
}

static void begin(FILE *to)
{
    for (size_t i = 0; i < play.records_len; i++)
        buf_release(&play.records[i].body);
    memset(&play, 0, sizeof play);
    play.said = to;
    play.command = (struct host_command){.role = HOST_REPLAY,
                                         .memory_max = 1024 * 1024 * 1024,
                                         .words = play.word_list,
                                         .options = {.nats_url = "nats://n:1",
                                                     .nats_creds = "creds",
                                                     .nats_ca = "ca",
                                                     .nats_cert = "cert",
                                                     .nats_key = "key",
                                                     .nats_server_name = "name",
                                                     .nats_inbox = "inbox",
                                                     .ns = "shop",
                                                     .instance_memory_max = 1024 * 1024}};
}

/* Once more with its file on stdin. */
static char *run_on(const char *path)
{
    FILE *const before = stdin;
    bool const standard = play.command.file != NULL && strcmp(play.command.file, "-") == 0;
    if (standard)
        stdin = fopen(path, "re");
    char *const out = captured(STDOUT_FILENO, run_within, NULL);
    if (standard)
        (void)fclose(stdin);
    stdin = before;
    return out;
}

/* Where this file's code asked is not compared: builds differ in it. */
static void print_without_place(const char *text, FILE *to)
{
    static const char asked[] = "order (";
    for (const char *at; (at = strstr(text, asked)) != NULL; text = at + strcspn(at, ")"))
        (void)fprintf(to, "%.*s%sPLACE", (int)(at - text), text, asked);
    (void)fprintf(to, "%s", text);
}

static void line(const char *text, FILE *to)
{
    char copy[1024], *save = NULL;
    bool arguments = false;
    begin(to);
    (void)snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        if (strcmp(word, "--") == 0) {
            arguments = true;
        } else if (!arguments) {
            given(word);
        } else {
            bool took;
            char *const behind = save + strspn(save, " ");
            char value[64];
            (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(behind, " "), behind);
            add_argument(word, value[0] == '\0' ? "" : value, &took);
            if (took && strcmp(word, "--file") == 0)
                play.command.file = strtok_r(NULL, " ", &save);
            else if (took)
                (void)strtok_r(NULL, " ", &save);
        }
    }
    write_histories("histories");
    char *const out = run_on("histories");
    print_without_place(out, to);
    (void)fprintf(to, "%s", play.err);
    (void)fprintf(to, "-> %s, exit code %d\n", thole_status_name(play.status), play.code);
    free(out);
    free(play.err);
    play.err = NULL;
    begin(to);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* AddressSanitizer warns on stderr, once, when the first coroutine runs: before a line's stderr is captured.
 */
static void run_a_coroutine(void)
{
    struct stack_pool *const pool = stack_pool_create(1, 1);
    struct coro *const co = coro_create(pool, nothing, NULL);
    CU_ASSERT_FALSE(coro_resume(co));
    coro_destroy(co);
    stack_pool_destroy(pool);
}

static void test_transcript(void)
{
    run_a_coroutine();
    char folder[] = "/tmp/thole-replay.XXXXXX";
    CU_ASSERT_FATAL(mkdtemp(folder) != NULL && chdir(folder) == 0);
    transcript_check(THOLE_SOURCE_DIR "/tests/unit/replay/replay.transcript", line);
    transcript_check_heap(THOLE_SOURCE_DIR "/tests/unit/replay/replay.transcript", line);
    (void)unlink("histories");
    (void)rmdir(folder);
}

static const struct thole_test tests[] = {{"transcript", test_transcript}};
THOLE_TEST_MAIN("replay_transcript", tests)
