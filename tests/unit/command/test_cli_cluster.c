/* Verbs that read a whole cluster (nodes, partitions, namespaces, doctor, migrate), with the answers of NATS,
 * Postgres and the workers played. cluster.transcript has command lines ("$ thole … | KEY=VALUE …"), each
 * followed by the requests ("<"), stdout, stderr ("!") and the exit code ("="). With THOLE_WRITE_TRANSCRIPT=1
 * in the environment the file is written again, to be read and committed. Keys:
 *   engines=NODE:STARTED_S:AGE_MS:ORCHESTRATIONS,…
 *   owners=NODE:EPOCH:OPENED_S,…              "-": the partition never had an owner
 *   workers=NODE:QUEUE:SLOTS:ACTIVITY+…,…
 *   namespaces=NAME,…
 *   opens=NODE:P,…                            the engine says that partition P is open
 *   fails=N:STATUS                            the n-th request to NATS fails
 *   says=N:ANSWER                             the n-th request gets this answer, with * for :
 *   KEY=N                                     a setting or a clock */
#include "captured.h"
#include "client_internal.h"
#include "clock.h"
#include "command.h"
#include "doctor_checks.h"
#include "event.h"
#include "message.h"
#include "migrations.h"
#include "postgres.h"
#include "query_store.h"
#include "roll_call.h"
#include "schema_look.h"
#include "text.h"
#include "thole_cunit.h"
#include "transcript.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/command/cluster.transcript"
enum { WORDS_MAX = 24, PAGE = 3, NAME_MAX_BYTES = 64 };
static const uint64_t now_ms = 1000000000000;

static char given[1024]; /* the cluster's state */
static struct {
    unsigned requests;
    int open; /* connections and clients */
    uint64_t clock_ms;
} play;

/* ---- the cluster's state ---- */

/* The value of KEY=; NULL: it is not given. */
static const char *value_of(const char *key, char room[512])
{
    char sought[40];
    (void)snprintf(sought, sizeof sought, " %s=", key);
    const char *const at = strstr(given, sought);
    if (at == NULL)
        return NULL;
    (void)snprintf(room, 512, "%.*s", (int)strcspn(at + strlen(sought), " "), at + strlen(sought));
    return room;
}

static uint64_t number_of(const char *key, uint64_t fallback)
{
    char room[512];
    const char *const text = value_of(key, room);
    return text == NULL ? fallback : strtoull(text, NULL, 10);
}

/* The n-th item of a list, its fields in @p fields; false: there is none. */
static bool item_of(const char *key, size_t n, char fields[4][NAME_MAX_BYTES])
{
    char room[512];
    const char *at = value_of(key, room);
    for (size_t i = 0; at != NULL && i < n; i++) {
        at = strchr(at, ',');
        at = at == NULL ? NULL : at + 1;
    }
    if (at == NULL || *at == '\0')
        return false;
    memset(fields, 0, (size_t)4 * NAME_MAX_BYTES);
    for (size_t field = 0; field < 4; field++) {
        size_t const len = strcspn(at, ":,");
        (void)snprintf(fields[field], NAME_MAX_BYTES, "%.*s", (int)len, at);
        at += len;
        if (*at != ':')
            break;
        at++;
    }
    return true;
}

static thole_status fails_of(const char *key, unsigned n, thole_error *reterr)
{
    char fields[4][NAME_MAX_BYTES];
    if (!item_of(key, 0, fields) || strtoul(fields[0], NULL, 10) != n)
        return THOLE_OK;
    for (int status = THOLE_OK + 1; status <= THOLE_LATER; status++)
        if (strcmp(thole_status_name((thole_status)status), fields[1]) == 0)
            return thole_fail(reterr, (thole_status)status, "so it is said");
    CU_FAIL("no such status");
    return THOLE_OK;
}

/* ---- NATS ---- */

static void put(struct buf *to, thole_slice bytes, uint64_t sequence, uint64_t stored_ms)
{
    char time[TIME_TEXT_BYTES];
    text_time(stored_ms, time);
    buf_printf(to, "{\"type\":\"t\",\"message\":{\"seq\":%" PRIu64 ",\"time\":\"%s\",\"data\":\"", sequence,
               time);
    text_base64(to, bytes);
    buf_printf(to, "\"}}");
}

static void answer_none(struct buf *to)
{
    buf_printf(to, "{\"error\":{\"code\":404,\"err_code\":10037,\"description\":\"no message found\"}}");
}

static void answer_setting(const char *body, struct buf *to)
{
    static const struct {
        const char *key;
        uint64_t value;
    } settings[] = {{"partitions", 2}, {"payload_max", 1000}, {"format", 1}};
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        char sought[40], text[24];
        (void)snprintf(sought, sizeof sought, ".%s\"", settings[i].key);
        uint64_t const value = number_of(settings[i].key, settings[i].value);
        (void)snprintf(text, sizeof text, "%" PRIu64, value);
        if (strstr(body, sought) != NULL && value != 0) {
            put(to, thole_slice_from(text), 3, now_ms);
            return;
        }
    }
    answer_none(to);
}

static void answer_epoch(const char *subject, struct buf *to)
{
    char fields[4][NAME_MAX_BYTES];
    const char *const p = strstr(subject, "HIST_");
    struct buf body;
    if (!item_of("owners", strtoul(p + 5, NULL, 10), fields) || strcmp(fields[0], "-") == 0) {
        answer_none(to);
        return;
    }
    struct record const record = {.kind = RECORD_EPOCH_OPENED,
                                  .epoch = strtoull(fields[1], NULL, 10),
                                  .node = thole_slice_from(fields[0]),
                                  .time_ms = strtoull(fields[2], NULL, 10) * 1000};
    buf_init(&body, RECORD_BYTES_MAX);
    CU_ASSERT_EQUAL_FATAL(record_encode(&record, &body), THOLE_OK);
    put(to, buf_bytes(&body), 7, now_ms);
    buf_release(&body);
}

/* At sequence 2n + 2 is the n-th; one without a name has left, and one named ? is of a newer engine. */
static void answer_heartbeat(const char *body, struct buf *to)
{
    uint64_t const from = strtoull(body + strcspn(body, "0123456789"), NULL, 10);
    char fields[4][NAME_MAX_BYTES];
    thole_slice names[9];
    struct buf bytes;
    size_t const n = from <= 2 ? 0 : (from - 1) / 2;
    if (!item_of("engines", n, fields)) {
        answer_none(to);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        names[i] = THOLE_STR("checkout");
    struct heartbeat const heartbeat = {.node = thole_slice_from(fields[0]),
                                        .started_ms = strtoull(fields[1], NULL, 10) * 1000,
                                        .orchestrations = names,
                                        .orchestrations_len = strtoul(fields[3], NULL, 10),
                                        .reads_ranges = true,
                                        .reads_references = true,
                                        .reads_lists = true};
    buf_init(&bytes, RECORD_BYTES_MAX);
    if (fields[0][0] == '?')
        buf_text(&bytes, "newer");
    else if (fields[0][0] != '\0')
        CU_ASSERT_EQUAL_FATAL(heartbeat_encode(&heartbeat, &bytes), THOLE_OK);
    put(to, buf_bytes(&bytes), 2 * n + 2, now_ms + number_of("skew", 0) - strtoull(fields[2], NULL, 10));
    buf_release(&bytes);
}

/* peers=oc…: of each other replica; o: offline, b: lagging, c: current, -: it does not say. */
static void answer_info(struct buf *to)
{
    char room[512], time[TIME_TEXT_BYTES];
    text_time(now_ms + number_of("skew", 0) - number_of("lag", 0), time);
    buf_printf(to, "{\"type\":\"t\",\"config\":{\"num_replicas\":%" PRIu64 "},\"ts\":\"%s\"",
               number_of("replicas", 1), time);
    if (value_of("peers", room) != NULL) {
        buf_printf(to, ",\"cluster\":{\"name\":\"c\",\"replicas\":[");
        for (const char *peer = room; *peer != '\0'; peer++)
            buf_printf(to, "%s{%s}", peer == room ? "" : ",",
                       *peer == 'o'   ? "\"current\":true,\"offline\":true"
                       : *peer == 'b' ? "\"current\":false"
                       : *peer == 'c' ? "\"current\":true"
                                      : "");
        buf_printf(to, "]}");
    }
    buf_printf(to, "}");
}

/* An engine's answer about its partitions. */
static void answer_state(const char *subject, struct buf *to)
{
    char fields[4][NAME_MAX_BYTES], sought[NAME_MAX_BYTES + 20];
    const char *before = "{\"now_ms\":1000000000000,\"partitions\":[";
    for (size_t i = 0; item_of("opens", i, fields); i++) {
        (void)snprintf(sought, sizeof sought, ".engines.%s.state", fields[0]);
        if (strstr(subject, sought) == NULL)
            continue;
        buf_printf(to, "%s{\"partition\":%s,\"state\":\"open\"}", before, fields[1]);
        before = ",";
    }
    if (to->len > 0)
        buf_printf(to, "]}");
}

static void answer_names(const char *body, struct buf *to)
{
    uint64_t const offset = strtoull(body + strcspn(body, "0123456789"), NULL, 10);
    char fields[4][NAME_MAX_BYTES];
    size_t total = 0;
    while (item_of("namespaces", total, fields))
        total++;
    buf_printf(to, "{\"type\":\"t\",\"total\":%zu,\"streams\":[", total);
    for (size_t i = offset; i < offset + PAGE && item_of("namespaces", i, fields); i++)
        buf_printf(to, "%s\"%s\"", i == offset ? "" : ",", fields[0]);
    buf_printf(to, "]}");
}

static void answer_server(struct buf *to)
{
    buf_printf(to, "{\"data\":{\"config\":{");
    if (number_of("sync_always", 0) == 1)
        buf_printf(to, "\"sync_always\":true,");
    buf_printf(to, "\"sync_interval\":%" PRIu64 "},\"meta_cluster\":{\"cluster_size\":%" PRIu64 "}}}",
               number_of("sync_ms", 120000) * 1000000, number_of("servers", 0));
}

thole_status __wrap_connection_request(struct connection *connection, const char *subject, thole_slice body,
                                       struct buf *ret, thole_error *reterr)
{
    char text[400], fields[4][NAME_MAX_BYTES];
    (void)connection;
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(body));
    (void)printf("< %s %s\n", subject, text);
    THOLE_TRY(fails_of("fails", ++play.requests, reterr));
    buf_clear(ret);
    if (item_of("says", 0, fields) && strtoul(fields[0], NULL, 10) == play.requests)
        for (const char *c = fields[1]; *c != '\0'; c++)
            buf_append(ret, *c == '*' ? ":" : c, 1);
    else if (strcmp(subject, "$JS.API.INFO") == 0)
        buf_printf(ret,
                   "{\"type\":\"t\",\"memory\":0,\"storage\":%" PRIu64
                   ",\"limits\":{\"max_memory\":-1,\"max_storage\":10000}}",
                   number_of("stored", 5000));
    else if (strstr(subject, "STREAM.INFO") != NULL)
        answer_info(ret);
    else if (strstr(subject, "STREAM.NAMES") != NULL)
        answer_names(text, ret);
    else if (strstr(subject, "PING.JSZ") != NULL)
        answer_server(ret);
    else if (strstr(subject, "_CONFIG") != NULL)
        answer_setting(text, ret);
    else if (strstr(subject, "_AUDIT") != NULL)
        answer_none(ret);
    else if (strstr(subject, "_NODES") != NULL)
        answer_heartbeat(text, ret);
    else if (strstr(subject, "HIST_") != NULL)
        answer_epoch(subject, ret);
    else if (strstr(subject, ".engines.") != NULL)
        answer_state(subject, ret);
    return THOLE_OK;
}

thole_status __wrap_connection_open(const struct connection_options *options, struct connection **ret,
                                    thole_error *reterr)
{
    (void)printf("< NATS %s %s %s %s %s %s %s %" PRIu64 " %" PRIu64 "\n", options->url,
                 options->creds == NULL ? "-" : options->creds, options->ca == NULL ? "-" : options->ca,
                 options->cert == NULL ? "-" : options->cert, options->key == NULL ? "-" : options->key,
                 options->inbox == NULL ? "-" : options->inbox, options->name, options->connect_timeout_ms,
                 options->request_timeout_ms);
    *ret = (struct connection *)&play;
    THOLE_TRY(fails_of("nats", 0, reterr));
    play.open++;
    return THOLE_OK;
}

void __wrap_connection_close(struct connection *connection)
{
    play.open -= connection != NULL;
}

thole_slice __wrap_connection_server_version(const struct connection *connection)
{
    (void)connection;
    return THOLE_STR("2.10.29");
}

thole_status __wrap_topology_check_version(struct connection *connection, thole_error *reterr)
{
    (void)connection;
    return fails_of("version", 0, reterr);
}

thole_status __wrap_topology_check_jetstream(struct connection *connection, thole_error *reterr)
{
    (void)connection;
    return fails_of("jetstream", 0, reterr);
}

thole_status __wrap_topology_read(struct connection *connection, const char *ns, struct topology *ret,
                                  thole_error *reterr)
{
    (void)connection;
    *ret = (struct topology){
        .partitions = (uint32_t)number_of("partitions", 2), .payload_max = 1000, .nodes_ttl_ms = 3000};
    (void)snprintf(ret->ns, sizeof ret->ns, "%s", ns);
    return fails_of("topology", 0, reterr);
}

/* ---- the workers ---- */

static size_t workers(struct roll_answer *to, size_t most)
{
    static char fields[8][4][NAME_MAX_BYTES];
    static thole_slice activities[8][4];
    size_t n = 0;
    for (; n < most && item_of("workers", n, fields[n]); n++) {
        size_t len = 0;
        char *rest = fields[n][3];
        for (char *name; len < 4 && (name = strtok_r(rest, "+", &rest)) != NULL;)
            activities[n][len++] = thole_slice_from(name);
        to[n] = (struct roll_answer){.worker = thole_slice_from(fields[n][0]),
                                     .queue = thole_slice_from(fields[n][1]),
                                     .slots = strtoull(fields[n][2], NULL, 10),
                                     .activities = activities[n],
                                     .activities_len = len};
    }
    return n;
}

thole_status __wrap_roll_call(struct connection *connection, const char *ns, struct arena *arena,
                              struct roll_answer **ret, size_t *ret_len, thole_error *reterr)
{
    (void)connection;
    (void)printf("< the workers of %s\n", ns);
    *ret = arena_array(arena, 8, sizeof **ret);
    *ret_len = workers(*ret, 8);
    return fails_of("roll", 0, reterr);
}

thole_status __wrap_thole_client_workers(thole_client *client, thole_worker_fn *each, void *arg,
                                         thole_error *reterr)
{
    struct roll_answer all[8];
    (void)client;
    size_t const n = workers(all, 8);
    for (size_t i = 0; i < n; i++)
        THOLE_TRY(each(arg, &(thole_worker_info){.worker = all[i].worker,
                                                 .queue = all[i].queue,
                                                 .slots = all[i].slots,
                                                 .activities = all[i].activities,
                                                 .activities_len = all[i].activities_len}));
    return fails_of("roll", 0, reterr);
}

static struct thole_client some_client;

thole_status __wrap_thole_client_open(const thole_client_options *options, thole_client **ret,
                                      thole_error *reterr)
{
    THOLE_TRY(fails_of("client", 0, reterr));
    memset(&some_client, 0, sizeof some_client);
    (void)snprintf(some_client.topology.ns, sizeof some_client.topology.ns, "%s", options->ns);
    some_client.topology.partitions = (uint32_t)number_of("partitions", 2);
    play.open++;
    *ret = &some_client;
    return THOLE_OK;
}

void __wrap_thole_client_close(thole_client *client)
{
    play.open -= client != NULL;
}

/* ---- Postgres ---- */

thole_status __wrap_postgres_open(const struct postgres_options *options, struct postgres **ret,
                                  thole_error *reterr)
{
    (void)printf("< Postgres %s %s %s %" PRIu64 " %" PRIu64 " %s\n", options->conninfo, options->ns,
                 options->application, options->connect_timeout_ms, options->statement_timeout_ms,
                 options->synchronous_commit ? "stored" : "soon");
    THOLE_TRY(fails_of("postgres", 0, reterr));
    play.open++;
    *ret = (struct postgres *)&play;
    return THOLE_OK;
}

void __wrap_postgres_close(struct postgres *pg)
{
    play.open -= pg != NULL;
}

int __wrap_postgres_server_version(const struct postgres *pg)
{
    (void)pg;
    return 150004;
}

/* test_doctor has what it says. */
void __wrap_doctor_identity(struct doctor_report *report)
{
    (void)report;
}

void __wrap_doctor_room(struct doctor_report *report, struct connection *connection,
                        const struct topology *topology, const struct cluster *cluster,
                        const struct overview_room *server)
{
    (void)report, (void)connection, (void)topology, (void)cluster, (void)server;
}

thole_status __wrap_postgres_migrate(struct postgres *pg, thole_error *reterr)
{
    (void)pg;
    (void)printf("< migrates\n");
    return fails_of("migrate", 0, reterr);
}

/* behind=N: N migrations are missing. */
thole_status __wrap_postgres_applied(struct postgres *pg, size_t *ret, thole_error *reterr)
{
    (void)pg;
    *ret = number_of("tables", 1) == 0 ? 0 : migrations_len - number_of("behind", 0);
    return fails_of("applied", 0, reterr);
}

thole_status __wrap_schema_look(struct postgres *pg, defect_fn *each, void *arg, thole_error *reterr)
{
    (void)pg, (void)each, (void)arg;
    return fails_of("shape", 0, reterr);
}

thole_status __wrap_postgres_only_reads(struct postgres *pg, bool *ret, thole_error *reterr)
{
    (void)pg;
    *ret = number_of("only-reads", 0) == 1;
    return fails_of("only-reads", 0, reterr);
}

thole_status __wrap_postgres_try_write(struct postgres *pg, uint32_t *ret_tables, thole_error *reterr)
{
    *ret_tables = 7;
    (void)pg;
    return fails_of("write", 0, reterr);
}

/* --grants */
thole_status __wrap_postgres_grant(struct postgres *pg, thole_error *reterr)
{
    (void)pg;
    (void)printf("< grants\n");
    return fails_of("grants", 0, reterr);
}

/* roles=N: so many; lacking=1: one of them lacks something. */
thole_status __wrap_postgres_rights(struct postgres *pg, size_t *ret_roles, struct buf *lacking,
                                    thole_error *reterr)
{
    (void)pg;
    *ret_roles = number_of("roles", 3);
    buf_text(lacking, number_of("lacking", 0) == 0 ? "" : "thole_shop_worker on worker_queue");
    return fails_of("rights", 0, reterr);
}

/* aside=N: so many rows. */
thole_status __wrap_query_store_set_aside_total(struct postgres *pg, struct set_aside_total *ret,
                                                thole_error *reterr)
{
    (void)pg;
    *ret = (struct set_aside_total){.rows = number_of("aside", 0), .instances = 2};
    (void)snprintf(ret->first, sizeof ret->first, "timers of order, column due_ms: too late");
    return fails_of("set_aside", 0, reterr);
}

thole_status __wrap_postgres_now_ms(struct postgres *pg, uint64_t *ret_ms, thole_error *reterr)
{
    (void)pg;
    *ret_ms = now_ms + number_of("pg_skew", 0) - number_of("pg_lag", 0);
    return fails_of("now", 0, reterr);
}

/* A round trip takes 7 ms. */
uint64_t __wrap_clock_wall_ms(void)
{
    play.clock_ms += 7;
    return play.clock_ms;
}

/* ---- the lines ---- */

struct run {
    char room[512];
    char *words[WORDS_MAX];
    int len, code;
    char *said;
};

static void run_words(void *arg)
{
    struct run *const run = arg;
    run->code = cli_main(run->len, run->words);
}

static void run_line(void *arg)
{
    struct run *const run = arg;
    run->said = captured(STDERR_FILENO, run_words, run);
}

/* The numbers of the newest migrations change with each; they are not this test's. Writes the words before the first
 * one and its name, and returns what is after it; NULL: there is none. */
static const char *add_migration(FILE *to, const char *from, const char *end)
{
    static const char *const names[] = {"NEWEST", "OLDER"};
    for (const char *at = from; at < end; at++) {
        char *rest;
        unsigned long const number = isdigit(*at) ? strtoul(at, &rest, 10) : 0;
        if (number == 0)
            continue;
        if (number <= migrations_len && number + ARRAY_LEN(names) > migrations_len) {
            (void)fprintf(to, "%.*s%s", (int)(at - from), from, names[migrations_len - number]);
            return rest;
        }
        at = rest - 1;
    }
    return NULL;
}

static void add_line(FILE *to, const char *line, int len)
{
    const char *const end = line + len;
    const char *rest = memmem(line, (size_t)len, "migration", 9) == NULL ? NULL : line;
    while (rest != NULL && (rest = add_migration(to, line, end)) != NULL)
        line = rest;
    (void)fprintf(to, "%.*s\n", (int)(end - line), line);
}

static void add_lines(FILE *to, const char *before, const char *text)
{
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        int const len = (int)strcspn(line, "\n");
        (void)fputs(line[0] == '#' ? " " : "", to); /* not a comment of the transcript */
        (void)fputs(before, to);
        add_line(to, line, len);
        if (line[len] == '\0')
            break;
    }
}

static void play_line(const char *text, FILE *to)
{
    struct run run = {.len = 0};
    size_t const len = strcspn(text, "|");
    memset(&play, 0, sizeof play);
    play.clock_ms = now_ms - 7;
    (void)snprintf(given, sizeof given, "%s", text[len] == '|' ? text + len + 1 : "");
    (void)snprintf(run.room, sizeof run.room, "%.*s", (int)len, text);
    char *rest = run.room;
    for (char *word; run.len < WORDS_MAX - 1 && (word = strtok_r(rest, " ", &rest)) != NULL;)
        run.words[run.len++] = word;
    char *const out = captured(STDOUT_FILENO, run_line, &run);
    add_lines(to, "", out);
    add_lines(to, "! ", run.said);
    (void)fprintf(to, "= %d%s\n", run.code, play.open == 0 ? "" : ", and something is not closed");
    free(run.said);
    free(out);
}

static void test_transcript(void)
{
    transcript_check(TRANSCRIPT, play_line);
}

static void test_heap(void)
{
    transcript_check_heap(TRANSCRIPT, play_line);
}

/* Settings of the command would change what it prints. */
int main(void)
{
    static const struct thole_test tests[] = {{"transcript", test_transcript}, {"heap", test_heap}};
    static const char *const settings[] = {"THOLE_NATS_URL",  "THOLE_NATS_CREDS", "THOLE_NATS_CA",
                                           "THOLE_NATS_CERT", "THOLE_NATS_KEY",   "THOLE_NATS_INBOX",
                                           "THOLE_POSTGRES",  "THOLE_NAMESPACE",  "THOLE_PAYLOAD_MAX"};
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        (void)unsetenv(settings[i]);
    return thole_run_suite("cli_cluster", tests, ARRAY_LEN(tests));
}
