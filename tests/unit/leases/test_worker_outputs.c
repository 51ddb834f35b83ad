/* A worker's whole actions for its machine's outputs: worker_outputs.transcript has outputs of the machine
 * ("$ …", in order, separated by " / ") with the history of the activity, each followed by what the worker
 * called and logged.
 *   KIND [FIELD=VALUE]…   an output of the machine, or `returned`: its handler has
 *   states: fired=KIND status=NAME pool run running given_up heartbeat=TEXT round stopping down full quiet
 *           arriving=N */
#include "clock.h"
#include "logged.h"
#include "proofs.h"
#include "thole_cunit.h"
#include "transcript.h"
#include "worker_parts.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

enum { NOW_MS = 100000, ROWS = 2 };

static struct {
    FILE *said;
    struct worker_host host;
    struct thole_activity *acts[ROWS];
    bool gone[ROWS], down, full, quiet;
    uint64_t now_ms;
} play;

#define said(...) (void)fprintf(play.said, __VA_ARGS__)

/* ---- the world ---- */

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

bool __wrap_log_enabled(enum log_level level)
{
    return !play.quiet || level < LOG_LEVEL_INFO;
}

void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...) THOLE_PRINTF(4, 5);
void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    char text[1024];
    va_list args;
    va_start(args, fmt);
    logged_text(text, sizeof text, fields, fmt, args);
    va_end(args);
    said("log %s %s: %s\n", names[level], area, text);
}

static int index_of(const struct thole_activity *act)
{
    for (int i = 0; i < ROWS; i++)
        if (act == play.acts[i])
            return i;
    CU_FAIL_FATAL("an activity that there is not");
    return -1;
}

void __wrap_log_limits_line(struct log_limits *limits, uint64_t now_ms, size_t kind,
                            const struct log_fields *fields, const char *fmt, ...) THOLE_PRINTF(5, 6);
void __wrap_log_limits_line(struct log_limits *limits, uint64_t now_ms, size_t kind,
                            const struct log_fields *fields, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    CU_ASSERT_PTR_EQUAL(limits, play.host.lines);
    CU_ASSERT_EQUAL(now_ms, play.now_ms);
    CU_ASSERT_FALSE(fields->of_partition);
    va_start(args, fmt);
    logged_text(text, sizeof text, fields, fmt, args);
    va_end(args);
    said("log of kind %zu: %s\n", kind, text);
}

void __wrap_puller_want(struct puller *puller, uint32_t free_slots)
{
    CU_ASSERT_PTR_EQUAL(puller, play.host.puller);
    said("wants %u\n", free_slots);
}

void __wrap_handlers_run(struct handlers *handlers, struct thole_activity *act)
{
    CU_ASSERT_PTR_EQUAL(handlers, play.host.handlers);
    said("runs %d: attempt %" PRIu64 ", deadline %" PRIu64 ", running %d\n", index_of(act), act->attempt,
         act->deadline_ms, act->running);
}

bool __wrap_handlers_abandon(struct handlers *handlers, struct thole_activity *act, bool replace)
{
    CU_ASSERT_PTR_EQUAL(handlers, play.host.handlers);
    said("abandons %d, given up %d%s\n", index_of(act), act->given_up, replace ? ", and replaces it" : "");
    return !play.full;
}

void __wrap_activity_fire(struct thole_activity *act, const struct activity_cancel *cancel)
{
    said("fires %d: %s, \"%.*s\", grace to %" PRIu64 ", timed out %d\n", index_of(act),
         thole_cancel_kind_name(cancel->kind), THOLE_FMT(cancel->reason), cancel->grace_end_ms,
         act->timed_out);
}

void __wrap_activity_hurry(struct thole_activity *act, uint64_t grace_end_ms)
{
    said("hurries %d: grace to %" PRIu64 "\n", index_of(act), grace_end_ms);
}

void __real_activity_destroy(struct thole_activity *act);
void __wrap_activity_destroy(struct thole_activity *act)
{
    int const i = index_of(act);
    said("frees %d\n", i);
    play.gone[i] = true;
    __real_activity_destroy(act);
}

void __wrap_worker_results_publish(struct worker_host *host, const uint64_t *ids, size_t len)
{
    CU_ASSERT_PTR_EQUAL(host, &play.host);
    for (size_t i = 0; i < len; i++)
        said("publishes %d\n", index_of(worker_activity(ids[i])));
}

static thole_status sent(thole_error *reterr)
{
    return play.down ? thole_fail(reterr, THOLE_UNAVAILABLE, "no connection") : THOLE_OK;
}

static int message_of(const struct work_message *message)
{
    for (int i = 0; i < ROWS; i++)
        if (!play.gone[i] && play.acts[i]->message == message)
            return i;
    CU_FAIL_FATAL("a message that there is not");
    return -1;
}

thole_status __wrap_work_message_signal(struct connection *connection, const struct work_message *message,
                                        enum work_signal signal, thole_error *reterr)
{
    static const char *const names[] = {
        [WORK_ACK] = "+ACK", [WORK_NAK] = "-NAK", [WORK_PROGRESS] = "+WPI", [WORK_TERM] = "+TERM"};
    CU_ASSERT_PTR_EQUAL(connection, play.host.connection);
    said("%s for %d\n", names[signal], message_of(message));
    return sent(reterr);
}

thole_status __wrap_work_message_put_back(struct connection *connection, const struct work_message *message,
                                          uint64_t delay_ms, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(connection, play.host.connection);
    said("puts %d back for %" PRIu64 " ms\n", message_of(message), delay_ms);
    return sent(reterr);
}

void __wrap_row_calls_send(struct row_calls *calls, struct row_call *call)
{
    said("%s: call %d, %zu rows\n", calls == play.host.claims ? "claims" : "completions", (int)call->kind,
         call->len);
    for (size_t i = 0; i < call->len; i++) {
        const struct claim *const claim = &call->claims[i];
        said("  %.*s %" PRIu64 ".%" PRIu64 ".%u p=%u lease=%" PRIu64 " attempt=%" PRIu64 " since=%" PRIu64
             " isolated=%d settled=%d digest=%.*s details=%.*s%s\n",
             THOLE_FMT(claim->key.instance), claim->key.execution, claim->key.activity_id,
             (unsigned)claim->key.try_number, claim->partition, claim->lease_ms, claim->attempt,
             claim->claimed_us, claim->isolated, claim->settled, THOLE_FMT(claim->digest),
             THOLE_FMT(claim->details), claim->noted ? " noted" : "");
    }
}

/* ---- plays ---- */

static void give(struct worker_machine *w, struct worker_in in)
{
    CU_ASSERT_EQUAL(worker_input(w, &in, NOW_MS), THOLE_OK);
}

static bool says(struct worker_machine *w, enum worker_out_kind kind)
{
    bool found = false;
    for (struct worker_out out; worker_poll(w, &out);)
        found |= out.kind == kind;
    return found;
}

/* The only handler did not return in its grace: it has no slot until one is replaced. */
static struct worker_machine *machine_without_a_slot(void)
{
    static const uint64_t id = 4;
    struct worker_options options;
    worker_options_init(&options);
    options.slots = 1;
    struct worker_machine *const w = worker_create(&options);
    struct worker_key const key = {THOLE_STR("order"), 3, id, 2};
    struct worker_row const row = {.id = 1, .key = key, .attempt = 1, .state = WORKER_ROW_MINE};
    thole_slice const nonce = THOLE_STR("0123456789abcdef0123456789abcdef");
    uint64_t proof;
    give(w,
         (struct worker_in){.kind = WORKER_IN_DELIVERED, .id = 1, .key = key, .nonce = nonce, .known = true});
    CU_ASSERT_TRUE_FATAL(says(w, WORKER_OUT_CLAIM));
    give(w, (struct worker_in){.kind = WORKER_IN_CLAIMED, .rows = &row, .rows_len = 1});
    CU_ASSERT_TRUE_FATAL(says(w, WORKER_OUT_RUN));
    give(w, test_with_proofs((struct worker_in){.kind = WORKER_IN_PUSHED,
                                                .key = key,
                                                .activity_ids = &id,
                                                .activity_ids_len = 1,
                                                .cancel_kind = THOLE_STR("explicit")},
                             nonce, &proof));
    worker_advance(w, NOW_MS + options.grace_ms + 1);
    CU_ASSERT_TRUE_FATAL(says(w, WORKER_OUT_ABANDON));
    return w;
}

static thole_status handler(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_OK;
}

static void begin(FILE *to)
{
    memset(&play, 0, sizeof play);
    play.said = to;
    play.now_ms = NOW_MS;
    play.host.lease_ms = 30000;
    play.host.claims = (struct row_calls *)(uintptr_t)&play.host.claims;
    play.host.completions = (struct row_calls *)(uintptr_t)&play.host.completions;
    play.host.handlers = (struct handlers *)(uintptr_t)&play.host.handlers;
    play.host.connection = (struct connection *)(uintptr_t)&play.host.connection;
    play.host.lines = (struct log_limits *)(uintptr_t)&play.host.lines;
    play.host.options.queue = "bank";
    play.host.puller = (struct puller *)(uintptr_t)&play.host.puller;
    play.host.details_round = 1;
    play.host.machine = machine_without_a_slot();
    for (int kind = 0; kind < ROW_CALL_KINDS; kind++)
        row_call_init(&play.host.calls[kind], kind, ROWS);
    for (uint64_t i = 0; i < ROWS; i++) {
        struct work_message *const message = calloc(1, sizeof *message);
        message->item = (struct work_item){.queue = THOLE_STR("bank"),
                                           .instance = THOLE_STR("order"),
                                           .activity = THOLE_STR("charge"),
                                           .execution = 3,
                                           .activity_id = 4 + i,
                                           .try_number = 2};
        play.acts[i] = activity_create(message, NOW_MS);
        play.acts[i]->partition = (uint32_t)(5 + i);
        play.acts[i]->attempt = 7;
    }
}

static void end_play(void)
{
    worker_destroy(play.host.machine);
    for (int kind = 0; kind < ROW_CALL_KINDS; kind++)
        row_call_release(&play.host.calls[kind]);
    for (int i = 0; i < ROWS; i++)
        if (!play.gone[i])
            __real_activity_destroy(play.acts[i]);
}

static const struct {
    const char *name;
    enum worker_out_kind kind;
} outs[] = {{"want", WORKER_OUT_WANT},
            {"claim", WORKER_OUT_CLAIM},
            {"renew", WORKER_OUT_RENEW},
            {"release", WORKER_OUT_RELEASE},
            {"leave", WORKER_OUT_LEAVE},
            {"not_lost", WORKER_OUT_NOT_LOST},
            {"shelve", WORKER_OUT_SHELVE},
            {"begin", WORKER_OUT_COMPLETE_BEGIN},
            {"commit", WORKER_OUT_COMPLETE_COMMIT},
            {"rollback", WORKER_OUT_COMPLETE_ROLLBACK},
            {"publish", WORKER_OUT_COMPLETE_PUBLISH},
            {"run", WORKER_OUT_RUN},
            {"expired", WORKER_OUT_EXPIRED},
            {"poisoned", WORKER_OUT_POISONED},
            {"fire", WORKER_OUT_FIRE},
            {"hurry", WORKER_OUT_HURRY},
            {"abandon", WORKER_OUT_ABANDON},
            {"progress", WORKER_OUT_PROGRESS},
            {"ack", WORKER_OUT_ACK},
            {"nak", WORKER_OUT_NAK},
            {"term", WORKER_OUT_TERM},
            {"drop", WORKER_OUT_DROP},
            {"stopped", WORKER_OUT_STOPPED}};

static thole_status status_named(const char *name)
{
    for (int i = 0; i < 64; i++)
        if (strcmp(thole_status_name((thole_status)i), name) == 0)
            return (thole_status)i;
    CU_FAIL_FATAL("a status that there is not");
    return THOLE_OK;
}

static void set_state(const char *key, const char *value)
{
    struct thole_activity *const act = play.acts[0];
    uint64_t const n = strtoull(value, NULL, 10);
    if (strcmp(key, "fired") == 0) {
        act->fired_kind = cancel_kind_find(thole_slice_from(value));
        act->fired_ms = NOW_MS;
        play.now_ms += 250;
    } else if (strcmp(key, "status") == 0) {
        act->status = status_named(value);
    } else if (strcmp(key, "pool") == 0) {
        act->pool = (struct process_pool *)(uintptr_t)act;
    } else if (strcmp(key, "running") == 0) {
        act->running = true;
    } else if (strcmp(key, "given_up") == 0) {
        act->given_up = true;
    } else if (strcmp(key, "heartbeat") == 0) {
        CU_ASSERT_EQUAL(thole_activity_heartbeat(act, thole_slice_from(value)), THOLE_OK);
    } else if (strcmp(key, "round") == 0) {
        play.host.details_round++;
    } else if (strcmp(key, "stopping") == 0) {
        play.host.stopping = true;
    } else if (strcmp(key, "down") == 0) {
        play.down = true;
    } else if (strcmp(key, "full") == 0) {
        play.full = true;
    } else if (strcmp(key, "quiet") == 0) {
        play.quiet = true;
    } else if (strcmp(key, "arriving") == 0) {
        atomic_store(&play.host.arriving, (unsigned)n);
    } else {
        CU_FAIL_FATAL("a state that there is not");
    }
}

/* @p key of an output; false: there is none of that name. */
static bool set_field(struct worker_out *out, const char *key, const char *value)
{
    uint64_t const n = strtoull(value, NULL, 10);
    if (strcmp(key, "attempt") == 0)
        out->attempt = n;
    else if (strcmp(key, "deadline") == 0)
        out->deadline_ms = n;
    else if (strcmp(key, "delay") == 0)
        out->delay_ms = n;
    else if (strcmp(key, "count") == 0)
        out->count = (uint32_t)n;
    else if (strcmp(key, "end") == 0)
        out->end = (enum worker_end)n;
    else if (strcmp(key, "path") == 0)
        out->path = (enum worker_path)n;
    else if (strcmp(key, "kind") == 0)
        out->cancel_kind = thole_slice_from(value);
    else if (strcmp(key, "reason") == 0)
        out->reason = thole_slice_from(value);
    else if (strcmp(key, "rows") == 0)
        out->rows_len = out->ids_len = n;
    else
        return false;
    return true;
}

static void output(char *words)
{
    struct worker_row rows[ROWS];
    uint64_t ids[ROWS];
    char *save = NULL;
    const char *kind = NULL;
    struct worker_out out = {.id = (uint64_t)(uintptr_t)play.acts[0], .rows = rows, .ids = ids};
    for (char *word = strtok_r(words, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');
        if (value != NULL)
            *value++ = '\0';
        for (size_t i = 0; i < ARRAY_LEN(outs) && value == NULL && kind == NULL; i++)
            if (strcmp(outs[i].name, word) == 0) {
                kind = word;
                out.kind = outs[i].kind;
            }
        if (kind == word || (value != NULL && set_field(&out, word, value)))
            continue;
        if (strcmp(word, "returned") == 0)
            worker_say_returned(play.acts[0]);
        else if (strcmp(word, "runs") == 0)
            play.acts[0]->run = handler;
        else
            set_state(word, value == NULL ? "" : value);
    }
    if (kind == NULL)
        return;
    for (uint64_t i = 0; i < ROWS; i++) {
        ids[i] = (uint64_t)(uintptr_t)play.acts[i];
        rows[i] = (struct worker_row){.id = out.kind == WORKER_OUT_NOT_LOST ? 0 : ids[i],
                                      .key = {THOLE_STR("order"), 3, 4 + i, 2},
                                      .attempt = 8 + i,
                                      .claimed_us = 900 + i,
                                      .digest = {{'d', 'i', 'g', 'e', 's', 't', '-', 'o', 'f', '-', 't', 'h',
                                                  'e', '-', '0', '0' + (uint8_t)i}},
                                      .isolated = i == 1,
                                      .settled = i == 0};
    }
    worker_output(&play.host, &out);
    const struct thole_activity *const act = play.acts[0];
    if (!play.gone[0] && (act->forgotten || act->poisoned || act->timed_out))
        said("attempt %" PRIu64 " forgotten %d poisoned %d timed out %d\n", act->attempt, act->forgotten,
             act->poisoned, act->timed_out);
    for (struct worker_out next; worker_poll(play.host.machine, &next);)
        if (next.kind == WORKER_OUT_WANT)
            said("the machine wants %u\n", next.count);
    if (play.host.stopped)
        said("stopped\n");
}

static void line(const char *text, FILE *to)
{
    char copy[512];
    begin(to);
    (void)snprintf(copy, sizeof copy, "%s", text);
    for (char *at = copy; at != NULL;) {
        char *const next = strstr(at, " / ");
        if (next != NULL)
            *next = '\0';
        output(at);
        at = next == NULL ? NULL : next + 3;
    }
    end_play();
}

static void test_transcript(void)
{
    transcript_check(THOLE_SOURCE_DIR "/tests/unit/leases/worker_outputs.transcript", line);
    transcript_check_heap(THOLE_SOURCE_DIR "/tests/unit/leases/worker_outputs.transcript", line);
}

static const struct thole_test tests[] = {{"transcript", test_transcript}};
THOLE_TEST_MAIN("worker_outputs", tests)
