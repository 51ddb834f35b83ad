/* start, run, wait. */
#include "client_internal.h"
#include "client_known.h"
#include "clock.h"
#include "hash.h"
#include "payload.h"
#include "text.h"
#include "trace.h"
#include "values.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the start's arguments ---- */

/* "checkout", or "checkout@2" for a version of it. */
static bool parse_orchestration(const struct cli *cli, const char *word, thole_slice *ret_name,
                                uint32_t *ret_version, int *ret_code)
{
    const char *at = strchr(word, '@');
    uint64_t version = 0;
    *ret_name = (thole_slice){(const uint8_t *)word, at == NULL ? strlen(word) : (size_t)(at - word)};
    if (at != NULL &&
        (number_parse(at + 1, &version, NULL) != THOLE_OK || version == 0 || version > RANGE_INT4)) {
        *ret_code =
            cli_misused(cli, "%.60s: behind the @ stands a version, a number from 1 to %d", word, RANGE_INT4);
        return false;
    }
    *ret_version = (uint32_t)version;
    return true;
}

/* The arguments of start and run. */
struct order {
    thole_client *client;
    thole_slice id, orchestration;
    thole_start_options with;
    bool known; /* a running engine has its code */
    struct buf input, event_data;
    char room[CHOSEN_ID_BYTES];
};

static void order_release(struct order *order)
{
    thole_client_close(order->client);
    buf_release(&order->input);
    buf_release(&order->event_data);
}

/* A client ignores an invalid trace; a user who types one wants to know. */
static bool trace_read(const struct cli *cli, thole_start_options *with, int *ret_code)
{
    thole_slice const parent = thole_slice_from(cli->options.traceparent);
    thole_slice const state = thole_slice_from(cli->options.tracestate);
    with->traceparent = parent;
    with->tracestate = state;
    if (parent.len > 0 && !trace_parent_valid(parent))
        *ret_code = cli_misused(cli, "--traceparent: not VERSION-TRACE-SPAN-FLAGS of version 00, such as "
                                     "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    else if (state.len > 0 && (parent.len == 0 || !trace_state_valid(state)))
        *ret_code =
            cli_misused(cli, parent.len == 0 ? "--tracestate belongs to --traceparent"
                                             : "--tracestate: not KEY=VALUE,..., or more than 512 bytes");
    else
        return true;
    return false;
}

static bool order_read(const struct cli *cli, struct order *order, int *ret_code)
{
    thole_error error = {.status = THOLE_OK};
    const struct cli_options *options = &cli->options;
    bool const both = options->event_data != NULL && options->input != NULL &&
                      strcmp(options->event_data, "-") == 0 && strcmp(options->input, "-") == 0;
    order->with = (thole_start_options){.size = sizeof order->with};
    if (!parse_orchestration(cli, cli->words[0], &order->orchestration, &order->with.version, ret_code))
        return false;
    if (both || (options->event_data != NULL && options->event == NULL)) {
        *ret_code = cli_misused(cli, both ? "stdin can be read once: --input or --event-data"
                                          : "--event-data is of an event: see --event");
        return false;
    }
    if (!trace_read(cli, &order->with, ret_code))
        return false;
    if (!payload_read(cli, options->input, &order->input, ret_code) ||
        !payload_read(cli, options->event_data, &order->event_data, ret_code))
        return false;
    order->with.event = thole_slice_from(options->event);
    order->with.event_data = buf_bytes(&order->event_data);
    order->id = thole_slice_from(cli->options.id);
    if (cli->options.id != NULL)
        return true;
    error.status = client_choose_id(order->orchestration, order->room, &error);
    order->id = thole_slice_from(order->room);
    *ret_code = error.status == THOLE_OK ? EXIT_DONE : cli_complain(cli, "", &error);
    return error.status == THOLE_OK;
}

static bool order_init(const struct cli *cli, struct order *order, int *ret_code)
{
    memset(order, 0, sizeof *order);
    if (order_read(cli, order, ret_code))
        order->client = cli_connect(cli, ret_code);
    if (order->client == NULL)
        order_release(order);
    return order->client != NULL;
}

/* Looked up in the engines' heartbeats before the start: a typo would wait for an engine for ever. False
 * after a complaint: --require-known. */
static bool instance_commands_check_known(const struct cli *cli, struct order *order, int *ret_code)
{
    enum known known = KNOWN_YES;
    char near[THOLE_NAME_BYTES_MAX + 1];
    thole_error error = {.status = THOLE_OK};
    error.status =
        client_engines_know(order->client, order->orchestration, order->with.version, &known, near, &error);
    if (error.status != THOLE_OK) {
        if (cli->options.require_known)
            *ret_code = cli_complain(cli, cli->words[0], &error);
        return !cli->options
                    .require_known; /* without the option it is only noted, if the answer is certain */
    }
    order->known = known == KNOWN_YES;
    if (known == KNOWN_YES)
        return true;
    client_unknown_text(order->orchestration, order->with.version, cli->options.ns, known, near, &error);
    if (!cli->options.require_known) {
        cli_note(cli, "%s; the instance waits until one does", error.text);
        return true;
    }
    *ret_code = cli_complain_with(cli, cli->words[0], &error, EXIT_NO_CODE,
                                  "PROGRAM run, with the program that registers it; nothing was started");
    return false;
}

static bool instance_commands_is_plain(const struct order *order)
{
    return order->with.version == 0 && order->with.event.len == 0 && order->with.traceparent.len == 0 &&
           order->with.tracestate.len == 0;
}

static const char *id_text(thole_slice id)
{
    return id.len == 0 ? "\"\"" : (const char *)id.ptr; /* comes from argv or from order.room */
}

/* ---- outcomes ---- */

static void print_outcome_json(thole_slice id, const thole_outcome *outcome)
{
    struct json json;
    json_document(&json, stdout, "thole.outcome.v1");
    json_member(&json, "instance", id);
    json_member_text(&json, "status", thole_instance_status_name(outcome->status));
    json_member_number(&json, "execution", outcome->execution);
    json_member_data(&json, "output", outcome->output);
    if (outcome->error_type.len > 0)
        json_member(&json, "error_type", outcome->error_type);
    json_end(&json);
}

static const char *end_text(thole_instance_status status)
{
    if (status == THOLE_INSTANCE_FAILED)
        return "failed";
    return status == THOLE_INSTANCE_TERMINATED ? "was terminated" : "was cancelled";
}

/* A result is data, and goes to stdout byte for byte; why there is none is talk. */
static void print_outcome_text(const struct cli *cli, thole_slice id, const thole_outcome *outcome)
{
    struct buf text;
    if (outcome->status == THOLE_INSTANCE_COMPLETED) {
        payload_print(cli, outcome->output);
        return;
    }
    buf_init(&text, THOLE_PAYLOAD_BYTES_DEFAULT);
    if (outcome->error_type.len > 0)
        buf_printf(&text, " (%.*s)", THOLE_FMT(outcome->error_type));
    if (outcome->output.len > 0)
        buf_text(&text, ": ");
    text_safe(&text, outcome->output, 2000);
    cli_note(cli, "instance %s %s%s", id_text(id), end_text(outcome->status), buf_cstr(&text));
    buf_release(&text);
}

static int print_outcome(const struct cli *cli, thole_slice id, thole_outcome *outcome)
{
    int const code = outcome->status == THOLE_INSTANCE_COMPLETED ? EXIT_DONE : EXIT_UNSUCCESSFUL;
    if (!cli_is_json(cli))
        print_outcome_text(cli, id, outcome);
    else
        print_outcome_json(id, outcome);
    thole_outcome_release(outcome);
    return code;
}

/* ---- waiting ---- */

enum {
    EXPLAIN_MS = 5000,        /* after so long it is said what keeps it from going on, */
    EXPLAIN_AGAIN_MS = 30000, /* and what else does, after so much more */
    TOLD_MAX = 32,
};

struct waiting {
    const struct cli *cli;
    thole_slice id;
    uint64_t told[TOLD_MAX]; /* hashes of what was said */
    size_t told_len;
};

/* An instance that is not there may come yet: its start may be stored and wait for an engine, or be on its
 * way. So it is waited for, but not silently: the id may be mistyped. */
static thole_status tell_hindrance(void *arg, const thole_hindrance *hindrance)
{
    struct waiting *const waiting = arg;
    uint64_t const hash = hash_bytes(0, hindrance->text);
    struct buf text;
    for (size_t i = 0; i < waiting->told_len; i++)
        if (waiting->told[i] == hash)
            return THOLE_OK;
    if (waiting->told_len == TOLD_MAX)
        return THOLE_CANCELLED;
    waiting->told[waiting->told_len++] = hash;
    if (strcmp(hindrance->kind, "not_there") == 0) {
        cli_note(waiting->cli,
                 "there is no instance \"%.*s\" in namespace %s yet: waiting for it to be started; "
                 "--timeout limits that, and thole list shows which there are",
                 THOLE_FMT(waiting->id), waiting->cli->options.ns);
        return THOLE_OK;
    }
    buf_init(&text, 4 * BUFSIZ);
    text_safe(&text, hindrance->text, BUFSIZ / 2);
    cli_note(waiting->cli, "instance \"%.*s\" does not go on: %s\nTry: %.*s", THOLE_FMT(waiting->id),
             buf_cstr(&text), THOLE_FMT(hindrance->remedy));
    buf_release(&text);
    return THOLE_OK;
}

/* Waits also for an instance that cannot go on, since a user may help it, but not silently. @p waited: that
 * long already. */
static thole_status instance_commands_wait_for(const struct cli *cli, thole_client *client, thole_slice id,
                                               bool waited, thole_outcome *ret, thole_error *reterr)
{
    struct waiting waiting = {.cli = cli, .id = id};
    for (uint64_t slice_ms = EXPLAIN_MS;; slice_ms = EXPLAIN_AGAIN_MS) {
        uint64_t const begun_ms = clock_monotonic_ms(), left_ms = cli_left_ms(cli);
        bool const last = left_ms <= slice_ms;
        if (!waited) {
            thole_status const status = thole_client_wait(client, id, last ? left_ms : slice_ms, ret, reterr);
            bool const whole = clock_monotonic_ms() - begun_ms >= slice_ms;
            if ((status != THOLE_TIMEOUT && (status != THOLE_NOT_FOUND || !whole)) || last)
                return status; /* NOT_FOUND at once: it was deleted meanwhile */
        }
        waited = false;
        thole_status const told = thole_client_explain(client, id, tell_hindrance, &waiting, NULL);
        (void)told; /* a failure fails the wait, too */
    }
}

/* ---- verbs ---- */

static thole_status run_order(const struct cli *cli, struct order *order, thole_outcome *ret,
                              thole_error *reterr)
{
    thole_slice const input = buf_bytes(&order->input);
    if (instance_commands_is_plain(order)) {
        uint64_t const left_ms = cli_left_ms(cli);
        bool const last = left_ms <= EXPLAIN_MS;
        thole_status const status = thole_client_run(order->client, order->id, order->orchestration, input,
                                                     last ? left_ms : EXPLAIN_MS, ret, reterr);
        return status != THOLE_TIMEOUT || last
                   ? status
                   : instance_commands_wait_for(cli, order->client, order->id, true, ret, reterr);
    }
    THOLE_TRY(thole_client_start_with(order->client, order->id, order->orchestration, input, &order->with,
                                      NULL, reterr));
    return instance_commands_wait_for(cli, order->client, order->id, false, ret, reterr);
}

int command_run(struct cli *cli)
{
    struct order order;
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_GENERIC;
    if (!order_init(cli, &order, &code))
        return code;
    if (!instance_commands_check_known(cli, &order, &code)) {
        order_release(&order);
        return code;
    }
    if (cli->options.id == NULL)
        cli_note(cli, "instance %s", id_text(order.id));
    error.status = run_order(cli, &order, &outcome, &error);
    if (error.status == THOLE_OK)
        code = print_outcome(cli, order.id, &outcome);
    else
        code = cli_complain(cli, id_text(order.id), &error);
    order_release(&order);
    return code;
}

static void print_started(const struct cli *cli, const struct order *order, bool accepted)
{
    thole_slice const id = order->id;
    struct json json;
    if (!cli_is_json(cli)) {
        payload_print(cli, thole_slice_from(id_text(id)));
        if (cli->options.unescaped) /* --raw is about results: an id is a line in any case */
            (void)fputc('\n', stdout);
    } else {
        json_document(&json, stdout, "thole.start.v1");
        json_member(&json, "instance", id);
        json_member_bool(&json, "accepted", accepted);
        json_member_bool(&json, "known", order->known); /* by a running engine */
        json_end(&json);
    }
    if (!accepted)
        cli_note(cli, "queued: it is stored, and the next engine will take it");
}

int command_start(struct cli *cli)
{
    struct order order;
    thole_error error = {.status = THOLE_OK};
    bool accepted = false;
    int code = EXIT_DONE;
    if (cli->options.wait)
        return command_run(cli);
    if (!order_init(cli, &order, &code))
        return code;
    if (!instance_commands_check_known(cli, &order, &code)) {
        order_release(&order);
        return code;
    }
    error.status = thole_client_start_with(order.client, order.id, order.orchestration,
                                           buf_bytes(&order.input), &order.with, &accepted, &error);
    if (error.status == THOLE_OK)
        print_started(cli, &order, accepted);
    else
        code = cli_complain(cli, id_text(order.id), &error);
    order_release(&order);
    return code;
}

int command_wait(struct cli *cli)
{
    thole_slice const id = thole_slice_from(cli->words[0]);
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_GENERIC;
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    error.status = instance_commands_wait_for(cli, client, id, false, &outcome, &error);
    code = error.status == THOLE_OK ? print_outcome(cli, id, &outcome)
                                    : cli_complain(cli, cli->words[0], &error);
    thole_client_close(client);
    return code;
}
