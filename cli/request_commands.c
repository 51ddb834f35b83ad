/* Requests to an existing instance: cancel, terminate, delete, pause, resume, signal, query; complete and
 * fail for activities. */
#include "client_holds.h"
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
    bool queued;                        /* it is stored, and no engine has taken it yet */
    const char *hint;                   /* what to try, when it is not the verb's; or NULL */
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
    if (request->kept) {
        json_member_bool(&json, "kept", true);
    }
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

/* @p said: the sentence for people; the object follows it. */
static int request_close(struct request *request, thole_status status, const char *key, const char *said)
{
    int code = EXIT_DONE;
    request->accepted_us = clock_wall_us();
    request->error.status = status;
    if (status != THOLE_OK && request->hint != NULL)
        code = cli_complain_with(request->cli, request->cli->words[0], &request->error, cli_exit_code(status),
                                 request->hint);
    else if (status != THOLE_OK)
        code = cli_complain(request->cli, request->cli->words[0], &request->error);
    else if (!cli_is_json(request->cli))
        print_said(said, request->object,
                   request->queued ? "is stored; no engine has taken it yet" : "accepted");
    else
        print_accepted(request, key, !request->queued);
    thole_client_close(request->client);
    buf_release(&request->payload);
    return code;
}

/* ---- with a reason ---- */

typedef thole_status reason_fn(thole_client *client, thole_slice instance, thole_slice reason,
                               thole_error *reterr);

static int ask(struct cli *cli, reason_fn *call, const char *said)
{
    struct request request;
    int code = EXIT_DONE;
    if (!request_open(cli, NULL, &request, &code))
        return code;
    thole_slice const reason = thole_slice_from(cli->options.reason);
    return request_close(&request, call(request.client, request.object, reason, &request.error), "instance",
                         said);
}

int command_cancel(struct cli *cli)
{
    return ask(cli, thole_client_cancel, "cancellation of");
}

int command_terminate(struct cli *cli)
{
    return ask(cli, thole_client_terminate, "termination of");
}

/* Nothing ends a hold but its release. NULL: it is not held. */
static const char *hold_hint(const struct request *request)
{
    thole_error held = {.status = THOLE_OK};
    return client_check_hold(request->client, request->object, &held) == THOLE_CONFLICT
               ? "thole hold list ID, which says who set it and why; thole hold release ends it"
               : NULL;
}

int command_delete(struct cli *cli)
{
    struct request request;
    bool accepted = false;
    int code = EXIT_DONE;
    if (!request_open(cli, NULL, &request, &code))
        return code;
    thole_delete_options const options = {
        .size = sizeof options, .force = cli->options.force, .reason = thole_slice_from(cli->options.reason)};
    thole_status const status =
        thole_client_delete(request.client, request.object, &options, &accepted, &request.error);
    request.queued = !accepted;
    request.hint = status == THOLE_CONFLICT ? hold_hint(&request) : NULL;
    return request_close(&request, status, "instance", "deletion of");
}

int command_pause(struct cli *cli)
{
    return ask(cli, thole_client_pause, "pause of");
}

int command_resume(struct cli *cli)
{
    return ask(cli, thole_client_resume, "resumption of");
}

int command_retry(struct cli *cli)
{
    return ask(cli, thole_client_retry, "retry of");
}

/* ---- events ---- */

static const char *word(const struct cli *cli, int at)
{
    return at < cli->words_len ? cli->words[at] : NULL;
}

int command_signal(struct cli *cli)
{
    struct request request;
    int code = EXIT_DONE;
    if (!request_open(cli, word(cli, 2), &request, &code))
        return code;
    thole_status const status = thole_client_signal(
        request.client, request.object, thole_slice_from(cli->words[1]), buf_bytes(&request.payload),
        thole_slice_from(cli->options.request_id), &request.kept, &request.error);
    if (status == THOLE_OK && request.kept)
        cli_note(cli,
                 "there is no instance \"%s\" in namespace %s: the event is kept for 7 days (the engines' "
                 "--early-events), until it is started; thole list shows it as Waiting",
                 cli->words[0], cli->options.ns);
    return request_close(&request, status, "instance", "event for");
}

/* ---- activities that are completed from outside ---- */

int command_complete(struct cli *cli)
{
    struct request request;
    int code = EXIT_DONE;
    if (!request_open(cli, word(cli, 1), &request, &code))
        return code;
    thole_status const status =
        thole_client_complete(request.client, request.object, buf_bytes(&request.payload), &request.error);
    return request_close(&request, status, "token", "completion of");
}

int command_fail(struct cli *cli)
{
    struct request request;
    int code = EXIT_DONE;
    if (!request_open(cli, word(cli, 1), &request, &code))
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
    if (!request_open(cli, word(cli, 2), &request, &code))
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
