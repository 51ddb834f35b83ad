#include "nats_accounts.h"
#include "api_prefix.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

thole_status accounts_check(const struct permissions *permissions, const char *account, bool imports,
                            thole_error *reterr)
{
    for (const char *c = account; *c != '\0'; c++)
        if ((unsigned char)*c <= ' ' || strchr("\"'{}[],;#$:\\", *c) != NULL)
            return thole_fail(reterr, THOLE_INVALID, "an account has a name without blanks and punctuation");
    if (account[0] == '\0')
        return thole_fail(reterr, THOLE_INVALID, "name the account");
    if (!permissions_may_cross(permissions))
        return thole_fail(reterr, THOLE_INVALID,
                          "engine, binder, auditor, notary, archivist and who sets rules belong into the "
                          "account of the streams: they need no exports");
    if (imports && strcmp(permissions->wish.api_prefix, API_PREFIX_DEFAULT) == 0)
        return thole_fail(reterr, THOLE_INVALID,
                          "name another prefix than " API_PREFIX_DEFAULT
                          ", which is that of the account's own JetStream: --nats-api-prefix JS.thole.API");
    return THOLE_OK;
}

static bool is_api(const char *subject)
{
    return strncmp(subject, API_PREFIX_DEFAULT ".", sizeof API_PREFIX_DEFAULT) == 0;
}

static const char *own_name(const struct permissions *permissions, const char *subject,
                            char room[API_SUBJECT_BYTES])
{
    return api_prefix_apply(permissions->wish.api_prefix, subject, room);
}

/* ---- the way back: who asks workers what they know ---- */

static void note_workers(void *arg, const char *subject)
{
    const char *const last = strrchr(subject, '.');
    bool *const asked = arg;
    *asked = *asked || (last != NULL && strcmp(last, ".workers") == 0);
}

/* Whether some of the roles answer what engines and auditors ask of all workers; the subject in @p ret. */
static bool workers_answer(const struct permissions *permissions, char ret[THOLE_NAME_BYTES_MAX + 16])
{
    bool asked = false;
    permissions_each(permissions, PERMISSION_SUBSCRIBE, note_workers, &asked);
    (void)snprintf(ret, THOLE_NAME_BYTES_MAX + 16, "thole.%s.workers", permissions->wish.ns);
    return asked;
}

/* ---- for nats-server's configuration ---- */

struct printing {
    const struct permissions *permissions;
    const char *account;
};

static void print_export(void *arg, const char *subject)
{
    const struct printing *const to = arg;
    (void)printf("  { service: \"%s\", response_type: Stream, accounts: [%s] }\n", subject, to->account);
}

static void print_export_stream(void *arg, const char *subject)
{
    const struct printing *const to = arg;
    (void)printf("  { stream: \"%s\", accounts: [%s] }\n", subject, to->account);
}

static void print_import(void *arg, const char *subject)
{
    const struct printing *const to = arg;
    char room[API_SUBJECT_BYTES];
    (void)printf("  { service: { account: %s, subject: \"%s\" }", to->account, subject);
    if (is_api(subject))
        (void)printf(", to: \"%s\"", own_name(to->permissions, subject, room));
    (void)printf(" }\n");
}

static void print_import_stream(void *arg, const char *subject)
{
    const struct printing *const to = arg;
    (void)printf("  { stream: { account: %s, subject: \"%s\" } }\n", to->account, subject);
}

static void print_head(const struct permissions *permissions, const char *what, const char *whose)
{
    (void)printf("# What the account of %s for %s; namespace %s, %u partitions.\n%s: [\n", whose,
                 permissions->wish.roles, permissions->wish.ns, permissions->wish.partitions, what);
}

void accounts_print_exports(const struct permissions *permissions, const char *account)
{
    struct printing to = {permissions, account};
    char workers[THOLE_NAME_BYTES_MAX + 16];
    print_head(permissions, "exports", "the streams exports");
    permissions_each_crossing(permissions, PERMISSION_PUBLISH, print_export, &to);
    permissions_each_crossing(permissions, PERMISSION_SUBSCRIBE, print_export_stream, &to);
    (void)printf("]\n");
    if (!workers_answer(permissions, workers))
        return;
    (void)printf("# What engines and auditors ask of all workers there.\nimports: [\n");
    print_import(&to, workers);
    (void)printf("]\n");
}

void accounts_print_imports(const struct permissions *permissions, const char *account)
{
    struct printing to = {permissions, account};
    char workers[THOLE_NAME_BYTES_MAX + 16];
    (void)printf("# Programs in this account run with --nats-api-prefix=%s\n", permissions->wish.api_prefix);
    print_head(permissions, "imports", "programs imports");
    permissions_each_crossing(permissions, PERMISSION_PUBLISH, print_import, &to);
    permissions_each_crossing(permissions, PERMISSION_SUBSCRIBE, print_import_stream, &to);
    (void)printf("]\n");
    if (!workers_answer(permissions, workers))
        return;
    (void)printf("# What engines and auditors ask of all workers.\nexports: [\n");
    print_export(&to, workers);
    (void)printf("]\n");
}

/* ---- for a JWT ---- */

struct claims {
    const struct permissions *permissions;
    const char *account;
    struct json *json;
};

static void claim_subject(const struct claims *to, const char *subject, const char *type)
{
    json_object(to->json);
    json_member_text(to->json, "name", subject);
    json_member_text(to->json, "subject", subject);
    json_member_text(to->json, "type", type);
}

static void claim_export(void *arg, const char *subject)
{
    const struct claims *const to = arg;
    claim_subject(to, subject, "service");
    json_member_text(to->json, "response_type", "Stream");
    json_end(to->json);
}

static void claim_export_stream(void *arg, const char *subject)
{
    const struct claims *const to = arg;
    claim_subject(to, subject, "stream");
    json_end(to->json);
}

static void claim_import(void *arg, const char *subject)
{
    const struct claims *const to = arg;
    char room[API_SUBJECT_BYTES];
    claim_subject(to, subject, "service");
    json_member_text(to->json, "account", to->account);
    json_member_text(to->json, "local_subject", own_name(to->permissions, subject, room));
    json_end(to->json);
}

static void claim_import_stream(void *arg, const char *subject)
{
    const struct claims *const to = arg;
    claim_subject(to, subject, "stream");
    json_member_text(to->json, "account", to->account);
    json_member_text(to->json, "local_subject", subject);
    json_end(to->json);
}

void accounts_json_exports(const struct permissions *permissions, const char *account, struct json *json)
{
    struct claims to = {permissions, account, json};
    char workers[THOLE_NAME_BYTES_MAX + 16];
    json_key(json, "exports");
    json_array(json);
    permissions_each_crossing(permissions, PERMISSION_PUBLISH, claim_export, &to);
    permissions_each_crossing(permissions, PERMISSION_SUBSCRIBE, claim_export_stream, &to);
    json_end(json);
    if (!workers_answer(permissions, workers))
        return;
    json_key(json, "imports");
    json_array(json);
    claim_import(&to, workers);
    json_end(json);
}

void accounts_json_imports(const struct permissions *permissions, const char *account, struct json *json)
{
    struct claims to = {permissions, account, json};
    char workers[THOLE_NAME_BYTES_MAX + 16];
    json_key(json, "imports");
    json_array(json);
    permissions_each_crossing(permissions, PERMISSION_PUBLISH, claim_import, &to);
    permissions_each_crossing(permissions, PERMISSION_SUBSCRIBE, claim_import_stream, &to);
    json_end(json);
    if (!workers_answer(permissions, workers))
        return;
    json_key(json, "exports");
    json_array(json);
    claim_export(&to, workers);
    json_end(json);
}
