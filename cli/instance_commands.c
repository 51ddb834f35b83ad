/* start, run, wait, cancel. */
#include "command.h"
#include "text.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { INPUT_CHUNK = 64 * 1024, ID_TEXT_BYTES = THOLE_NAME_BYTES_MAX + 20 };

/* ---- input and id ---- */

/* One byte more than allowed is read, so that too much is told apart from just enough. */
static bool read_all(FILE *from, uint64_t max, struct buf *to)
{
    char chunk[INPUT_CHUNK];
    size_t n;
    while (to->len <= max && (n = fread(chunk, 1, sizeof chunk, from)) > 0)
        buf_append(to, chunk, n);
    return !ferror(from) && buf_status(to) == THOLE_OK;
}

/* False after a complaint; *ret_code is the exit code. */
static bool read_input(const struct cli *cli, struct buf *to, int *ret_code)
{
    const char *input = cli->options.input == NULL ? "" : cli->options.input;
    const char *path = input[0] == '@' ? input + 1 : NULL;
    bool const standard = strcmp(input, "-") == 0;
    buf_init(to, cli->options.payload_max + INPUT_CHUNK + 1);
    if (path == NULL && !standard) {
        buf_text(to, input);
    } else {
        FILE *from = standard ? stdin : fopen(path, "re");
        bool const ok = from != NULL && read_all(from, cli->options.payload_max, to);
        int const error = errno;
        if (from != NULL && !standard)
            (void)fclose(from);
        if (!ok) {
            *ret_code = cli_misused(cli, "cannot read %s: %s", standard ? "stdin" : path, strerror(error));
            return false;
        }
    }
    if (buf_status(to) == THOLE_OK && to->len <= cli->options.payload_max)
        return true;
    *ret_code = cli_misused(cli, "the input has more than %" PRIu64 " bytes; see --payload-max",
                            cli->options.payload_max);
    return false;
}

/* "checkout-3f9c2a7be1d04c58" */
static bool choose_id(const struct cli *cli, char room[ID_TEXT_BYTES], thole_slice *ret)
{
    uint64_t random;
    if (cli->options.id != NULL) {
        *ret = thole_slice_from(cli->options.id);
        return true;
    }
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    (void)snprintf(room, ID_TEXT_BYTES, "%.*s-%016" PRIx64, THOLE_NAME_BYTES_MAX, cli->words[0], random);
    *ret = thole_slice_from(room);
    return true;
}

/* What start and run need. */
struct order {
    thole_client *client;
    thole_slice id, orchestration;
    struct buf input;
    char room[ID_TEXT_BYTES];
};

static void order_release(struct order *order)
{
    thole_client_close(order->client);
    buf_release(&order->input);
}

static bool order_init(const struct cli *cli, struct order *order, int *ret_code)
{
    memset(order, 0, sizeof *order);
    order->orchestration = thole_slice_from(cli->words[0]);
    if (!choose_id(cli, order->room, &order->id)) {
        *ret_code = cli_misused(cli, "no random bytes for an id: %s", strerror(errno));
        return false;
    }
    if (!read_input(cli, &order->input, ret_code)) {
        order_release(order);
        return false;
    }
    order->client = cli_connect(cli, ret_code);
    if (order->client == NULL)
        order_release(order);
    return order->client != NULL;
}

static const char *id_text(thole_slice id)
{
    return id.len == 0 ? "\"\"" : (const char *)id.ptr; /* it came from argv or from order.room */
}

/* ---- outcomes ---- */

static void print_outcome_json(thole_slice id, const thole_outcome *outcome)
{
    struct json json;
    json_init(&json, stdout);
    cli_json_begin(&json, "thole.outcome.v1");
    json_member(&json, "instance", id);
    json_member(&json, "status", thole_slice_from(thole_instance_status_name(outcome->status)));
    json_member_number(&json, "execution", outcome->execution);
    json_member_data(&json, "output", outcome->output);
    json_end(&json);
}

/* A result is data, and goes to stdout byte for byte; why there is none is talk. */
static void print_outcome_text(thole_slice id, const thole_outcome *outcome)
{
    struct buf text;
    if (outcome->status == THOLE_INSTANCE_COMPLETED) {
        (void)fwrite(outcome->output.ptr, 1, outcome->output.len, stdout);
        if (outcome->output.len == 0 || outcome->output.ptr[outcome->output.len - 1] != '\n')
            (void)fputc('\n', stdout);
        return;
    }
    buf_init(&text, THOLE_PAYLOAD_BYTES_DEFAULT);
    text_safe(&text, outcome->output, 2000);
    (void)fprintf(stderr, "instance %s %s%s%s\n", id_text(id),
                  outcome->status == THOLE_INSTANCE_FAILED ? "failed" : "was cancelled",
                  text.len == 0 ? "" : ": ", buf_cstr(&text));
    buf_release(&text);
}

static int print_outcome(const struct cli *cli, thole_slice id, thole_outcome *outcome)
{
    int const code = outcome->status == THOLE_INSTANCE_COMPLETED ? EXIT_DONE : EXIT_UNSUCCESSFUL;
    if (cli->options.output == OUTPUT_TABLE)
        print_outcome_text(id, outcome);
    else
        print_outcome_json(id, outcome);
    thole_outcome_release(outcome);
    return code;
}

static uint64_t patience(const struct cli *cli)
{
    return cli->options.timeout_ms == 0 ? UINT64_MAX : cli->options.timeout_ms;
}

/* ---- verbs ---- */

int command_run(struct cli *cli)
{
    struct order order;
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_GENERIC;
    if (!order_init(cli, &order, &code))
        return code;
    if (cli->options.id == NULL)
        (void)fprintf(stderr, "instance %s\n", id_text(order.id));
    error.status = thole_client_run(order.client, order.id, order.orchestration, buf_bytes(&order.input),
                                    patience(cli), &outcome, &error);
    if (error.status == THOLE_OK)
        code = print_outcome(cli, order.id, &outcome);
    else
        code = cli_complain(cli, id_text(order.id), &error);
    order_release(&order);
    return code;
}

static void print_started(const struct cli *cli, thole_slice id, bool accepted)
{
    struct json json;
    if (cli->options.output == OUTPUT_TABLE) {
        (void)printf("%s\n", id_text(id));
    } else {
        json_init(&json, stdout);
        cli_json_begin(&json, "thole.start.v1");
        json_member(&json, "instance", id);
        json_key(&json, "accepted");
        json_true(&json, accepted);
        json_end(&json);
    }
    if (!accepted)
        (void)fprintf(stderr, "queued: no engine has taken it yet. Is one running for this namespace?\n");
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
    error.status = thole_client_start(order.client, order.id, order.orchestration, buf_bytes(&order.input),
                                      &accepted, &error);
    if (error.status == THOLE_OK)
        print_started(cli, order.id, accepted);
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
    error.status = thole_client_wait(client, id, patience(cli), &outcome, &error);
    code = error.status == THOLE_OK ? print_outcome(cli, id, &outcome)
                                    : cli_complain(cli, cli->words[0], &error);
    thole_client_close(client);
    return code;
}

/* Of the wall clock, so that it can be compared with what an activity on the same machine prints. */
static uint64_t wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void print_cancelled(const struct cli *cli, thole_slice id, uint64_t requested_us,
                            uint64_t accepted_us)
{
    struct json json;
    if (cli->options.output == OUTPUT_TABLE) {
        (void)printf("cancellation of %s accepted\n", id_text(id));
        return;
    }
    json_init(&json, stdout);
    cli_json_begin(&json, "thole.cancel.v1");
    json_member(&json, "instance", id);
    json_key(&json, "accepted");
    json_true(&json, true);
    json_member_number(&json, "requested_us", requested_us);
    json_member_number(&json, "accepted_us", accepted_us);
    json_end(&json);
}

int command_cancel(struct cli *cli)
{
    thole_slice const id = thole_slice_from(cli->words[0]);
    thole_slice const reason = thole_slice_from(cli->options.reason);
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_DONE;
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    uint64_t const requested_us = wall_us();
    error.status = thole_client_cancel(client, id, reason, &error);
    if (error.status == THOLE_OK)
        print_cancelled(cli, id, requested_us, wall_us());
    else
        code = cli_complain(cli, cli->words[0], &error);
    thole_client_close(client);
    return code;
}
