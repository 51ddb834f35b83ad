/* bind: rules by which messages of streams start and signal instances. */
#include "bind_plan.h"
#include "bindings.h"
#include "client_internal.h"
#include "listing.h"
#include "payload.h"
#include "table.h"
#include "text.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_BYTES = 4096, RULE_ARENA_MAX = 64 * 1024 };

/* A stored rule. */
struct stored {
    struct arena arena;
    struct bind_rule rule;
    uint64_t revision;
};

static thole_status read_stored(struct thole_client *client, thole_slice name, struct stored *ret,
                                thole_error *reterr)
{
    struct buf text;
    buf_init(&text, 2 * BIND_RULE_JSON_MAX);
    arena_init(&ret->arena, RULE_ARENA_MAX);
    ret->revision = 0;
    thole_status status =
        bindings_get(client->connection, client->topology.ns, name, &text, &ret->revision, reterr);
    if (status == THOLE_NOT_FOUND || (status == THOLE_OK && ret->revision == 0))
        status = thole_fail(reterr, THOLE_NOT_FOUND, "there is no rule %.*s in namespace %s", THOLE_FMT(name),
                            client->topology.ns);
    else if (status == THOLE_OK)
        status = bind_rule_read(buf_bytes(&text), &ret->arena, &ret->rule, reterr);
    buf_release(&text);
    return status;
}

/* ---- output of rules ---- */

/* Members of the rule and of its consumer; the consumer's are null while there is none. */
static void rule_members(struct json *json, thole_slice name, const struct bind_rule *rule, uint64_t revision,
                         const struct binding_state *state)
{
    json_member(json, "name", name);
    json_member_number(json, "revision", revision);
    json_key(json, "rule");
    bind_rule_write(rule, json);
    json_key(json, "consumer");
    if (state == NULL) {
        json_null(json);
        return;
    }
    json_object(json);
    json_member_number(json, "pending", state->pending);
    json_member_number(json, "ack_pending", state->ack_pending);
    json_member_number(json, "redelivered", state->redelivered);
    json_member_number(json, "acked_sequence", state->acked);
    json_end(json);
}

static const struct table_column bind_columns[] = {
    {"NAME", 20, 10, 0, false},   {"REVISION", 8, 8, 4, true},  {"STREAM", 16, 8, 2, false},
    {"SUBJECT", 28, 8, 0, false}, {"ACTION", 17, 12, 0, false}, {"ORCHESTRATION", 20, 8, 3, false},
    {"PENDING", 9, 7, 0, true},   {"IN FLIGHT", 9, 9, 5, true}, {"INSTANCE", TABLE_WHOLE, 8, 1, false},
};

static void bind_command_table_row(const struct listing *listing, thole_slice name,
                                   const struct bind_rule *rule, uint64_t revision,
                                   const struct binding_state *state)
{
    char pending[24] = "-", ack_pending[24] = "-";
    struct table table;
    if (state != NULL) {
        (void)snprintf(pending, sizeof pending, "%" PRIu64, state->pending);
        (void)snprintf(ack_pending, sizeof ack_pending, "%" PRIu64, state->ack_pending);
    }
    table_begin(&table, bind_columns, sizeof bind_columns / sizeof *bind_columns, listing->rows == 0);
    table_cell(&table, TONE_PLAIN, name);
    table_number(&table, revision);
    table_cell(&table, TONE_PLAIN, rule->stream);
    table_cell(&table, TONE_PLAIN, rule->subject);
    table_text(&table, bind_action_names[rule->action]);
    table_cell(&table, TONE_PLAIN, rule->orchestration.len > 0 ? rule->orchestration : THOLE_STR("-"));
    table_text(&table, pending);
    table_text(&table, ack_pending);
    table_cell(&table, TONE_PLAIN, rule->instance);
    table_release(&table);
}

struct rules {
    struct listing listing;
    struct thole_client *client;
};

static thole_status print_rule(void *arg, thole_slice name, thole_slice value, uint64_t revision)
{
    struct rules *const rules = arg;
    struct arena arena;
    struct bind_rule rule;
    struct binding_state state;
    thole_error error = {.status = THOLE_OK};
    arena_init(&arena, RULE_ARENA_MAX);
    if (bind_rule_read(value, &arena, &rule, &error) != THOLE_OK) {
        cli_note(rules->listing.cli, "rule %.*s is skipped: %s", THOLE_FMT(name), error.text);
        arena_release(&arena);
        return THOLE_OK;
    }
    bool const there = binding_consumer_state(rules->client->connection, rules->client->topology.ns, name,
                                              rule.stream, &state, NULL) == THOLE_OK;
    switch (listing_row(&rules->listing, "thole.binding.v1")) {
    case LISTING_STOP: break;
    case LISTING_TABLE:
        bind_command_table_row(&rules->listing, name, &rule, revision, there ? &state : NULL);
        break;
    case LISTING_JSON:
        rule_members(&rules->listing.json, name, &rule, revision, there ? &state : NULL);
        break;
    case LISTING_NAME: listing_name(name); break;
    }
    arena_release(&arena);
    return listing_row_end(&rules->listing);
}

static int bind_command_list(const struct cli *cli, struct thole_client *client)
{
    struct rules rules = {.client = client};
    thole_error error = {.status = THOLE_OK};
    listing_begin(&rules.listing, cli, "thole.binding_list.v1", "bindings", 0);
    thole_status const status =
        bindings_list(client->connection, client->topology.ns, print_rule, &rules, &error);
    return listing_end(&rules.listing, status, &error, "there are no rules; thole bind set makes one");
}

/* The rule and its consumer, always as JSON: a rule is what is stored. */
static int bind_command_show(const struct cli *cli, struct thole_client *client)
{
    thole_slice const name = thole_slice_from(cli->words[1]);
    thole_error error = {.status = THOLE_OK};
    struct stored stored;
    struct binding_state state;
    struct json json;
    int code = EXIT_DONE;
    error.status = read_stored(client, name, &stored, &error);
    if (error.status != THOLE_OK) {
        code = cli_complain(cli, cli->words[1], &error);
    } else {
        bool const there = binding_consumer_state(client->connection, client->topology.ns, name,
                                                  stored.rule.stream, &state, NULL) == THOLE_OK;
        json_document(&json, stdout, "thole.binding.v1");
        rule_members(&json, name, &stored.rule, stored.revision, there ? &state : NULL);
        json_end(&json);
    }
    arena_release(&stored.arena);
    return code;
}

/* ---- set ---- */

static thole_status choose_stream(struct thole_client *client, const struct cli_options *options,
                                  struct buf *stream, thole_error *reterr)
{
    thole_slice const subject = thole_slice_from(options->subject);
    if (options->stream == NULL)
        return binding_stream_of(client->connection, subject, stream, reterr);
    buf_text(stream, options->stream);
    return binding_stream_takes(client->connection, thole_slice_from(options->stream), subject, reterr);
}

/* A consumer on the stream that the rule has left would keep its messages there for ever. */
static void leave_stream(const struct cli *cli, struct thole_client *client, const struct bind_rule *old,
                         const struct bind_rule *rule)
{
    thole_error error = {.status = THOLE_OK};
    if (thole_slice_equal(old->stream, rule->stream))
        return;
    if (binding_consumer_delete(client->connection, client->topology.ns, thole_slice_from(cli->words[1]),
                                old->stream, &error) != THOLE_OK)
        cli_note(cli, "the rule's consumer on stream %.*s is still there: %s", THOLE_FMT(old->stream),
                 error.text);
}

static thole_status bind_command_store(const struct cli *cli, struct thole_client *client,
                                       const struct bind_rule *rule, uint64_t *ret_revision,
                                       thole_error *reterr)
{
    thole_slice const name = thole_slice_from(cli->words[1]);
    struct stored old;
    struct json json;
    struct buf text;
    THOLE_TRY(bindings_require(client->connection, client->topology.ns, reterr));
    thole_error why = {.status = THOLE_OK};
    bool const was = read_stored(client, name, &old, &why) == THOLE_OK;
    buf_init(&text, BIND_RULE_JSON_MAX);
    json_to_buf(&json, &text);
    bind_rule_write(rule, &json);
    thole_status status = buf_status(&text);
    if (status == THOLE_OK)
        status = bindings_put(client->connection, client->topology.ns, name, buf_bytes(&text),
                              cli->options.revision == 0 ? BINDINGS_ANY : cli->options.revision, ret_revision,
                              reterr);
    if (status == THOLE_OK && was)
        leave_stream(cli, client, &old.rule, rule);
    buf_release(&text);
    arena_release(&old.arena);
    return status;
}

static int say_stored(const struct cli *cli, const char *what, uint64_t revision)
{
    struct json json;
    if (!cli_is_json(cli)) {
        (void)printf("rule %s %s", cli->words[1], what);
        (void)printf(revision == 0 ? "\n" : ": revision %" PRIu64 "\n", revision);
        return EXIT_DONE;
    }
    json_document(&json, stdout, "thole.binding_change.v1");
    json_member_text(&json, "name", cli->words[1]);
    json_member_text(&json, "change", what);
    json_key(&json, "revision");
    if (revision == 0)
        json_null(&json);
    else
        json_number(&json, revision);
    json_end(&json);
    return EXIT_DONE;
}

static int bind_command_set(const struct cli *cli, struct thole_client *client)
{
    const struct cli_options *const options = &cli->options;
    thole_error error = {.status = THOLE_OK};
    struct buf stream;
    uint64_t revision = 0;
    buf_init(&stream, CELL_BYTES);
    struct bind_rule rule = {.subject = thole_slice_from(options->subject),
                             .action = (enum bind_action)options->action,
                             .orchestration = thole_slice_from(options->orchestration),
                             .instance = thole_slice_from(options->bind_instance),
                             .event = thole_slice_from(options->bind_event),
                             .data = (enum bind_data)options->bind_data,
                             .from = (enum bind_from)options->bind_from,
                             .in_flight = options->in_flight};
    /* The user's input is checked before a server is asked. */
    rule.stream = options->stream == NULL ? THOLE_STR("later") : thole_slice_from(options->stream);
    error.status = bind_rule_check(&rule, &error);
    if (error.status == THOLE_OK)
        error.status = bind_rule_check_places(&rule, &error);
    if (error.status == THOLE_OK)
        error.status = choose_stream(client, options, &stream, &error);
    rule.stream = buf_bytes(&stream);
    if (error.status == THOLE_OK)
        error.status = bind_rule_check(&rule, &error);
    if (error.status == THOLE_OK)
        error.status = bind_command_store(cli, client, &rule, &revision, &error);
    int const code = error.status == THOLE_OK ? say_stored(cli, "stored", revision)
                                              : cli_complain(cli, cli->words[1], &error);
    buf_release(&stream);
    return code;
}

/* ---- delete ---- */

static int delete_rule(const struct cli *cli, struct thole_client *client)
{
    thole_slice const name = thole_slice_from(cli->words[1]);
    thole_error error = {.status = THOLE_OK};
    struct stored stored;
    error.status = read_stored(client, name, &stored, &error);
    bool const readable = error.status == THOLE_OK;
    if (readable || error.status == THOLE_CORRUPT || error.status == THOLE_INVALID)
        error.status = bindings_delete(client->connection, client->topology.ns, name, &error);
    if (error.status == THOLE_OK && readable) /* after the key, so that no binder makes it again */
        error.status = binding_consumer_delete(client->connection, client->topology.ns, name,
                                               stored.rule.stream, &error);
    arena_release(&stored.arena);
    return error.status == THOLE_OK ? say_stored(cli, "deleted", 0)
                                    : cli_complain(cli, cli->words[1], &error);
}

/* ---- test ---- */

struct sample {
    struct buf headers_text, body;
    struct event_header headers[EVENT_HEADERS_MAX];
    size_t headers_len;
};

static thole_slice bind_command_trimmed(const uint8_t *from, const uint8_t *to)
{
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
        to--;
    return (thole_slice){from, (size_t)(to - from)};
}

/* Lines of NAME: VALUE. False after a complaint. */
static bool bind_command_read_headers(const struct cli *cli, struct sample *sample)
{
    const uint8_t *at = sample->headers_text.ptr, *const end = at + sample->headers_text.len;
    while (at < end) {
        const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
        const uint8_t *const line_end = newline != NULL ? newline : end;
        const uint8_t *const colon = memchr(at, ':', (size_t)(line_end - at));
        if (bind_command_trimmed(at, line_end).len > 0 &&
            (colon == NULL || sample->headers_len == EVENT_HEADERS_MAX)) {
            (void)cli_misused(cli, "--headers: lines of NAME: VALUE are needed, at most %d",
                              EVENT_HEADERS_MAX);
            return false;
        }
        if (colon != NULL)
            sample->headers[sample->headers_len++] = (struct event_header){
                bind_command_trimmed(at, colon), bind_command_trimmed(colon + 1, line_end)};
        at = newline != NULL ? newline + 1 : end;
    }
    return true;
}

static void print_plan(const struct cli *cli, const struct stored *stored, const struct bind_plan *plan)
{
    const struct message *const message = &plan->message;
    bool const start = stored->rule.action == BIND_START;
    struct json json;
    (void)cli;
    json_document(&json, stdout, "thole.binding_test.v1");
    json_member_text(&json, "action", bind_action_names[stored->rule.action]);
    json_member(&json, "instance", message->instance);
    if (message->orchestration.len > 0)
        json_member(&json, "orchestration", message->orchestration);
    if (!start)
        json_member(&json, "event", message->event_name);
    json_member_data(&json, start ? "input" : "data", start ? message->data : message->event_data);
    json_member_text(&json, "request_id", plan->request_id);
    json_member_text(&json, "request_id_of", plan->id_from);
    json_end(&json);
}

/* *ret_taken false: no message with that subject gets to the rule. */
static thole_status plan_sample(const struct cli *cli, struct thole_client *client,
                                const struct sample *sample, bool *ret_taken, thole_error *reterr)
{
    thole_slice const name = thole_slice_from(cli->words[1]);
    struct stored stored;
    struct bind_plan plan;
    struct arena arena;
    arena_init(&arena, BIND_ARENA_MAX);
    stored.rule.stream = THOLE_STR(""); /* until it is read */
    thole_status status = read_stored(client, name, &stored, reterr);
    struct event_message const message = {.subject = thole_slice_from(cli->options.subject),
                                          .stream = stored.rule.stream,
                                          .body = buf_bytes(&sample->body),
                                          .headers = sample->headers,
                                          .headers_len = sample->headers_len,
                                          .sequence = 1};
    *ret_taken = status != THOLE_OK || bind_rule_matches(&stored.rule, message.subject);
    if (!*ret_taken)
        status = thole_fail(reterr, THOLE_NOT_FOUND,
                            "the rule takes %.*s: a message with the subject %.*s does nothing",
                            THOLE_FMT(stored.rule.subject), THOLE_FMT(message.subject));
    if (status == THOLE_OK)
        status =
            bind_plan_make(&stored.rule, name, &message, client->topology.payload_max, &arena, &plan, reterr);
    if (status == THOLE_OK)
        print_plan(cli, &stored, &plan);
    arena_release(&arena);
    arena_release(&stored.arena);
    return status;
}

static int bind_command_test(const struct cli *cli, struct thole_client *client)
{
    struct sample sample = {.headers_len = 0};
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_USAGE;
    bool good = payload_read(cli, cli->options.headers, &sample.headers_text, &code);
    buf_init(&sample.body, 0);
    if (good)
        good = payload_read(cli, cli->options.input, &sample.body, &code);
    if (good && bind_command_read_headers(cli, &sample)) {
        bool taken = true;
        error.status = plan_sample(cli, client, &sample, &taken, &error);
        if (!taken)
            code = cli_complain_with(cli, cli->words[1], &error, EXIT_GENERIC,
                                     "thole bind show ID; thole bind set ID changes its --subject");
        else
            code = error.status == THOLE_OK ? EXIT_DONE : cli_complain(cli, cli->words[1], &error);
    }
    buf_release(&sample.headers_text);
    buf_release(&sample.body);
    return code;
}

/* ---- the verb ---- */

typedef int bind_fn(const struct cli *cli, struct thole_client *client);
static const struct {
    const char *word;
    bind_fn *run;
    bool named;
} words[] = {{"set", bind_command_set, true},
             {"list", bind_command_list, false},
             {"show", bind_command_show, true},
             {"delete", delete_rule, true},
             {"test", bind_command_test, true}};

int command_bind(struct cli *cli)
{
    enum { WORDS = sizeof words / sizeof words[0] };
    int code = EXIT_DONE;
    size_t i = 0;
    while (i < WORDS && strcmp(cli->words[0], words[i].word) != 0)
        i++;
    if (i == WORDS)
        return cli_misused(cli, "\"%.40s\" is none of set, list, show, delete, test", cli->words[0]);
    if (words[i].named != (cli->words_len == 2))
        return cli_misused(cli, words[i].named ? "%s: which rule?" : "%s takes no more words", words[i].word);
    if (words[i].named && name_check(thole_slice_from(cli->words[1]), "rule", NULL) != THOLE_OK)
        return cli_misused(cli, "\"%.80s\" is no name of a rule: 1 to 64 of A-Z a-z 0-9 _ -", cli->words[1]);
    if ((words[i].run == bind_command_set || words[i].run == bind_command_test) &&
        cli->options.subject == NULL)
        return cli_misused(cli, "%s: --subject is missing", words[i].word);
    thole_client *const client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    code = words[i].run(cli, client);
    thole_client_close(client);
    return code;
}
