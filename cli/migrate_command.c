/* migrate: creates the tables of a namespace, or brings them up to date, and gives its roles their rights. */
#include "command.h"
#include "migrations.h"
#include "postgres.h"
#include <inttypes.h>

enum { STATEMENT_TIMEOUT_MS = 60 * 1000 };

static thole_status migrate_command_migrate(const struct cli_options *options, thole_error *reterr)
{
    struct postgres *pg = NULL;
    struct postgres_options const settings = {.conninfo = options->postgres,
                                              .ns = options->ns,
                                              .application = "thole-migrate",
                                              .connect_timeout_ms = options->timeout_ms,
                                              .statement_timeout_ms = STATEMENT_TIMEOUT_MS,
                                              .synchronous_commit = true};
    THOLE_TRY(postgres_open(&settings, &pg, reterr));
    thole_status status = postgres_migrate(pg, reterr);
    if (status == THOLE_OK && options->grants)
        status = postgres_grant(pg, reterr);
    postgres_close(pg);
    return status;
}

int command_migrate(struct cli *cli)
{
    struct json json;
    thole_error error = {.status = THOLE_OK};
    if (migrate_command_migrate(&cli->options, &error) != THOLE_OK)
        return cli_complain(cli, "", &error);
    if (!cli_is_json(cli)) {
        (void)printf("namespace %s is at migration %zu%s\n", cli->options.ns, migrations_len,
                     cli->options.grants ? ", and its roles have their rights" : "");
        return EXIT_DONE;
    }
    json_document(&json, stdout, "thole.migrate.v1");
    json_member_text(&json, "namespace", cli->options.ns);
    json_member_number(&json, "migration", migrations_len);
    json_member_bool(&json, "grants", cli->options.grants);
    json_end(&json);
    return EXIT_DONE;
}
