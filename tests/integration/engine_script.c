#include "engine_script.h"
#include "engine_answers.h"
#include "notice.h"
#include "subject.h"
#include <string.h>
#include <time.h>

enum { TIMEOUT_MS = 5000, WINDOW = 64, SEEN_MAX_S = 10, ARENA_MAX = 16 * 1024 * 1024 };

static const uint64_t LOGICAL_MS = UINT64_C(1763717400000);

/* ---- appending ---- */

static void on_done(void *arg, const struct request_done *done)
{
    struct engine_script *script = arg;
    pthread_mutex_lock(&script->lock);
    script->answered = true;
    script->stored = done->result == REQUEST_STORED;
    pthread_cond_broadcast(&script->changed);
    pthread_mutex_unlock(&script->lock);
}

static bool append_and_wait(struct engine_script *script, const char *subject, thole_slice body)
{
    struct publish const publish = {.subject = subject, .body = body};
    pthread_mutex_lock(&script->lock);
    script->answered = false;
    pthread_mutex_unlock(&script->lock);
    if (requests_publish(script->requests, &publish, 1, NULL) != THOLE_OK)
        return false;
    pthread_mutex_lock(&script->lock);
    while (!script->answered)
        pthread_cond_wait(&script->changed, &script->lock);
    bool const stored = script->stored;
    pthread_mutex_unlock(&script->lock);
    return stored;
}

static bool append(struct engine_script *script, const char *subject, const struct record *record)
{
    struct buf body;
    buf_init(&body, RECORD_BYTES_MAX);
    bool stored = record_encode(record, &body) == THOLE_OK;
    pthread_mutex_lock(&script->appending);
    stored = stored && append_and_wait(script, subject, buf_bytes(&body));
    pthread_mutex_unlock(&script->appending);
    buf_release(&body);
    return stored;
}

bool engine_script_epoch(struct engine_script *script, uint64_t epoch)
{
    struct record const record = {
        .kind = RECORD_EPOCH_OPENED, .epoch = epoch, .node = THOLE_STR("script"), .time_ms = LOGICAL_MS};
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    bool const stored = subject_control(&subject, script->topology.ns, 0, "epoch", NULL) == THOLE_OK &&
                        append(script, buf_cstr(&subject), &record);
    buf_release(&subject);
    return stored;
}

bool engine_script_turn(struct engine_script *script, uint64_t epoch, uint64_t n, const struct turn *turn)
{
    struct record record = {.kind = RECORD_TURN, .epoch = epoch, .n = n, .turn = *turn};
    struct buf subject;
    record.turn.time_ms = LOGICAL_MS + turn->number;
    record.turn.ran = turn->execution > 0;
    record.turn.blocked = turn->execution > 0 ? BLOCKED_NOT : BLOCKED_NOT_STARTED;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    bool const stored = subject_history(&subject, script->topology.ns, 0, turn->instance, turn->execution,
                                        NULL) == THOLE_OK &&
                        append(script, buf_cstr(&subject), &record);
    buf_release(&subject);
    return stored;
}

bool engine_script_position(struct engine_script *script, uint64_t epoch, uint64_t n, uint64_t floor)
{
    struct record const record = {
        .kind = RECORD_POSITION, .epoch = epoch, .n = n, .position = {.floor = floor}};
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    bool const stored = subject_control(&subject, script->topology.ns, 0, "position", NULL) == THOLE_OK &&
                        append(script, buf_cstr(&subject), &record);
    buf_release(&subject);
    return stored;
}

bool engine_script_deleted(struct engine_script *script, uint64_t epoch, uint64_t n,
                           const struct deletion *deletion)
{
    struct record const record = {.kind = RECORD_DELETED, .epoch = epoch, .n = n, .deletion = *deletion};
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    bool const stored = subject_history(&subject, script->topology.ns, 0, deletion->instance,
                                        EXECUTION_DELETED, NULL) == THOLE_OK &&
                        append(script, buf_cstr(&subject), &record);
    buf_release(&subject);
    return stored;
}

void engine_script_notice(struct engine_script *script, const char *kind, thole_slice instance,
                          thole_slice request_id, thole_slice data)
{
    struct event_notice const notice = {.orchestration = THOLE_STR("order"),
                                        .instance = instance,
                                        .kind = kind,
                                        .execution = 1,
                                        .request_id = request_id,
                                        .data = data};
    (void)!event_notice_publish(script->connection, script->topology.ns, &notice, NULL);
}

/* ---- the modes ---- */

/* As the machine answers. */
static void answer(struct engine_script *script, const struct message *start, enum engine_answer_case what)
{
    const char *const code = engine_answers[what].code;
    struct event_notice const notice = {.orchestration = THOLE_STR("order"),
                                        .instance = start->instance,
                                        .kind = engine_answers[what].kind,
                                        .execution = 1,
                                        .request_id = start->request_id,
                                        .code = code == NULL ? (thole_slice){0} : thole_slice_from(code),
                                        .data =
                                            code == NULL ? (thole_slice){0} : THOLE_STR("10000 events wait")};
    (void)!event_notice_publish(script->connection, script->topology.ns, &notice, NULL);
}

static void complete(struct engine_script *script, const struct message *start, uint64_t n, bool notices)
{
    struct event const started = {.kind = EVENT_STARTED,
                                  .id = 1,
                                  .code = SEMANTICS_VERSION,
                                  .name = start->orchestration,
                                  .data = start->data,
                                  .request_id = start->request_id};
    struct event const completed = {.kind = EVENT_COMPLETED, .id = 2, .data = start->data};
    struct turn turn = {
        .instance = start->instance, .execution = 1, .number = 1, .events = &started, .events_len = 1};
    (void)engine_script_turn(script, 1, n, &turn);
    if (notices)
        answer(script, start, ANSWER_TO_NEW);
    turn.number = 2;
    turn.events = &completed;
    (void)engine_script_turn(script, 1, n + 1, &turn);
    if (notices)
        engine_script_notice(script, "completed", start->instance, (thole_slice){NULL, 0}, start->data);
}

static void take_event(struct engine_script *script, const struct message *start, uint64_t n, bool notice)
{
    struct event const received = {.kind = EVENT_EVENT_RECEIVED,
                                   .id = 2,
                                   .name = start->event_name,
                                   .data = start->event_data,
                                   .request_id = start->request_id};
    struct turn const turn = {
        .instance = start->instance, .execution = 1, .number = 2, .events = &received, .events_len = 1};
    (void)engine_script_turn(script, 1, n, &turn);
    if (notice)
        answer(script, start, ANSWER_TO_LIVE);
}

static void act(struct engine_script *script, enum script_mode mode, const struct message *start, uint64_t n)
{
    switch (mode) {
    case SCRIPT_SILENT: break;
    case SCRIPT_COMPLETE: complete(script, start, n, true); break;
    case SCRIPT_NO_NOTICES: complete(script, start, n, false); break;
    case SCRIPT_REJECT: answer(script, start, ANSWER_TO_ENDED); break;
    case SCRIPT_REJECT_FULL: answer(script, start, ANSWER_TO_FULL); break;
    case SCRIPT_TAKE_EVENT: take_event(script, start, n, true); break;
    case SCRIPT_TAKE_EVENT_QUIETLY: take_event(script, start, n, false); break;
    }
}

static void on_message(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct engine_script *script = arg;
    (void)sequence;
    pthread_mutex_lock(&script->lock);
    arena_release(&script->arena);
    bool const good = message_decode(delivery->body, &script->arena, &script->last, NULL) == THOLE_OK;
    struct message const message = script->last; /* in the arena, which only this thread empties */
    enum script_mode const mode = script->mode;
    uint64_t const n = script->n + 1;
    script->n += 2;
    pthread_mutex_unlock(&script->lock);
    if (good && message.kind == MESSAGE_START)
        act(script, mode, &message, n);
    pthread_mutex_lock(&script->lock);
    script->messages++;
    pthread_cond_broadcast(&script->changed);
    pthread_mutex_unlock(&script->lock);
}

/* on_message() waits for answers, which the thread that reads could not do. */
static bool no_room(void *arg, const struct delivery *delivery)
{
    (void)arg, (void)delivery;
    return false;
}

void engine_script_mode(struct engine_script *script, enum script_mode mode)
{
    pthread_mutex_lock(&script->lock);
    script->mode = mode;
    pthread_mutex_unlock(&script->lock);
}

size_t engine_script_messages(struct engine_script *script)
{
    pthread_mutex_lock(&script->lock);
    size_t const messages = script->messages;
    pthread_mutex_unlock(&script->lock);
    return messages;
}

bool engine_script_seen(struct engine_script *script, size_t messages)
{
    struct timespec until;
    int failed = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SEEN_MAX_S;
    pthread_mutex_lock(&script->lock);
    while (script->messages < messages && failed == 0)
        failed = pthread_cond_timedwait(&script->changed, &script->lock, &until);
    bool const seen = script->messages >= messages;
    pthread_mutex_unlock(&script->lock);
    return seen;
}

/* ---- opening ---- */

static thole_status open_all(struct engine_script *script, const char *url, const char *ns,
                             thole_error *reterr)
{
    struct connection_options const connection = {.url = url,
                                                  .name = "engine-script",
                                                  .connect_timeout_ms = TIMEOUT_MS,
                                                  .request_timeout_ms = TIMEOUT_MS};
    struct topology_options const topology = {.ns = ns, .partitions = 1};
    struct ordered_reader_options reader = {.from = 1, .each = on_message, .room = no_room, .arg = script};
    struct buf stream;
    THOLE_TRY(connection_open(&connection, &script->connection, reterr));
    THOLE_TRY(topology_ensure(script->connection, &topology, &script->topology, reterr));
    THOLE_TRY(
        requests_open(script->connection, WINDOW, TIMEOUT_MS, on_done, script, &script->requests, reterr));
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    thole_status status = stream_name(&stream, ns, "IN", 0, reterr);
    reader.stream = buf_cstr(&stream);
    if (status == THOLE_OK)
        status = ordered_reader_open(script->connection, &reader, &script->reader, reterr);
    buf_release(&stream);
    return status;
}

thole_status engine_script_open(struct engine_script *script, const char *url, const char *ns,
                                thole_error *reterr)
{
    memset(script, 0, sizeof *script);
    arena_init(&script->arena, ARENA_MAX);
    pthread_mutex_init(&script->appending, NULL);
    pthread_mutex_init(&script->lock, NULL);
    pthread_cond_init(&script->changed, NULL);
    thole_status const status = open_all(script, url, ns, reterr);
    if (status != THOLE_OK)
        engine_script_close(script);
    return status;
}

void engine_script_close(struct engine_script *script)
{
    ordered_reader_close(script->reader);
    requests_close(script->requests);
    connection_close(script->connection);
    arena_release(&script->arena);
    pthread_cond_destroy(&script->changed);
    pthread_mutex_destroy(&script->lock);
    pthread_mutex_destroy(&script->appending);
}
