/* doctor: looks whether all is well; or which permissions the users of a namespace need. */
#include "command.h"
#include "doctor_checks.h"
#include "nats_accounts.h"
#include "nats_permissions.h"
#include <string.h>

#define ANSWER_NS 120000000000 /* allow_responses: true means two minutes, too */

static void print_subject(void *arg, const char *subject)
{
    (void)arg;
    (void)printf("    \"%s\"\n", subject);
}

/* A part of nats-server's configuration, which a user's block includes. */
static void doctor_command_print_table(const struct permissions *permissions)
{
    char inbox[INBOX_PREFIX_BYTES_MAX + 1];
    (void)printf("# Role %s, namespace %s, %u partitions. Its programs run with --nats-inbox=",
                 permissions->wish.roles, permissions->wish.ns, permissions->wish.partitions);
    for (size_t i = 0; permissions_inbox(permissions, i, inbox); i++)
        (void)printf("%s%s", i > 0 ? " or " : "", inbox);
    (void)printf("\n"
                 "permissions: {\n"
                 "  publish: { allow: [\n");
    permissions_each(permissions, PERMISSION_PUBLISH, print_subject, NULL);
    (void)printf("  ] }\n"
                 "  subscribe: { allow: [\n");
    permissions_each(permissions, PERMISSION_SUBSCRIBE, print_subject, NULL);
    (void)printf("  ] }\n%s}\n", permissions->answers ? "  allow_responses: true\n" : "");
}

static void add_subject(void *arg, const char *subject)
{
    json_string(arg, thole_slice_from(subject));
}

static void print_side(struct json *json, const struct permissions *permissions, const char *key,
                       enum permission_side side)
{
    json_key(json, key);
    json_object(json);
    json_key(json, "allow");
    json_array(json);
    permissions_each(permissions, side, add_subject, json);
    json_end(json);
    json_end(json);
}

/* The members pub, sub and resp are those of a user's JWT. */
static void print_json(const struct permissions *permissions)
{
    char inbox[INBOX_PREFIX_BYTES_MAX + 1];
    struct json json;
    json_document(&json, stdout, "thole.nats_permissions.v1");
    json_member_text(&json, "role", permissions->wish.roles);
    json_member_text(&json, "namespace", permissions->wish.ns);
    json_member_number(&json, "partitions", permissions->wish.partitions);
    if (permissions_inbox(permissions, 0, inbox))
        json_member_text(&json, "inbox", inbox);
    json_key(&json, "inboxes");
    json_array(&json);
    for (size_t i = 0; permissions_inbox(permissions, i, inbox); i++)
        json_string(&json, thole_slice_from(inbox));
    json_end(&json);
    print_side(&json, permissions, "pub", PERMISSION_PUBLISH);
    print_side(&json, permissions, "sub", PERMISSION_SUBSCRIBE);
    if (permissions->answers) {
        json_key(&json, "resp");
        json_object(&json);
        json_member_number(&json, "max", 1);
        json_member_number(&json, "ttl", ANSWER_NS);
        json_end(&json);
    }
    json_end(&json);
}

/* Of two accounts: what passes between them. */
static int print_accounts(const struct cli *cli, const struct permissions *permissions)
{
    const char *const to = cli->options.exports_to, *const from = cli->options.imports_from;
    thole_error error = {.status = THOLE_OK};
    struct json json;
    if (to != NULL && from != NULL)
        return cli_misused(cli,
                           "--exports-to and --imports-from are of two accounts: print one after the other");
    if (accounts_check(permissions, to != NULL ? to : from, from != NULL, &error) != THOLE_OK)
        return cli_misused(cli, "%s", error.text);
    if (cli->options.output == OUTPUT_TABLE && to != NULL)
        accounts_print_exports(permissions, to);
    else if (cli->options.output == OUTPUT_TABLE)
        accounts_print_imports(permissions, from);
    else {
        json_document(&json, stdout, "thole.nats_accounts.v1");
        if (to != NULL)
            accounts_json_exports(permissions, to, &json);
        else
            accounts_json_imports(permissions, from, &json);
        json_end(&json);
    }
    return EXIT_DONE;
}

static int doctor_command_check_all(const struct cli *cli)
{
    const struct cli_options *const options = &cli->options;
    struct doctor_report report;
    if (options->exports_to != NULL || options->imports_from != NULL || options->verbs != NULL ||
        options->queue != NULL || options->orchestration != NULL || options->event != NULL ||
        options->queries != NULL || options->stream != NULL)
        return cli_misused(cli, "--nats-permissions is missing, which role are these for?");
    report_begin(&report, cli);
    doctor_nats(&report);
    doctor_postgres(&report);
    doctor_rows(&report);
    doctor_standing(&report);
    doctor_identity(&report);
    return report_end(&report);
}

int command_doctor(struct cli *cli)
{
    const struct cli_options *options = &cli->options;
    struct permissions permissions;
    thole_error error = {.status = THOLE_OK};
    struct permission_wish const wish = {.roles = options->nats_permissions,
                                         .ns = options->ns,
                                         .inbox = options->nats_inbox,
                                         .api_prefix = options->nats_api_prefix,
                                         .partitions = options->partitions,
                                         .verbs = options->verbs,
                                         .queues = options->queue,
                                         .orchestrations = options->orchestration,
                                         .events = options->event,
                                         .queries = options->queries,
                                         .bound = options->stream,
                                         .actor = options->vouched_actor};
    if (wish.roles == NULL)
        return doctor_command_check_all(cli);
    if (permissions_make(&wish, &permissions, &error) != THOLE_OK)
        return cli_misused(cli, "%s", error.text);
    if (options->exports_to != NULL || options->imports_from != NULL)
        return print_accounts(cli, &permissions);
    if (options->output == OUTPUT_TABLE)
        doctor_command_print_table(&permissions);
    else
        print_json(&permissions);
    return EXIT_DONE;
}
