/*
 * Names that NATS vouches for, with JWTs: a server in operator mode, one scoped signing key whose template is
 * what `thole doctor --nats-permissions client --vouched-actor '{{name()}}' -o json` prints, and users that
 * it signs. Each may publish under the name in its own JWT, and under no other.
 */
#include "jscan.h"
#include "jwt_keys.h"
#include "stack.h"
#include "streams_fixture.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { OUTPUT_BYTES = 60000, COMMAND_BYTES = 1024 };

static struct stack stack;
static struct server server; /* in operator mode */
static char folder[SERVER_PATH_BYTES];
static struct jwt_key operator, account, scope;

static const char *shell(int *ret_code, const char *fmt, ...) THOLE_PRINTF(2, 3);
static const char *shell(int *ret_code, const char *fmt, ...)
{
    static char output[OUTPUT_BYTES];
    char command[COMMAND_BYTES];
    va_list args;
    va_start(args, fmt);
    int const n = vsnprintf(command, sizeof command, fmt, args);
    va_end(args);
    CU_ASSERT_FATAL(n > 0 && (size_t)n < sizeof command);
    FILE *const from = popen(command, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    size_t const len = fread(output, 1, sizeof output - 1, from);
    int const status = pclose(from);
    output[len] = '\0';
    *ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return output;
}

/* ---- the operator, the account, users ---- */

#define NO_LIMITS "\"subs\":-1,\"data\":-1,\"payload\":-1"

/* The account's JWT; the users of its key `scope` have the permissions of the template. */
static void sign_account(const char *function, char ret[JWT_BYTES])
{
    static char claims[JWT_BYTES / 2];
    thole_slice pub, sub;
    int code;
    const char *const printed =
        shell(&code, "%s doctor --nats-permissions client --partitions 2 --vouched-actor '{{%s()}}' -o json",
              THOLE_COMMAND, function);
    CU_ASSERT_EQUAL_FATAL(code, 0);
    CU_ASSERT_TRUE_FATAL(json_find(thole_slice_from(printed), "pub", &pub) &&
                         json_find(thole_slice_from(printed), "sub", &sub));
    int const n = snprintf(
        claims, sizeof claims,
        "\"sub\":\"%s\",\"name\":\"shop\",\"nats\":{\"type\":\"account\",\"version\":2,\"limits\":{" NO_LIMITS
        ",\"imports\":-1,\"exports\":-1,\"wildcards\":true,\"conn\":-1,\"leaf\":-1,\"mem_storage\":-1,"
        "\"disk_storage\":-1,\"streams\":-1,\"consumer\":-1},\"default_permissions\":{\"pub\":{},"
        "\"sub\":{}},\"signing_keys\":[{\"kind\":\"user_scope\",\"key\":\"%s\",\"role\":\"client\","
        "\"template\":{\"pub\":%.*s,\"sub\":%.*s," NO_LIMITS "}}]}",
        account.name, scope.name, THOLE_FMT(pub), THOLE_FMT(sub));
    CU_ASSERT_FATAL(n > 0 && (size_t)n < sizeof claims);
    CU_ASSERT_TRUE_FATAL(jwt_sign(&operator, claims, ret));
}

/* Writes the user's credentials to <folder>/<name>.creds. */
static void make_user(const struct jwt_key *issuer, const char *name, struct jwt_key *ret)
{
    char claims[512], path[SERVER_PATH_BYTES + 64];
    static char jwt[JWT_BYTES];
    CU_ASSERT_TRUE_FATAL(jwt_key_make('U', ret));
    (void)snprintf(
        claims, sizeof claims,
        "\"sub\":\"%s\",\"name\":\"%s\",\"nats\":{\"type\":\"user\",\"version\":2,\"pub\":{},\"sub\":{},"
        "\"issuer_account\":\"%s\"%s}",
        ret->name, name, account.name, issuer == &scope ? "" : "," NO_LIMITS);
    CU_ASSERT_TRUE_FATAL(jwt_sign(issuer, claims, jwt));
    (void)snprintf(path, sizeof path, "%s/%s.creds", folder, name);
    CU_ASSERT_TRUE_FATAL(jwt_write_creds(path, jwt, ret));
}

/* JetStream needs a system account, too. */
static const char *config(const char *function)
{
    static char text[4 * JWT_BYTES], of_operator[JWT_BYTES], of_system[JWT_BYTES], of_account[JWT_BYTES];
    struct jwt_key system;
    char claims[512];
    (void)snprintf(
        claims, sizeof claims,
        "\"sub\":\"%s\",\"name\":\"op\",\"nats\":{\"type\":\"operator\",\"version\":2}", operator.name);
    CU_ASSERT_TRUE_FATAL(jwt_key_make('A', &system) && jwt_sign(&operator, claims, of_operator));
    (void)snprintf(
        claims, sizeof claims,
        "\"sub\":\"%s\",\"name\":\"SYS\",\"nats\":{\"type\":\"account\",\"version\":2,\"limits\":{" NO_LIMITS
        ",\"imports\":-1,\"exports\":-1,\"wildcards\":true,\"conn\":-1,\"leaf\":-1},"
        "\"default_permissions\":{\"pub\":{},\"sub\":{}}}",
        system.name);
    CU_ASSERT_TRUE_FATAL(jwt_sign(&operator, claims, of_system));
    sign_account(function, of_account);
    (void)snprintf(text, sizeof text,
                   "jetstream: {}\noperator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: { "
                   "%s: %s, %s: %s }\n",
                   of_operator, system.name, system.name, of_system, account.name, of_account);
    return text;
}

/* ---- the command ---- */

/* As a user: it exits with @p code and prints @p words. */
static void expect(const char *user, int code, const char *words, const char *arguments)
{
    int exited;
    const char *const said = shell(
        &exited, "THOLE_NATS_CREDS=%s/%s.creds %s %s %s 2>&1", folder, user,
        strcmp(user, "engine") == 0 ? "" : "THOLE_NATS_INBOX= THOLE_POSTGRES=", THOLE_COMMAND, arguments);
    bool const good = exited == code && strstr(said, words) != NULL;
    CU_ASSERT(good);
    if (!good)
        fprintf(stderr, "\n  [%s: thole %s]\n    got  %d: %s\n    want %d: ...%s...\n", user, arguments,
                exited, said, code, words);
}

static void begin(const char *function)
{
    struct jwt_key engine;
    char creds[SERVER_PATH_BYTES + 64], program[SERVER_PATH_BYTES];
    CHECK_OK(server_dir_create("thole-jwt", folder, &stack.err), &stack.err);
    CU_ASSERT_TRUE_FATAL(jwt_key_make('O', &operator) && jwt_key_make('A', &account) &&
                         jwt_key_make('A', &scope));
    make_user(&account, "engine", &engine);
    stack_start(
        &stack); /* for Postgres: its own nats-server is asked without credentials whether it is ready */
    CHECK_OK(server_find_nats(program, sizeof program, &stack.err), &stack.err);
    CU_ASSERT_FATAL(start_configured(&server, program, config(function)));
    (void)setenv("THOLE_NATS_URL", server.url, 1);
    (void)snprintf(creds, sizeof creds, "--nats-creds=%s/engine.creds", folder);
    (void)stack_program_with(&stack, "program_bindings", "engine", "engine", "--partitions=2", creds, NULL);
    for (int i = 0, code = 1; i < 100 && code != 0; i++) {
        pause_ms(100);
        (void)shell(&code, "THOLE_NATS_CREDS=%s/engine.creds %s list 2>&1", folder, THOLE_COMMAND);
    }
}

static void end(void)
{
    stack_stop(&stack);
    server_stop(&server);
    server_dir_remove(server.dir);
    server_dir_remove(folder);
}

/* ---- tests ---- */

static void test_names_of_jwts(void)
{
    struct jwt_key alice, bob;
    begin("name");
    make_user(&scope, "alice", &alice);
    make_user(&scope, "bob", &bob);
    expect("alice", 0, "j-1", "start collect --id j-1 --vouched-actor alice");
    expect("bob", 0, "", "cancel j-1 --vouched-actor bob --reason why");
    expect("engine", 9, "why", "wait j-1 --timeout 60s");
    expect("engine", 0, "nats:alice", "history j-1 -o wide");
    expect("engine", 0, "nats:bob", "history j-1 -o wide");
    expect("alice", 7, "Permissions Violation", "start order --id j-2 --vouched-actor bob --timeout 1s");
    expect("bob", 7, "Permissions Violation", "start order --id j-2 --vouched-actor alice --timeout 1s");
    expect("bob", 7, "Permissions Violation", "start order --id j-2 --actor alice --timeout 1s");
    expect("engine", 3, "", "show j-2");
    end();
}

/* The public key of the user's JWT, which no other user has. */
static void test_subjects_of_jwts(void)
{
    struct jwt_key carol, dave;
    char line[COMMAND_BYTES / 2], want[80];
    begin("subject");
    make_user(&scope, "carol", &carol);
    make_user(&scope, "dave", &dave);
    (void)snprintf(line, sizeof line, "start order --id k-1 --vouched-actor %s", carol.name);
    expect("carol", 0, "k-1", line);
    (void)snprintf(want, sizeof want, "nats:%.12s", carol.name);
    expect("engine", 0, want, "history k-1 -o wide");
    (void)snprintf(line, sizeof line, "start order --id k-2 --vouched-actor %s --timeout 1s", carol.name);
    expect("dave", 7, "Permissions Violation", line);
    expect("engine", 3, "", "show k-2");
    end();
}

static const struct thole_test tests[] = {{"names of JWTs", test_names_of_jwts},
                                          {"subjects of JWTs", test_subjects_of_jwts}};

THOLE_INTEGRATION_MAIN("vouched_jwt", tests)
