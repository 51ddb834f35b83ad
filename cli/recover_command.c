/* recover: what has NATS lost of a namespace? And giving that up. */
#include "client_internal.h"
#include "clock.h"
#include "command.h"
#include "memory.h"
#include "migrations.h"
#include "namespace_check.h"
#include "nats_connection.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { STATEMENT_TIMEOUT_MS = 60 * 1000, NOTE_BYTES_MAX = 8192 };

struct recovering {
    struct cli *cli;
    struct connection *connection;
    struct postgres *pg;
    struct namespace_check *check;
    struct namespace_id after;
    char *actor;
    char was[NAMESPACE_SAYS_BYTES], is[NAMESPACE_SAYS_BYTES], stores[STORES_SAY_BYTES];
};

static thole_status connect_both(struct recovering *r, thole_error *reterr)
{
    const struct cli_options *const options = &r->cli->options;
    struct postgres_options const settings = {.conninfo = options->postgres,
                                              .ns = options->ns,
                                              .application = "thole-recover",
                                              .connect_timeout_ms = options->timeout_ms,
                                              .statement_timeout_ms = STATEMENT_TIMEOUT_MS,
                                              .synchronous_commit = true,
                                              .reads = options->accept_loss == NULL};
    THOLE_TRY(nats_connection_open(options, &r->connection, reterr));
    return postgres_open(&settings, &r->pg, reterr);
}

static thole_status recover_command_look(struct recovering *r, thole_error *reterr)
{
    r->check = namespace_check_create(r->cli->options.ns);
    THOLE_TRY(namespace_check_rows(r->check, r->pg, reterr));
    THOLE_TRY(namespace_check_nats(r->check, r->connection, NAMESPACE_RECORDS, reterr));
    THOLE_TRY(namespace_check_stores(r->check, r->connection, reterr));
    namespace_check_was(r->check, r->was);
    namespace_check_is(r->check, r->is);
    namespace_check_lost_stores(r->check, r->stores);
    return THOLE_OK;
}

/* ---- giving up ---- */

static uint32_t partitions_of(const struct namespace_check *check)
{
    return check->partitions != 0 ? check->partitions : (uint32_t)check->rows.owned;
}

/* Another identity, so that what was given up once is not given up again. Rows of another namespace become
 * those of the one that NATS has. */
static thole_status recover_command_choose_id(struct recovering *r, const struct topology *topology,
                                              thole_error *reterr)
{
    uint8_t random[16];
    r->after = topology->id;
    if (r->check->verdict == NAMESPACE_OTHER || r->check->nats.id.text[0] == '\0')
        return THOLE_OK;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no random bytes: %s", strerror(errno));
    r->after = namespace_id_make(random);
    return topology_write_id(r->connection, topology->ns, &r->after, reterr);
}

static thole_status note_in_nats(const struct recovering *r, thole_error *reterr)
{
    uint64_t const now_ms = clock_wall_ms();
    struct json json;
    struct buf text;
    buf_init(&text, NOTE_BYTES_MAX);
    json_to_buf(&json, &text);
    json_object(&json);
    json_member_text(&json, "identity", r->check->rows.id.text);
    json_member_text(&json, "successor", r->after.text);
    json_member_time(&json, "accepted", now_ms);
    json_member_text(&json, "by", r->actor);
    json_member_text(&json, "reason", r->cli->options.reason);
    json_member_text(&json, "was", r->was);
    json_member_text(&json, "is", r->is);
    if (r->stores[0] != '\0')
        json_member_text(&json, "stores", r->stores);
    json_end(&json);
    thole_status status = buf_status(&text);
    if (status == THOLE_OK)
        status = topology_note_loss(r->connection, r->check->ns, now_ms, buf_bytes(&text), reterr);
    buf_release(&text);
    return status;
}

/* After it is noted: from now on there never were such stores, and there are new ones. */
static thole_status give_up_stores(const struct recovering *r, const struct topology *topology,
                                   thole_error *reterr)
{
    for (int i = 0; i < NAMESPACE_STORES; i++)
        if (store_is_lost(r->check->stores[i].verdict))
            THOLE_TRY(store_mark_forget(r->connection, r->check->ns, (enum namespace_store)i, reterr));
    return topology_set_up_stores(r->connection, topology, reterr);
}

static thole_status give_up_rows(const struct recovering *r, uint32_t partitions, thole_error *reterr)
{
    char what[2 * NAMESPACE_SAYS_BYTES + STORES_SAY_BYTES + 4];
    uint32_t *const unfit = memory_array(partitions, sizeof *unfit);
    struct accepted_loss loss = {.before = r->check->rows.id,
                                 .after = r->after,
                                 .actor = thole_slice_from(r->actor),
                                 .reason = thole_slice_from(r->cli->options.reason),
                                 .partitions = unfit};
    for (uint32_t p = 0; p < partitions; p++)
        if (namespace_check_unfit(r->check, p))
            unfit[loss.partitions_len++] = p;
    (void)snprintf(what, sizeof what, "%s; %s%s%s", r->was, r->is, r->stores[0] != '\0' ? "; " : "",
                   r->stores);
    loss.what = thole_slice_from(what);
    thole_status const status = namespace_store_accept(r->pg, &loss, reterr);
    free(unfit);
    return status;
}

/* Done again after a crash it goes on: what NATS has by then fits less, or the identities differ. */
static thole_status recover_command_give_up(struct recovering *r, thole_error *reterr)
{
    struct topology topology;
    uint32_t const partitions = partitions_of(r->check);
    struct topology_options const options = {
        .ns = r->check->ns, .partitions = partitions, .accept_loss = true};
    if (!r->check->tables)
        THOLE_TRY(postgres_migrate(r->pg, reterr));
    THOLE_TRY(topology_ensure(r->connection, &options, &topology, reterr));
    THOLE_TRY(recover_command_choose_id(r, &topology, reterr));
    THOLE_TRY(note_in_nats(r, reterr));
    THOLE_TRY(give_up_stores(r, &topology, reterr));
    return give_up_rows(r, topology.partitions, reterr);
}

/* ---- output ---- */

static int recover_command_report(const struct recovering *r, bool given_up)
{
    struct json json;
    const char *const verdict = namespace_verdict_name(r->check->verdict);
    if (!cli_is_json(r->cli)) {
        (void)printf("namespace %s: %s\n  %s\n  %s\n", r->check->ns, verdict, r->was, r->is);
        if (r->stores[0] != '\0')
            (void)printf("  %s\n", r->stores);
        if (given_up)
            (void)printf(
                "What is lost was given up by %s: %s\nThe identity is %s from now on; engines may be "
                "started.\n",
                r->actor, r->cli->options.reason, r->after.text);
        return EXIT_DONE;
    }
    json_document(&json, stdout, "thole.recover.v1");
    json_member_text(&json, "namespace", r->check->ns);
    json_member_text(&json, "verdict", verdict);
    json_member_text(&json, "was", r->was);
    json_member_text(&json, "is", r->is);
    if (r->stores[0] != '\0')
        json_member_text(&json, "stores", r->stores);
    json_member_text(&json, "identity", namespace_check_id(r->check));
    json_member_bool(&json, "given_up", given_up);
    if (given_up)
        json_member_text(&json, "successor", r->after.text);
    json_end(&json);
    return EXIT_DONE;
}

static thole_status check_id(const struct recovering *r, thole_error *reterr)
{
    const char *const id = namespace_check_id(r->check);
    if (strcmp(id, r->cli->options.accept_loss) == 0)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_CONFLICT,
                      "namespace %s has identity %s, --accept-loss names %.60s: nothing was changed",
                      r->check->ns, id, r->cli->options.accept_loss);
}

static int recover_command_recover(struct recovering *r)
{
    bool const gives_up = r->cli->options.accept_loss != NULL;
    thole_error error = {.status = THOLE_OK};
    error.status = connect_both(r, &error);
    if (cli_lacks_file(r->cli, &error))
        return cli_complain_connect(r->cli, &error);
    thole_status status = error.status == THOLE_OK ? recover_command_look(r, &error) : error.status;
    if (status == THOLE_OK && r->check->verdict == NAMESPACE_NEW)
        status = thole_fail(&error, THOLE_NOT_FOUND,
                            "namespace %s has not been set up: there is nothing to lose", r->check->ns);
    bool const serves =
        status == THOLE_OK && namespace_verdict_serves(r->check->verdict) && r->check->stores_lost == 0;
    if (status == THOLE_OK && !gives_up)
        status = namespace_check_refuse(r->check, &error);
    if (status == THOLE_OK && gives_up && !serves)
        status = check_id(r, &error);
    if (status == THOLE_OK && gives_up && !serves)
        status = recover_command_give_up(r, &error);
    if (status != THOLE_OK)
        return cli_complain(r->cli, "", &error);
    if (gives_up && serves)
        cli_note(r->cli, "nothing is lost: nothing was changed");
    return recover_command_report(r, gives_up && !serves);
}

int command_recover(struct cli *cli)
{
    const struct cli_options *const options = &cli->options;
    struct recovering r = {.cli = cli};
    if (options->accept_loss != NULL && (options->reason == NULL || options->reason[0] == '\0'))
        return cli_misused(cli, "--reason is missing: it is kept with what is given up");
    if (options->accept_loss == NULL && options->reason != NULL)
        return cli_misused(cli, "--reason goes with --accept-loss");
    if (!cli_reason_is_good(cli))
        return EXIT_USAGE;
    r.actor = options->actor != NULL ? memory_text(options->actor) : client_own_actor();
    int const code = recover_command_recover(&r);
    namespace_check_destroy(r.check);
    postgres_close(r.pg);
    connection_close(r.connection);
    free(r.actor);
    return code;
}
