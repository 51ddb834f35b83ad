/* Each role does its work with the rights of its role, and what it has no right to is refused. */
#include "rights_stage.h"

/* An auditor may look at all; a client learns which role may. Asking the server for its sync_interval, which
 * no role may, is what both are denied. */
static void check_doctor(void)
{
    rights_expect(USER_AUDITOR, 0, "queue default", "nodes");
    rights_expect(USER_AUDITOR, 0, "PARTITION", "partitions");
    rights_expect(USER_AUDITOR, 0, "each of 2 has an owner", "doctor --timeout 1s");
    rights_expect(USER_AUDITOR, 0, "checkpoints of ", "doctor --timeout 1s");
    rights_expect(USER_CLIENT, 0,
                  "Try: thole doctor --nats-permissions auditor says what a user must be allowed to",
                  "doctor --timeout 1s");
}

static void test_one_server(void)
{
    rights_start(RIGHTS_ONE_SERVER);
    rights_inboxes_apart();
    rights_hostile();
    rights_listen_begin();
    rights_day();
    rights_listen_end();
    rights_deaf();
    check_doctor();
    rights_postgres_locks();
    rights_programs_end();
    rights_nats_attempts();
    rights_postgres_attempts();
    rights_replies(false);
    rights_stop();
}

/* The files of deploy/nats equal the output of the command. */
static void test_files(void)
{
    for (int user = 0; user < USER_WORKER_GPU; user++) {
        int code;
        const char *const said = rights_shell(
            &code,
            "%s doctor --nats-permissions %s %s | diff - " THOLE_SOURCE_DIR "/deploy/nats/roles/%s.conf 2>&1",
            THOLE_COMMAND, rights_user_names[user],
            rights_is_apart((enum right_user)user) ? "--nats-api-prefix JS.thole.API" : "",
            rights_user_names[user]);
        CHECK_STR(rights_user_names[user], said, "");
        CU_ASSERT_EQUAL(code, 0);
    }
}

/* Of a role that is not in nats-server.conf, since its streams are the user's. */
static void test_binder_file(void)
{
    int code;
    const char *const said =
        rights_shell(&code,
                     "%s doctor --nats-permissions binder --stream ORDERS | diff - " THOLE_SOURCE_DIR
                     "/deploy/nats/roles/binder.conf 2>&1",
                     THOLE_COMMAND);
    CHECK_STR("binder", said, "");
    CU_ASSERT_EQUAL(code, 0);
}

static const struct thole_test tests[] = {
    {"the binder's file", test_binder_file},
    {"the files", test_files},
    {"one server", test_one_server},
};

THOLE_INTEGRATION_MAIN("rights", tests)
