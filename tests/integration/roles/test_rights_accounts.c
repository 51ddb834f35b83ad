/* The streams and the engines in one account of NATS, clients and workers in another one: what
 * `thole doctor --exports-to` and `--imports-from` print is all that passes between the two. */
#include "rights_stage.h"

static void test_two_accounts(void)
{
    rights_start(RIGHTS_ACCOUNTS);
    rights_inboxes_apart();
    rights_hostile();
    rights_listen_begin();
    rights_day();
    rights_listen_end();
    rights_expect(USER_AUDITOR, 0, "queue default", "nodes"); /* workers of the other account answer */
    rights_programs_end();
    rights_nats_attempts();
    rights_replies(true);
    rights_stop();
}

/* The files of deploy/nats equal the output of the command, and a server takes them. */
static void test_files(void)
{
    static const char *const parts[] = {"exports", "--exports-to APP", "imports",
                                        "--imports-from THOLE --nats-api-prefix JS.thole.API"};
    char server[SERVER_PATH_BYTES], folder[SERVER_PATH_BYTES];
    int code;
    for (size_t i = 0; i < ARRAY_LEN(parts); i += 2) {
        const char *const said =
            rights_shell(&code,
                         "%s doctor --nats-permissions "
                         "worker,client,service,gateway,remote-worker,remote-client,console %s"
                         " | diff - " THOLE_SOURCE_DIR "/deploy/nats/%s.conf 2>&1",
                         THOLE_COMMAND, parts[i + 1], parts[i]);
        CHECK_STR(parts[i], said, "");
    }
    CHECK_OK(server_find_nats(server, sizeof server, &rights_stack.err), &rights_stack.err);
    CHECK_OK(server_dir_create("thole-accounts", folder, &rights_stack.err), &rights_stack.err);
    const char *const said = rights_shell(&code,
                                          "cp -r " THOLE_SOURCE_DIR "/deploy/nats/. %s && cd %s && "
                                          "sed -E -i 's/nkey: \\$(NKEY_[A-Z_]+)/user: \\1, password: x/; "
                                          "/^(tls|cluster) [{]/,/^[}]/d' nats-server.conf"
                                          " && NATS_NAME=n NATS_STORE=%s '%s' -t -c nats-server.conf 2>&1",
                                          folder, folder, folder, server);
    CU_ASSERT_EQUAL(code, 0);
    if (code != 0)
        fprintf(stderr, "%s\n", said);
    server_dir_remove(folder);
}

static const struct thole_test tests[] = {{"the files", test_files}, {"two accounts", test_two_accounts}};

THOLE_INTEGRATION_MAIN("rights_accounts", tests)
