/* doctor: looks whether all is well; or which permissions the users of a namespace need. */
#include "command.h"
#include "doctor_checks.h"
#include "nats_permissions.h"
#include <string.h>

#define ANSWER_NS 120000000000 /* allow_responses: true means two minutes, too */

static void print_subject(void *arg, const char *subject)
{
    (void)arg;
    (void)printf("    \"%s\"\n", subject);
}

/* A part of nats-server's configuration, which a user's block includes. */
static void print_table(const struct permissions *permissions)
{
    (void)printf("# Role %s, namespace %s, %u partitions. Its programs run with --nats-inbox=%s\n"
                 "permissions: {\n"
                 "  publish: { allow: [\n",
                 permissions->wish.roles, permissions->wish.ns, permissions->wish.partitions,
                 permissions->inbox);
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
    struct json json;
    json_document(&json, stdout, "thole.nats_permissions.v1");
    json_member_text(&json, "role", permissions->wish.roles);
    json_member_text(&json, "namespace", permissions->wish.ns);
    json_member_number(&json, "partitions", permissions->wish.partitions);
    json_member_text(&json, "inbox", permissions->inbox);
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

static int check_all(const struct cli *cli)
{
    const struct cli_options *const options = &cli->options;
    struct doctor_report report;
    if (options->verbs != NULL || options->queue != NULL || options->orchestration != NULL ||
        options->event != NULL || options->queries != NULL || options->stream != NULL)
        return cli_misused(cli, "--nats-permissions is missing, which role are these for?");
    report_begin(&report, cli);
    doctor_nats(&report);
    doctor_postgres(&report);
    return report_end(&report);
}

int command_doctor(struct cli *cli)
{
    const struct cli_options *options = &cli->options;
    struct permissions permissions;
    thole_error error = {.status = THOLE_OK};
    /* the prefix that all have who choose none separates nobody */
    bool const own_inbox = strcmp(options->nats_inbox, INBOX_PREFIX_DEFAULT) != 0;
    struct permission_wish const wish = {.roles = options->nats_permissions,
                                         .ns = options->ns,
                                         .inbox = own_inbox ? options->nats_inbox : NULL,
                                         .partitions = options->partitions,
                                         .verbs = options->verbs,
                                         .queues = options->queue,
                                         .orchestrations = options->orchestration,
                                         .events = options->event,
                                         .queries = options->queries,
                                         .bound = options->stream,
                                         .actor = options->vouched_actor};
    if (wish.roles == NULL)
        return check_all(cli);
    if (permissions_make(&wish, &permissions, &error) != THOLE_OK)
        return cli_misused(cli, "%s", error.text);
    if (options->output == OUTPUT_TABLE)
        print_table(&permissions);
    else
        print_json(&permissions);
    return EXIT_DONE;
}
