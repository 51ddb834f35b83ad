/* The whole client at its streams: client.transcript has calls ("$ …") with the stored records and the events
 * meanwhile, each followed by what the client did, by its clock in milliseconds, and its result. With
 * THOLE_WRITE_TRANSCRIPT=1 in the environment the file is written again, to be read and committed.
 *   given: RECORD …     the history; a RECORD is
 *                       KIND.EXECUTION.TURN[,more][,req=ID][,epoch=N][,committed=N][,data=TEXT]
 *   looks:, publishes:, reads: WORD …   how such calls end, in order; later ones: well
 *   MS notice KIND EXECUTION [ID] [DATA], MS record RECORD, MS up, MS other N   an event at that time, or
 *                                                                               later */
#include "link.h"
#include "notice.h"
#include "thole_cunit.h"
#include "transcript.h"
#include "watch.h"
#include "wrap_client_world.h"
#include <inttypes.h>
#include <stdlib.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/client/client.transcript"
enum { WORDS_MAX = 8, EVENTS = 8 };

static uint64_t opened[8]; /* sequence, by epoch */

/* ---- records ---- */

/* The value of KEY= in a record's word; NULL: it has none. */
static const char *option(const char *word, const char *key, char room[64])
{
    for (const char *at = strchr(word, ','); at != NULL; at = strchr(at + 1, ','))
        if (strncmp(at + 1, key, strlen(key)) == 0) {
            const char *const value = at + 1 + strlen(key) + (at[1 + strlen(key)] == '=');
            (void)snprintf(room, 64, "%.*s", (int)strcspn(value, ","), value);
            return room;
        }
    return NULL;
}

static uint64_t number(const char *word, const char *key, uint64_t fallback)
{
    char room[64];
    const char *const text = option(word, key, room);
    return text == NULL ? fallback : strtoull(text, NULL, 10);
}

static void add(const char *subject, const struct record *record)
{
    struct played_record *const to = &play.records[play.records_len++];
    CU_ASSERT_FATAL(play.records_len < RECORDS_MAX);
    to->sequence = ++play.last;
    (void)snprintf(to->subject, sizeof to->subject, "%s", subject);
    buf_init(&to->body, RECORD_BYTES_MAX);
    if (record == NULL)
        buf_text(&to->body, "garbage");
    CU_ASSERT_FATAL(record == NULL || record_encode(record, &to->body) == THOLE_OK);
}

#define WITH(letter, text) (strchr(with, letter) == NULL ? (thole_slice){NULL, 0} : THOLE_STR(text))

/* The events of the kind; returns their number. */
static size_t events_of(const char *word, const char *kind, struct event *to)
{
    static char request[64], data[64], parent[64];
    static const struct {
        const char *name;
        enum event_kind kind;
    } ends[] = {{"completed", EVENT_COMPLETED},        {"failed", EVENT_FAILED},
                {"cancelled", EVENT_CANCELLED},        {"terminated", EVENT_TERMINATED},
                {"tocancel", EVENT_CANCEL_REQUESTED},  {"toterminate", EVENT_TERMINATE_REQUESTED},
                {"continued", EVENT_CONTINUED_AS_NEW}, {"discarded", EVENT_DISCARDED},
                {"event", EVENT_EVENT_RECEIVED},       {"activity", EVENT_ACTIVITY_SCHEDULED},
                {"tryfailed", EVENT_ACTIVITY_FAILED},  {"timeroff", EVENT_TIMER_CANCELLED},
                {"pruned", EVENT_HISTORY_PRUNED},      {"timer", EVENT_TIMER_CREATED}};
    const char *const id = option(word, "req", request), *text = option(word, "data", data);
    bool const own = id != NULL && strcmp(id, "own") == 0, event = strcmp(kind, "event") == 0;
    if (text == NULL && own) /* as the calls request */
        text = event ? "99" : strcmp(kind, "started") == 0 ? "in" : NULL;
    to[0] = (struct event){.kind = EVENT_STARTED,
                           .id = 1,
                           .name = event ? THOLE_STR("paid") : THOLE_STR("checkout"),
                           .code = SEMANTICS_VERSION,
                           .data = thole_slice_from(text),
                           .request_id = thole_slice_from(id == NULL ? "other"
                                                          : own      ? OWN_REQUEST
                                                                     : id)};
    to[0].parent = option(word, "parent", parent) == NULL
                       ? (struct origin){0}
                       : (struct origin){.instance = thole_slice_from(parent), .execution = 3, .event = 4};
    if (strcmp(kind, "started") == 0)
        return 1;
    if (strcmp(kind, "any") == 0) { /* with=: the first letters of what it has */
        char room[64];
        const char *const with = option(word, "with", room) == NULL ? "" : room;
        to[0] = (struct event){.kind = (enum event_kind)number(word, "kind", 0),
                               .id = 2,
                               .ref = number(word, "ref", 0),
                               .code = (uint32_t)number(word, "code", 0),
                               .try_number = (uint32_t)number(word, "try", 0),
                               .version = (uint32_t)number(word, "version", 0),
                               .name = WITH('n', "name"),
                               .queue = WITH('q', "queue"),
                               .data = WITH('d', "data"),
                               .request_id = WITH('r', "request"),
                               .error_type = WITH('e', "error"),
                               .target = WITH('t', "target")};
        return 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (strcmp(ends[i].name, kind) == 0)
            to[0].kind = ends[i].kind;
    CU_ASSERT_NOT_EQUAL_FATAL(to[0].kind, EVENT_STARTED);
    to[0].id = 2;
    to[0].ref = to[0].kind == EVENT_ACTIVITY_FAILED || to[0].kind == EVENT_TIMER_CANCELLED;
    to[0].code = to[0].kind == EVENT_TIMER_CANCELLED                                 ? CANCEL_SELECT_LOSER
                 : to[0].kind == EVENT_ACTIVITY_FAILED || to[0].kind == EVENT_FAILED ? THOLE_APP
                                                                                     : 0;
    to[0].error_type = to[0].code == THOLE_APP ? THOLE_STR("card") : (thole_slice){NULL, 0};
    to[0].queue = to[0].kind == EVENT_ACTIVITY_SCHEDULED ? THOLE_STR("bank") : (thole_slice){NULL, 0};
    to[0].try_number = to[0].kind == EVENT_ACTIVITY_FAILED;
    if (to[0].kind == EVENT_TIMER_CREATED)
        to[0].due_ms = 5000;
    if (to[0].kind == EVENT_HISTORY_PRUNED)
        to[0].before = 2;
    return 1;
}

static void add_record(const char *word)
{
    char kind[32] = "", subject[200];
    unsigned execution = 0, turn = 0, subject_of = 0;
    struct event events[EVENTS];
    CU_ASSERT_FATAL(sscanf(word, "%31[^.,].%u.%u", kind, &execution, &turn) >= 1);
    uint64_t const epoch = number(word, "epoch", 1);
    CU_ASSERT_FATAL(epoch < ARRAY_LEN(opened));
    play.last += number(word, "gap", 0);
    struct record record = {.kind = RECORD_TURN, .epoch = epoch, .n = play.last + 1 - opened[epoch]};
    record.committed = number(word, "committed", record.n - 1);
    subject_of = execution;
    (void)snprintf(subject, sizeof subject, "thole.shop.hist.0.order.%u", subject_of);
    if (strcmp(kind, "garbage") == 0) {
        add(subject, NULL);
        return;
    }
    if (strcmp(kind, "epoch") == 0) {
        opened[epoch] = play.last + 1;
        record = (struct record){.kind = RECORD_EPOCH_OPENED, .epoch = epoch, .node = THOLE_STR("a")};
        (void)snprintf(subject, sizeof subject, "thole.shop.ctl.0.epoch");
    } else if (strcmp(kind, "deleted") == 0) {
        record.kind = RECORD_DELETED;
        record.deletion = (struct deletion){.instance = THOLE_STR("order"), .execution = execution};
        (void)snprintf(subject, sizeof subject, "thole.shop.hist.0.order.deleted");
    } else {
        bool const foreign = strcmp(kind, "foreign") == 0;
        record.turn = (struct turn){.instance = foreign ? THOLE_STR("cart") : THOLE_STR("order"),
                                    .execution = execution,
                                    .number = turn,
                                    .time_ms = 86400000 + turn,
                                    .more = number(word, "more", 0) == 1,
                                    .blocked = execution == 0 ? BLOCKED_NOT_STARTED : BLOCKED_NOT,
                                    .events = events,
                                    .events_len = events_of(word, foreign ? "started" : kind, events)};
    }
    add(subject, &record);
}

/* ---- steps ---- */

static void give_notice(const char *words)
{
    char kind[32] = "", id[64] = "", data[64] = "";
    unsigned execution = 0;
    (void)sscanf(words, "%31s %u %63s %63s", kind, &execution, id, data);
    struct event_notice const notice = {.kind = kind,
                                        .orchestration = THOLE_STR("checkout"),
                                        .instance = THOLE_STR("order"),
                                        .execution = execution,
                                        .request_id =
                                            thole_slice_from(strcmp(id, "own") == 0 ? OWN_REQUEST : id),
                                        .data = thole_slice_from(data)};
    CU_ASSERT_EQUAL(event_notice_publish(NULL, "shop", &notice, NULL), THOLE_OK);
}

static void happen(const char *what)
{
    char of_another[] = "thole.shop.event.checkout.another.started";
    (void)fprintf(play.said, "%6" PRIu64 " happens: %s\n", play.now_ms, what);
    if (strncmp(what, "notice ", 7) == 0)
        give_notice(what + 7);
    else if (strncmp(what, "record ", 7) == 0)
        add_record(what + 7);
    else if (strcmp(what, "up") == 0)
        watches_on_state(&play.client, true, 2);
    else if (strcmp(what, "down") == 0)
        watches_on_state(&play.client, false, 1);
    else
        for (long n = strtol(what + strlen("others "), NULL, 10); n > 0; n--)
            CU_ASSERT_EQUAL(connection_publish(NULL, of_another, NULL, 0, THOLE_STR(""), NULL), THOLE_OK);
}

/* ---- calls ---- */

static thole_slice slices[WORDS_MAX];

static thole_status on_event(void *arg, const thole_history_event *e)
{
    (void)arg;
    (void)fprintf(play.said,
                  "  %s %" PRIu64 ".%" PRIu64 ".%" PRIu64 " ref=%" PRIu64 " at=%" PRIu64 " time=%" PRIu64
                  " due=%" PRIu64,
                  e->kind, e->execution, e->turn, e->id, e->ref, e->sequence, e->time_ms, e->due_ms);
    (void)fprintf(
        play.said,
        " name=%.*s data=%.*s try=%u version=%u %s cause=%s type=%.*s queue=%.*s instance=%.*s request=%.*s "
        "before=%" PRIu64 "\n",
        THOLE_FMT(e->name), THOLE_FMT(e->data), e->try_number, e->version, thole_status_name(e->status),
        e->cause == NULL ? "" : e->cause, THOLE_FMT(e->error_type), THOLE_FMT(e->queue),
        THOLE_FMT(e->instance), THOLE_FMT(e->request_id), e->pruned_before);
    return e->data.len == 4 && memcmp(e->data.ptr, "stop", 4) == 0 ? THOLE_CANCELLED : THOLE_OK;
}

static thole_status on_raw(void *arg, uint64_t sequence, thole_slice bytes)
{
    (void)arg;
    (void)fprintf(play.said, "  record %" PRIu64 " of %zu bytes\n", sequence, bytes.len);
    return THOLE_OK;
}

static thole_status say_outcome(thole_status status, thole_outcome *outcome)
{
    if (status == THOLE_OK) {
        (void)fprintf(play.said, "  %s in execution %" PRIu64 ": %s (%s)\n",
                      thole_instance_status_name(outcome->status), outcome->execution,
                      (const char *)outcome->output.ptr, (const char *)outcome->error_type.ptr);
        CU_ASSERT_EQUAL(outcome->output.len, strlen((const char *)outcome->output.ptr));
        CU_ASSERT_EQUAL(outcome->error_type.len, strlen((const char *)outcome->error_type.ptr));
    }
    thole_outcome_release(outcome);
    return status;
}

static thole_status say_flag(thole_status status, const char *name, bool flag)
{
    if (status == THOLE_OK)
        (void)fprintf(play.said, "  %s=%d\n", name, flag);
    return status;
}

static thole_status start(thole_client *client, thole_error *err)
{
    thole_start_options const options = {
        .size = sizeof options, .version = 3, .event = slices[4], .event_data = slices[5]};
    bool accepted = false;
    thole_status const status =
        slices[4].len == 0
            ? thole_client_start(client, slices[1], slices[2], slices[3], &accepted, err)
            : thole_client_start_with(client, slices[1], slices[2], slices[3], &options, &accepted, err);
    return say_flag(status, "accepted", accepted);
}

static thole_status delete (thole_client *client, thole_error *err)
{
    thole_delete_options const options = {
        .size = sizeof options, .force = slices[3].len > 0, .reason = slices[2]};
    bool accepted = false;
    thole_status const status =
        thole_client_delete(client, slices[1], slices[2].len > 0 ? &options : NULL, &accepted, err);
    return say_flag(status, "accepted", accepted);
}

static thole_status query(thole_client *client, thole_error *err)
{
    thole_slice output = {NULL, 0};
    thole_status const status = thole_client_query(client, slices[1], slices[2], slices[3], &output, err);
    if (status == THOLE_OK)
        (void)fprintf(play.said, "  %s\n", (const char *)output.ptr);
    thole_client_release(output);
    return status;
}

static thole_status call(const char *name, thole_client *client, thole_error *err)
{
    static thole_status (*const with_reason[])(thole_client *, thole_slice, thole_slice, thole_error *) = {
        thole_client_cancel, thole_client_terminate, thole_client_pause, thole_client_resume,
        thole_client_retry};
    static const char *const names[] = {"cancel", "terminate", "pause", "resume", "retry"};
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    uint64_t const n = slices[2].len == 0 ? 0 : strtoull((const char *)slices[2].ptr, NULL, 10);
    thole_end_options const end = {.size = sizeof end, .reason = slices[2], .request_id = slices[3]};
    bool kept = false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return with_reason[i](client, slices[1], slices[2], err);
    if (strcmp(name, "cancel_with") == 0)
        return thole_client_cancel_with(client, slices[1], &end, err);
    if (strcmp(name, "terminate_with") == 0)
        return thole_client_terminate_with(client, slices[1], slices[2].len > 0 ? &end : NULL, err);
    if (strcmp(name, "start") == 0)
        return start(client, err);
    if (strcmp(name, "run") == 0)
        return say_outcome(thole_client_run(client, slices[1], slices[2], slices[3],
                                            strtoull((const char *)slices[4].ptr, NULL, 10), &outcome, err),
                           &outcome);
    if (strcmp(name, "wait") == 0)
        return say_outcome(
            thole_client_wait(client, slices[1], slices[2].len == 0 ? UINT64_MAX : n, &outcome, err),
            &outcome);
    if (strcmp(name, "prune") == 0)
        return thole_client_prune(client, slices[1], n, slices[3], err);
    if (strcmp(name, "signal") == 0) {
        thole_status const signalled =
            thole_client_signal(client, slices[1], slices[2], slices[3], slices[4], &kept, err);
        return say_flag(signalled, "kept", kept);
    }
    if (strcmp(name, "complete") == 0)
        return thole_client_complete(client, slices[1], slices[2], err);
    if (strcmp(name, "fail") == 0)
        return thole_client_fail(client, slices[1], slices[2], slices[3], err);
    if (strcmp(name, "release") == 0)
        return slices[3].len > 0 ? thole_client_poisoned_fail(client, slices[1], n, 7, 3, err)
                                 : thole_client_poisoned_retry(client, slices[1], n, 7, 3, err);
    if (strcmp(name, "delete") == 0)
        return delete (client, err);
    if (strcmp(name, "query") == 0)
        return query(client, err);
    if (strcmp(name, "history") == 0)
        return thole_client_history(client, slices[1], on_event, NULL, err);
    if (strcmp(name, "records") == 0)
        return n == 0 ? client_history_records(client, slices[1], on_raw, NULL, err)
                      : client_execution_records(client, slices[1], n, on_raw, NULL, err);
    CU_ASSERT_STRING_EQUAL_FATAL(name, "latest");
    bool deleted;
    uint64_t latest = 0;
    thole_status const status = history_latest(client, slices[1], &latest, &deleted, err);
    (void)fprintf(play.said, "  execution %" PRIu64 "\n", latest);
    return status;
}

/* ---- the transcript ---- */

/* "given: …", "looks: …", "100 notice …". */
static void prepare(char *part)
{
    char *save = NULL;
    if (strncmp(part, "given: ", 7) == 0)
        for (char *word = strtok_r(part + 7, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save))
            add_record(word);
    else if (strncmp(part, "looks: ", 7) == 0)
        play.looks = part + 7;
    else if (strncmp(part, "publishes: ", 11) == 0)
        play.publishes = part + 11;
    else if (strncmp(part, "reads: ", 7) == 0)
        play.reads = part + 7;
    else
        play.steps[play.steps_len++] = part;
}

static void play_line(const char *text, FILE *to)
{
    char *const line = strdup(text), *at = line, *part, *save = NULL;
    thole_error err = {.status = THOLE_OK};
    size_t n = 0;
    played_client_begin(to);
    play.happen = happen;
    memset(opened, 0, sizeof opened);
    memset(slices, 0, sizeof slices);
    char *const words = strsep(&at, "|");
    while ((part = strsep(&at, "|")) != NULL) {
        part += strspn(part, " ");
        for (size_t len = strlen(part); len > 0 && part[len - 1] == ' '; len--)
            part[len - 1] = '\0';
        prepare(part);
    }
    for (char *word = strtok_r(words, " ", &save); word != NULL && n < WORDS_MAX;
         word = strtok_r(NULL, " ", &save))
        slices[n++] = thole_slice_from(strcmp(word, "-") == 0 ? "" : word);
    thole_status const status = call((const char *)slices[0].ptr, &play.client, &err);
    (void)fprintf(to, "%6" PRIu64 " = %s%s%s\n", play.now_ms, thole_status_name(status),
                  status == THOLE_OK ? "" : ": ", status == THOLE_OK ? "" : err.text);
    played_client_end();
    free(line);
}

static void test_transcript(void)
{
    transcript_check(TRANSCRIPT, play_line);
}

static void test_nothing_stays(void)
{
    transcript_check_heap(TRANSCRIPT, play_line);
}

/* The heap is not compared: nats.c frees messages on a thread of its own. The leak sanitizer looks. */
int main(void)
{
    static const struct thole_test tests[] = {{"transcript", test_transcript},
                                              {"nothing stays", test_nothing_stays}};
    if (nats_Open(-1) != NATS_OK) /* once; its messages need it */
        return 2;
    return thole_run_suite("client_transcript", tests, ARRAY_LEN(tests));
}
