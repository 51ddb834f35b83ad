/* Requests to an existing instance: cancel, terminate, delete, pause, resume, signal, query; complete and
 * fail for activities. */
#include "children.h"
#include "client_holds.h"
#include "client_notes.h"
#include "clock.h"
#include "payload.h"
#include "text.h"
#include <string.h>
#include <time.h>

/* One request on its way: what all these verbs share. */
struct request {
    const struct cli *cli;
    thole_client *client;
    thole_slice object; /* an instance, or a token */
    struct buf payload;
    thole_error error;
    uint64_t requested_us, accepted_us; /* of the wall clock: compared with what an activity here prints */
    bool queued;                        /* stored, and no engine has taken it yet */
    bool stored;                        /* stored; whether an engine takes it was not looked up */
    const char *hint;                   /* advice on what to try, when it is not the verb's; or NULL */
    bool kept;                          /* an event for an instance that is not there yet */
};

/* @p payload: a word of the command line, or NULL. */
static bool request_open(struct cli *cli, const char *payload, struct request *ret, int *ret_code)
{
    *ret = (struct request){.cli = cli, .object = thole_slice_from(cli->words[0])};
    if (payload_read(cli, payload, &ret->payload, ret_code))
        ret->client = cli_connect(cli, ret_code);
    if (ret->client == NULL)
        buf_release(&ret->payload);
    ret->requested_us = clock_wall_us();
    return ret->client != NULL;
}

static void print_accepted(const struct request *request, const char *key, bool accepted)
{
    char schema[64];
    struct json json;
    (void)snprintf(schema, sizeof schema, "thole.%s.v1", request->cli->command->name);
    json_document(&json, stdout, schema);
    json_member(&json, key, request->object);
    json_member_bool(&json, "accepted", accepted);
    if (request->stored)
        json_member_bool(&json, "stored", true);
    if (request->kept)
        json_member_bool(&json, "kept", true);
    json_member_number(&json, "requested_us", request->requested_us);
    json_member_number(&json, "accepted_us", request->accepted_us);
    json_end(&json);
}

static void print_said(const char *said, thole_slice object, const char *what)
{
    struct buf text;
    buf_init(&text, 4 * object.len + 16);
    text_lines(&text, object);
    (void)printf("%s %s %s\n", said, buf_cstr(&text), what);
    buf_release(&text);
}

static const char *request_object(const struct request *request, struct buf *room)
{
    buf_clear(room);
    buf_slice(room, request->object);
    return buf_cstr(room);
}

/* Says what came of it. @p said: the sentence for people; the object follows it. */
static int request_say(struct request *request, thole_status status, const char *key, const char *said)
{
    struct buf id;
    int code = EXIT_DONE;
    buf_init(&id, request->object.len + 1);
    request->accepted_us = clock_wall_us();
    request->error.status = status;
    if (status != THOLE_OK && request->hint != NULL)
        code = cli_complain_with(request->cli, request_object(request, &id), &request->error,
                                 cli_exit_code(status), request->hint);
    else if (status != THOLE_OK)
        code = cli_complain(request->cli, request_object(request, &id), &request->error);
    else if (!cli_is_json(request->cli))
        print_said(said, request->object,
                   request->queued   ? "is stored; no engine has taken it yet"
                   : request->stored ? "is stored"
                                     : "accepted");
    else
        print_accepted(request, key, !request->queued && !request->stored);
    buf_release(&id);
    return code;
}

static void request_commands_request_release(struct request *request)
{
    thole_client_close(request->client);
    buf_release(&request->payload);
}

static int request_close(struct request *request, thole_status status, const char *key, const char *said)
{
    int const code = request_say(request, status, key, said);
    request_commands_request_release(request);
    return code;
}

/* ---- with a reason ---- */

typedef thole_status reason_fn(thole_client *client, thole_slice instance, thole_slice reason,
                               thole_error *reterr);

static int request_commands_ask(struct cli *cli, reason_fn *call, const char *said)
{
    struct request request;
    int code = EXIT_DONE;
    if (!request_open(cli, NULL, &request, &code))
        return code;
    thole_slice const reason = thole_slice_from(cli->options.reason);
    return request_close(&request, call(request.client, request.object, reason, &request.error), "instance",
                         said);
}

enum { NOTE_BYTES_MAX = 8 * 1024 };

static void note_idle(const struct request *request, const char *what, bool resumes)
{
    struct buf note;
    buf_init(&note, NOTE_BYTES_MAX);
    if (client_note_idle(request->client, request->object, what, resumes, &note))
        cli_note(request->cli, "%s", buf_cstr(&note));
    buf_release(&note);
}

int command_cancel(struct cli *cli)
{
    struct request request;
    struct buf before;
    int code = EXIT_DONE;
    if (!request_open(cli, NULL, &request, &code))
        return code;
    buf_init(&before, NOTE_BYTES_MAX);
    bool const again = client_note_cancelled(request.client, request.object, &before);
    thole_slice const reason = thole_slice_from(cli->options.reason);
    thole_status const status = thole_client_cancel(request.client, request.object, reason, &request.error);
    if (status == THOLE_OK && again)
        cli_note(cli, "%s", buf_cstr(&before));
    if (status == THOLE_OK)
        note_idle(&request, "the cancellation", true);
    buf_release(&before);
    return request_close(&request, status, "instance", "cancellation of");
}

int command_terminate(struct cli *cli)
{
    return request_commands_ask(cli, thole_client_terminate, "termination of");
}

/* Nothing ends a hold but its release. NULL: it is not held. */
static const char *hold_hint(const struct request *request)
{
    thole_error held = {.status = THOLE_OK};
    return client_check_hold(request->client, request->object, &held) == THOLE_CONFLICT
               ? "thole hold list ID, which says who set it and why; thole hold release ID ends it"
               : NULL;
}

/* Notes children that remain, which would be found when an id is to be used again. Without Postgres they are
 * not known. */
static void note_children(const struct request *request)
{
    struct children children;
    thole_error ignored;
    if (children_read(request->client, request->object, &children, &ignored) == THOLE_OK && children.len > 0)
        cli_note_of(request->cli, request->object,
                    "%s%zu instances that it has started stay, and their ids are in use: thole list --parent "
                    "ID; thole delete ID --with-children removes them, too",
                    children.len == CHILDREN_SHOWN_MAX ? "at least " : "", children.len);
    children_release(&children);
}

static thole_status delete_one(struct request *request, thole_slice instance)
{
    bool accepted = false;
    thole_delete_options const options = {.size = sizeof options,
                                          .force = request->cli->options.force,
                                          .reason = thole_slice_from(request->cli->options.reason)};
    request->object = instance;
    request->hint = NULL;
    request->error.status =
        thole_client_delete(request->client, instance, &options, &accepted, &request->error);
    request->queued = !accepted;
    if (request->error.status == THOLE_CONFLICT)
        request->hint = hold_hint(request);
    return request->error.status;
}

/* After their parent, which ends them as their policy says. One that is gone is no failure. */
static int delete_children(struct request *request, const struct children *children, int code)
{
    thole_slice one;
    for (size_t at = 0; children_next(children, &at, &one);) {
        thole_status const status = delete_one(request, one);
        if (status == THOLE_NOT_FOUND)
            continue;
        int const its = request_say(request, status, "instance", "deletion of");
        code = code == EXIT_DONE ? its : code;
    }
    return code;
}

int command_delete(struct cli *cli)
{
    struct request request;
    struct children children = {.len = 0};
    thole_slice const root = thole_slice_from(cli->words[0]);
    int code = EXIT_DONE;
    if (!request_open(cli, NULL, &request, &code))
        return code;
    thole_status status = THOLE_OK;
    if (cli->options.with_children)
        status = children_read_all(request.client, root, &children, &request.error);
    if (status == THOLE_OK)
        status = delete_one(&request, root);
    bool const goes_on = status == THOLE_OK || (status == THOLE_NOT_FOUND && children.len > 0);
    if (status == THOLE_OK || !goes_on)
        code = request_say(&request, status, "instance", "deletion of");
    if (goes_on)
        code = delete_children(&request, &children, code);
    if (status == THOLE_OK && !cli->options.with_children)
        note_children(&request);
    children_release(&children);
    request_commands_request_release(&request);
    return code;
}

int command_pause(struct cli *cli)
{
    return request_commands_ask(cli, thole_client_pause, "pause of");
}

int command_resume(struct cli *cli)
{
    return request_commands_ask(cli, thole_client_resume, "resumption of");
}

int command_retry(struct cli *cli)
{
    return request_commands_ask(cli, thole_client_retry, "retry of");
}

/* ---- events ---- */

static const char *request_commands_word(const struct cli *cli, int at)
{
    return at < cli->words_len ? cli->words[at] : NULL;
}

int command_signal(struct cli *cli)
{
    struct request request;
    int code = EXIT_DONE;
    if (!request_open(cli, request_commands_word(cli, 2), &request, &code))
        return code;
    thole_signal_options const options = {.size = sizeof options,
                                          .request_id = thole_slice_from(cli->options.request_id),
                                          .confirm = cli->options.wait};
    thole_status const status =
        thole_client_signal_with(request.client, request.object, thole_slice_from(cli->words[1]),
                                 buf_bytes(&request.payload), &options, &request.kept, &request.error);
    request.stored = !options.confirm;
    if (status == THOLE_OK && request.kept)
        cli_note(cli,
                 "there is no instance \"%s\" in namespace %s: the event is kept for 7 days (the engines' "
                 "--early-events), until it is started; thole list shows it as Waiting",
                 cli->words[0], cli->options.ns);
    else if (status == THOLE_OK)
        note_idle(&request, "the event", false);
    return request_close(&request, status, "instance", "event for");
}

/* ---- activities that are completed from outside ---- */

int command_complete(struct cli *cli)
{
    struct request request;
    int code = EXIT_DONE;
    if (!request_open(cli, request_commands_word(cli, 1), &request, &code))
        return code;
    thole_status const status =
        thole_client_complete(request.client, request.object, buf_bytes(&request.payload), &request.error);
    return request_close(&request, status, "token", "completion of");
}

int command_fail(struct cli *cli)
{
    struct request request;
    int code = EXIT_DONE;
    if (!request_open(cli, request_commands_word(cli, 1), &request, &code))
        return code;
    thole_status const status =
        thole_client_fail(request.client, request.object, thole_slice_from(cli->options.type),
                          buf_bytes(&request.payload), &request.error);
    return request_close(&request, status, "token", "failure of");
}

/* ---- queries ---- */

static void print_answer(const struct cli *cli, thole_slice output)
{
    struct json json;
    if (!cli_is_json(cli)) {
        payload_print(cli, output);
        return;
    }
    json_document(&json, stdout, "thole.query.v1");
    json_member_text(&json, "instance", cli->words[0]);
    json_member_text(&json, "name", cli->words[1]);
    json_member_data(&json, "output", output);
    json_end(&json);
}

int command_query(struct cli *cli)
{
    struct request request;
    thole_slice output = {NULL, 0};
    int code = EXIT_DONE;
    if (!request_open(cli, request_commands_word(cli, 2), &request, &code))
        return code;
    request.error.status = thole_client_query(request.client, request.object, thole_slice_from(cli->words[1]),
                                              buf_bytes(&request.payload), &output, &request.error);
    if (request.error.status == THOLE_OK)
        print_answer(cli, output);
    else
        code = cli_complain(cli, cli->words[0], &request.error);
    thole_client_release(output);
    thole_client_close(request.client);
    buf_release(&request.payload);
    return code;
}
