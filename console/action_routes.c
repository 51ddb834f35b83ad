#include "action_routes.h"
#include "body.h"
#include "client_internal.h"
#include "client_notes.h"
#include "json_file.h"
#include "log.h"
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 64 * 1024, PAYLOAD_BYTES_MAX = 4 * 1024 * 1024, NOTE_BYTES_MAX = 8 * 1024 };

void act_log(const struct request *request, const char *action, thole_slice instance)
{
    thole_slice const user = request->user.len > 0 ? request->user : THOLE_STR("-");
    log_line(LOG_LEVEL_INFO, "console", "%s of \"%.*s\" by user %.*s", action, THOLE_FMT(instance),
             THOLE_FMT(user));
}

/* The values that an action reads from its body. */
struct said {
    thole_slice object;
    struct buf first, second, data; /* texts, and a payload */
    thole_error error;
};

/* @p names: of the members that the body may have. */
static void said_init(struct said *said, const struct request *request, const char *names)
{
    *said = (struct said){.object = buf_bytes(&request->body)};
    buf_init(&said->first, TEXT_BYTES_MAX);
    buf_init(&said->second, TEXT_BYTES_MAX);
    buf_init(&said->data, PAYLOAD_BYTES_MAX);
    said->error.status = body_check(request, names, &said->error);
}

static void said_release(struct said *said)
{
    buf_release(&said->first);
    buf_release(&said->second);
    buf_release(&said->data);
}

static void action_routes_read_text(struct said *said, const char *key, enum body_need need, struct buf *to)
{
    if (said->error.status == THOLE_OK)
        said->error.status = body_text(said->object, key, need, to, &said->error);
}

static void action_routes_read_data(struct said *said, const char *key)
{
    if (said->error.status == THOLE_OK)
        said->error.status = body_data(said->object, key, &said->data, &said->error);
}

/* {"schema":…,"instance":…,"accepted":…}, of an event "stored", as it may be refused; "note": why it changes
 * nothing yet. */
static void answer_accepted(struct answer *answer, const char *action, thole_slice instance, bool accepted,
                            bool kept, const struct buf *note)
{
    struct json json;
    char schema[64];
    (void)snprintf(schema, sizeof schema, "thole.%s.v1", action);
    answer_document(answer, &json, schema);
    json_member(&json, "instance", instance);
    json_member_bool(&json, "accepted", accepted);
    if (strcmp(action, "signal") == 0)
        json_member_bool(&json, "stored", true);
    if (kept)
        json_member_bool(&json, "kept", true);
    if (note != NULL && note->len > 0)
        json_member(&json, "note", buf_bytes(note));
    json_end(&json);
}

/* ---- with a reason ---- */

typedef thole_status reason_fn(thole_client *client, thole_slice instance, thole_slice reason,
                               thole_error *reterr);

static void action_routes_ask(struct session *session, const struct request *request, struct answer *answer,
                              reason_fn *call, const char *action)
{
    struct said said;
    thole_slice const instance = request->parts[1];
    said_init(&said, request, "reason");
    action_routes_read_text(&said, "reason", BODY_OPTIONAL, &said.first);
    if (said.error.status == THOLE_OK) {
        act_log(request, action, instance);
        said.error.status = call(session->client, instance, buf_bytes(&said.first), &said.error);
    }
    if (said.error.status == THOLE_OK)
        answer_accepted(answer, action, instance, true, false, NULL);
    else
        answer_error(answer, &said.error);
    said_release(&said);
}

void act_cancel(struct session *session, const struct request *request, struct answer *answer)
{
    struct said said;
    struct buf note;
    thole_slice const instance = request->parts[1];
    buf_init(&note, NOTE_BYTES_MAX);
    said_init(&said, request, "reason");
    action_routes_read_text(&said, "reason", BODY_OPTIONAL, &said.first);
    if (said.error.status == THOLE_OK) {
        act_log(request, "cancel", instance);
        (void)client_note_cancelled(session->client, instance, &note);
        said.error.status =
            thole_client_cancel(session->client, instance, buf_bytes(&said.first), &said.error);
    }
    if (said.error.status == THOLE_OK && note.len == 0)
        (void)client_note_idle(session->client, instance, "the cancellation", true, &note);
    if (said.error.status == THOLE_OK)
        answer_accepted(answer, "cancel", instance, true, false, &note);
    else
        answer_error(answer, &said.error);
    buf_release(&note);
    said_release(&said);
}

void act_terminate(struct session *session, const struct request *request, struct answer *answer)
{
    action_routes_ask(session, request, answer, thole_client_terminate, "terminate");
}

void act_pause(struct session *session, const struct request *request, struct answer *answer)
{
    action_routes_ask(session, request, answer, thole_client_pause, "pause");
}

void act_resume(struct session *session, const struct request *request, struct answer *answer)
{
    action_routes_ask(session, request, answer, thole_client_resume, "resume");
}

void act_retry(struct session *session, const struct request *request, struct answer *answer)
{
    action_routes_ask(session, request, answer, thole_client_retry, "retry");
}

/* ---- start ---- */

static void action_routes_choose_id(struct said *said)
{
    char id[CHOSEN_ID_BYTES];
    if (said->error.status != THOLE_OK || said->second.len > 0)
        return;
    said->error.status = client_choose_id(buf_bytes(&said->first), id, &said->error);
    if (said->error.status == THOLE_OK)
        buf_text(&said->second, id);
}

void act_start(struct session *session, const struct request *request, struct answer *answer)
{
    struct said said;
    uint64_t version = 0;
    bool accepted = false;
    said_init(&said, request, "orchestration id input input_base64 version");
    action_routes_read_text(&said, "orchestration", BODY_REQUIRED, &said.first);
    action_routes_read_text(&said, "id", BODY_OPTIONAL, &said.second);
    action_routes_read_data(&said, "input");
    if (said.error.status == THOLE_OK)
        said.error.status = body_number(said.object, "version", 0, &version, &said.error);
    if (said.error.status == THOLE_OK && version > UINT32_MAX)
        said.error.status = thole_fail(&said.error, THOLE_INVALID, "\"version\" is no version");
    action_routes_choose_id(&said);
    if (said.error.status == THOLE_OK) {
        thole_start_options const with = {.size = sizeof with, .version = (uint32_t)version};
        act_log(request, "start", buf_bytes(&said.second));
        said.error.status =
            thole_client_start_with(session->client, buf_bytes(&said.second), buf_bytes(&said.first),
                                    buf_bytes(&said.data), &with, &accepted, &said.error);
    }
    if (said.error.status == THOLE_OK)
        answer_accepted(answer, "start", buf_bytes(&said.second), accepted, false, NULL);
    else
        answer_error(answer, &said.error);
    said_release(&said);
}

/* ---- events and queries ---- */

void act_signal(struct session *session, const struct request *request, struct answer *answer)
{
    struct said said;
    struct buf note;
    thole_slice const instance = request->parts[1];
    bool kept = false;
    buf_init(&note, NOTE_BYTES_MAX);
    said_init(&said, request, "name data data_base64 request_id");
    action_routes_read_text(&said, "name", BODY_REQUIRED, &said.first);
    action_routes_read_text(&said, "request_id", BODY_OPTIONAL, &said.second);
    action_routes_read_data(&said, "data");
    if (said.error.status == THOLE_OK) {
        act_log(request, "signal", instance);
        said.error.status =
            thole_client_signal(session->client, instance, buf_bytes(&said.first), buf_bytes(&said.data),
                                buf_bytes(&said.second), &kept, &said.error);
    }
    if (said.error.status == THOLE_OK && !kept)
        (void)client_note_idle(session->client, instance, "the event", false, &note);
    if (said.error.status == THOLE_OK)
        answer_accepted(answer, "signal", instance, false, kept, &note);
    else
        answer_error(answer, &said.error);
    buf_release(&note);
    said_release(&said);
}

void act_query(struct session *session, const struct request *request, struct answer *answer)
{
    struct said said;
    struct json json;
    thole_slice output = {NULL, 0};
    thole_slice const instance = request->parts[1];
    said_init(&said, request, "name input input_base64");
    action_routes_read_text(&said, "name", BODY_REQUIRED, &said.first);
    action_routes_read_data(&said, "input");
    if (said.error.status == THOLE_OK)
        said.error.status = thole_client_query(session->client, instance, buf_bytes(&said.first),
                                               buf_bytes(&said.data), &output, &said.error);
    if (said.error.status == THOLE_OK) {
        answer_document(answer, &json, "thole.query.v1");
        json_member(&json, "instance", instance);
        json_member(&json, "name", buf_bytes(&said.first));
        json_member_data(&json, "output", output);
        json_end(&json);
    } else {
        answer_error(answer, &said.error);
    }
    thole_client_release(output);
    said_release(&said);
}

/* ---- quarantine ---- */

typedef thole_status decision_fn(thole_client *client, thole_slice instance, uint64_t execution,
                                 uint64_t activity_id, uint32_t try_number, thole_error *reterr);

struct quarantined {
    uint64_t execution, activity_id, try_number; /* 0: any try */
    bool found;
};

static thole_status quarantined_row(void *arg, const thole_poisoned_info *info)
{
    struct quarantined *const wanted = arg;
    wanted->found = !info->foreign && info->execution == wanted->execution &&
                    info->activity_id == wanted->activity_id &&
                    (wanted->try_number == 0 || wanted->try_number == info->try_number);
    return wanted->found ? THOLE_CANCELLED : THOLE_OK;
}

/* An engine would drop a decision on what is not in quarantine. */
static thole_status check_quarantined(thole_client *client, thole_slice instance, const uint64_t numbers[3],
                                      thole_error *reterr)
{
    struct quarantined wanted = {numbers[0], numbers[1], numbers[2], false};
    thole_poisoned_filter const filter = {.size = sizeof filter, .instance = instance, .limit = UINT32_MAX};
    thole_status const status = thole_client_poisoned(client, &filter, quarantined_row, &wanted, reterr);
    if (wanted.found || (status != THOLE_OK && status != THOLE_CANCELLED))
        return wanted.found ? THOLE_OK : status;
    return thole_fail(reterr, THOLE_NOT_FOUND,
                      "activity %llu of execution %llu of instance \"%.*s\" is not in quarantine, or not in "
                      "this try: nothing was changed",
                      (unsigned long long)numbers[1], (unsigned long long)numbers[0], THOLE_FMT(instance));
}

static void action_routes_decide(struct session *session, const struct request *request,
                                 struct answer *answer, decision_fn *call, const char *decision)
{
    struct said said;
    uint64_t numbers[3] = {0};
    static const char *const keys[] = {"execution", "activity_id", "try"};
    said_init(&said, request, "instance execution activity_id try");
    action_routes_read_text(&said, "instance", BODY_REQUIRED, &said.first);
    for (size_t i = 0; i < 3 && said.error.status == THOLE_OK; i++)
        said.error.status = body_number(said.object, keys[i], 0, &numbers[i], &said.error);
    if (said.error.status == THOLE_OK && (numbers[0] == 0 || numbers[1] == 0 || numbers[2] > UINT32_MAX))
        said.error.status =
            thole_fail(&said.error, THOLE_INVALID, "\"execution\" and \"activity_id\" are numbers from 1");
    if (said.error.status == THOLE_OK)
        said.error.status = check_quarantined(session->client, buf_bytes(&said.first), numbers, &said.error);
    if (said.error.status == THOLE_OK) {
        act_log(request, decision, buf_bytes(&said.first));
        said.error.status = call(session->client, buf_bytes(&said.first), numbers[0], numbers[1],
                                 (uint32_t)numbers[2], &said.error);
    }
    if (said.error.status == THOLE_OK) {
        struct json json;
        answer_document(answer, &json, "thole.queue_decision.v1");
        json_member(&json, "instance", buf_bytes(&said.first));
        json_member_number(&json, "execution", numbers[0]);
        json_member_number(&json, "activity_id", numbers[1]);
        json_member_text(&json, "decision", decision);
        json_end(&json);
    } else {
        answer_error(answer, &said.error);
    }
    said_release(&said);
}

void act_quarantine_retry(struct session *session, const struct request *request, struct answer *answer)
{
    action_routes_decide(session, request, answer, thole_client_poisoned_retry, "retry");
}

void act_quarantine_fail(struct session *session, const struct request *request, struct answer *answer)
{
    action_routes_decide(session, request, answer, thole_client_poisoned_fail, "fail");
}
