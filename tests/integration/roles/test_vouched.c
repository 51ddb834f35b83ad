/*
 * The actors of requests, as NATS vouches for them: users whose permissions are separate, an engine, a
 * gateway and a binder as processes. alice may publish only as alice, bob only under a stated name; the
 * gateway and the binder have the permissions of their roles. The actions of each are in the histories, told
 * apart, and these verify.
 */
#include "connection.h"
#include "jscan.h"
#include "link.h"
#include "stack.h"
#include "subject.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { TEXT_BYTES = 60000, LINE_BYTES = 2048, WAIT_MS = 30000, PARTITIONS = 2 };
#define PROGRAM "program_bindings"

static struct stack stack;
static char folder[SERVER_PATH_BYTES]; /* of the permissions */

/* ---- the server's users ---- */

static const struct {
    const char *name, *roles;
} users[] = {
    {"alice",
     "client,remote-client --verb start,start-many,signal,cancel,terminate,call --vouched-actor alice"},
    {"bob", "client,remote-client --verb start,signal,cancel,call"},
    {"gateway", "gateway"},
    {"binder", "binder --stream ORDERS"},
};

static const char *shell(int *ret_code, const char *fmt, ...) THOLE_PRINTF(2, 3);
static const char *shell(int *ret_code, const char *fmt, ...)
{
    static char output[TEXT_BYTES];
    char command[LINE_BYTES];
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

/* A connection without a name belongs to the test, which may do everything. */
static const char *config(void)
{
    static char text[LINE_BYTES];
    int n = snprintf(text, sizeof text,
                     "no_auth_user: hand\nauthorization { users: [\n  { user: hand, password: hand }\n");
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        int code;
        (void)shell(&code,
                    "%s doctor --nats-permissions %s --partitions %d --nats-inbox _INBOX_%s >%s/%s.conf",
                    THOLE_COMMAND, users[i].roles, PARTITIONS, users[i].name, folder, users[i].name);
        CU_ASSERT_EQUAL_FATAL(code, 0);
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "  { user: %s, password: geheim\n    include \"../..%s/%s.conf\" }\n", users[i].name,
                      strrchr(folder, '/'), users[i].name);
    }
    n += snprintf(text + n, sizeof text - (size_t)n, "] }\n");
    CU_ASSERT_FATAL((size_t)n < sizeof text);
    return text;
}

static const char *url_of(const char *user)
{
    static char text[96];
    (void)snprintf(text, sizeof text, "nats://%s:geheim@127.0.0.1:%u", user, stack.nats.port);
    return text;
}

static void start_role(const char *role)
{
    char url[128], inbox[64];
    (void)snprintf(url, sizeof url, "--nats=%s", url_of(role));
    (void)snprintf(inbox, sizeof inbox, "--nats-inbox=_INBOX_%s", role);
    (void)stack_program_with(&stack, PROGRAM, role, role, url, inbox, NULL);
}

/* ---- the command ---- */

/* As a user, NULL: the hand. The check fails unless it exits with @p code and prints @p words. */
static void expect(const char *user, int code, const char *words, const char *arguments)
{
    int exited;
    const char *const said =
        user == NULL
            ? shell(&exited, "%s %s 2>&1", THOLE_COMMAND, arguments)
            : shell(&exited, "THOLE_NATS_URL='%s' THOLE_NATS_INBOX=_INBOX_%s THOLE_POSTGRES= %s %s 2>&1",
                    url_of(user), user, THOLE_COMMAND, arguments);
    bool const good = exited == code && strstr(said, words) != NULL;
    CU_ASSERT(good);
    if (!good)
        fprintf(stderr, "\n  [%s: thole %s]\n    got  %d: %s\n    want %d: ...%s...\n",
                user == NULL ? "hand" : user, arguments, exited, said, code, words);
}

#define VOUCHED(name) "\"actor\":\"" name "\",\"actor_authenticated\":true"
#define STATED(name) "\"actor\":\"" name "\",\"actor_authenticated\":false"

/* Checks that so many events of the instance are of this actor. */
static void recorded(const char *id, const char *actor, size_t events)
{
    int code;
    size_t found = 0;
    const char *const said = shell(&code, "%s history %s -o jsonl 2>&1", THOLE_COMMAND, id);
    for (const char *at = said; (at = strstr(at, actor)) != NULL; at++)
        found++;
    if (found != events)
        fprintf(stderr, "\n  %s has %zu of %s, want %zu:\n%s\n", id, found, actor, events, said);
    CU_ASSERT_EQUAL(found, events);
}

/* ---- tests ---- */

static void test_the_command(void)
{
    expect("alice", 0, "v-1", "start collect --id v-1 --vouched-actor alice");
    expect("alice", 0, "", "signal v-1 item one --vouched-actor alice --actor other");
    expect("alice", 0, "", "cancel v-1 --reason why --vouched-actor alice");
    expect(NULL, 9, "why", "wait v-1 --timeout 60s");
    recorded("v-1", VOUCHED("alice"), 3);
    recorded("v-1", "actor_authenticated\":false", 0);
    expect(NULL, 0, "nats:alice", "history v-1 -o wide");
    expect("alice", 0, "1 stored",
           "start-many --vouched-actor alice <<'END'\n"
           "{\"id\":\"v-2\",\"orchestration\":\"order\"}\nEND\n");
    expect(NULL, 0, "", "wait v-2 --timeout 60s");
    recorded("v-2", VOUCHED("alice"), 1);
    /* states any name */
    expect("bob", 0, "s-1", "start collect --id s-1 --actor alice");
    expect("bob", 0, "", "signal s-1 item one --actor bob");
    expect(NULL, 0, "", "terminate s-1 --vouched-actor carol"); /* may publish everything */
    recorded("s-1", STATED("alice"), 1);
    recorded("s-1", STATED("bob"), 1);
    recorded("s-1", VOUCHED("carol"), 1);
    expect(NULL, 0, "stated:alice", "history s-1 -o wide");
}

#define TRY "is that the name that this user's permissions have?"
static void test_what_the_server_refuses(void)
{
    expect("alice", 7, "Permissions Violation", "start order --id r-1 --vouched-actor bob --timeout 1s");
    expect("alice", 7, ".r-1.by.bob", "start order --id r-1 --vouched-actor bob --timeout 1s");
    expect("alice", 7, TRY, "start order --id r-1 --vouched-actor bob --timeout 1s");
    expect("alice", 7, "Permissions Violation", "start order --id r-2 --actor alice --timeout 1s");
    expect("bob", 7, TRY, "start order --id r-3 --vouched-actor alice --timeout 1s");
    expect("bob", 7, TRY, "start order --id r-4 --vouched-actor bob --timeout 1s");
    char many[2 * SERVER_PATH_BYTES];
    int code;
    (void)snprintf(many, sizeof many, "start-many --vouched-actor bob --timeout 1s %s/many", stack.dir);
    (void)shell(&code, "printf '{\"id\":\"r-%%d\",\"orchestration\":\"order\"}\\n' 5 6 >%s/many", stack.dir);
    expect("alice", 7, "Permissions Violation", many);
    expect("alice", 7, TRY, many);
    expect("alice", 7, "0 stored, 2 refused", many);
    for (int i = 1; i <= 6; i++) {
        char arguments[32];
        (void)snprintf(arguments, sizeof arguments, "show r-%d", i);
        expect(NULL, 3, "", arguments);
    }
}

/* The status of the answer to a request; THOLE_DENIED: the server does not let it through. */
static thole_status ask(const char *user, const char *subject, const char *body)
{
    char inbox[32];
    struct header const headers[] = {{"Content-Type", THOLE_STR("application/json")},
                                     {"Thole-Actor", THOLE_STR("mallory")},
                                     {"Thole-Client", THOLE_STR("desk 7")}};
    struct connection *connection = NULL;
    struct buf answer;
    thole_slice value;
    uint64_t number = 0;
    (void)snprintf(inbox, sizeof inbox, "_INBOX_%s", user);
    struct connection_options const options = {.url = url_of(user),
                                               .inbox = inbox,
                                               .name = "test",
                                               .connect_timeout_ms = 5000,
                                               .request_timeout_ms = 2000};
    buf_init(&answer, TEXT_BYTES);
    CU_ASSERT_EQUAL_FATAL(connection_open(&options, &connection, &stack.err), THOLE_OK);
    thole_status status = connection_request_with(connection, subject, headers, ARRAY_LEN(headers),
                                                  thole_slice_from(body), &answer, &stack.err);
    if (status == THOLE_OK && json_find(buf_bytes(&answer), "status", &value) && json_uint(value, &number))
        status = (thole_status)number;
    connection_close(connection);
    buf_release(&answer);
    return status;
}

#define CLIENT "thole.default.gateway.client."
static void test_the_gateway(void)
{
    start_role("gateway");
    CU_ASSERT(stack_logged(&stack.programs[stack.programs_len - 1], "", 1, WAIT_MS));
    for (unsigned i = 0;
         i < 100 && ask("alice", CLIENT "wait.by.alice", "{\"instance\":\"none\"}") != THOLE_NOT_FOUND; i++)
        pause_ms(100);
    CU_ASSERT_EQUAL(ask("alice", CLIENT "start.collect.by.alice", "{\"instance\":\"g-1\"}"), THOLE_OK);
    CU_ASSERT_EQUAL(ask("alice", CLIENT "signal.item.by.alice", "{\"instance\":\"g-1\"}"), THOLE_OK);
    CU_ASSERT_EQUAL(ask("alice", CLIENT "cancel.by.alice", "{\"instance\":\"g-1\"}"), THOLE_OK);
    CU_ASSERT_EQUAL(ask("alice", CLIENT "start.collect.by.bob", "{\"instance\":\"g-2\"}"), THOLE_DENIED);
    CU_ASSERT_EQUAL(ask("alice", CLIENT "start.collect", "{\"instance\":\"g-2\"}"), THOLE_DENIED);
    CU_ASSERT_EQUAL(ask("bob", CLIENT "cancel.by.alice", "{\"instance\":\"g-1\"}"), THOLE_DENIED);
    CU_ASSERT_EQUAL(ask("bob", CLIENT "start.collect", "{\"instance\":\"g-3\"}"), THOLE_OK);
    expect(NULL, 9, "", "wait g-1 --timeout 60s");
    recorded("g-1", VOUCHED("alice"), 3);
    recorded("g-1", "mallory", 0);
    recorded("g-3", STATED("mallory"), 1);
}

static void test_the_binder(void)
{
    start_role("binder");
    for (unsigned i = 0; i < 100 && ask("alice", "thole.default.call.order.by.alice", "x") != THOLE_OK; i++)
        pause_ms(100);
    CU_ASSERT_EQUAL(ask("alice", "thole.default.call.order.by.bob", "x"), THOLE_DENIED);
    CU_ASSERT_EQUAL(ask("bob", "thole.default.call.order.by.alice", "x"), THOLE_DENIED);
    CU_ASSERT_EQUAL(ask("bob", "thole.default.call.order", "x"), THOLE_OK);
    expect(NULL, 0, "call-", "list --prefix call- -o name");
    int code;
    const char *const said = shell(
        &code,
        "%s list --prefix call- -o name | xargs -n 1 %s history -o jsonl | grep -o '\"actor\":.*,\"client\"'",
        THOLE_COMMAND, THOLE_COMMAND);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, VOUCHED("alice")));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, STATED("mallory")));
    CU_ASSERT_PTR_NULL(strstr(said, STATED("alice")));
    CU_ASSERT_PTR_NULL(strstr(said, VOUCHED("mallory")));
}

/* A message that cannot be taken is listed with its whole subject. */
static void test_rejected(void)
{
    char subject[128];
    struct connection *const hand = stack_connect(&stack);
    static const char *const ends[] = {"x.by.alice", "x.by.%zz"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        (void)snprintf(subject, sizeof subject, "thole.default.in.%u.start.order.%s",
                       subject_partition(THOLE_STR("x"), PARTITIONS), ends[i]);
        CHECK_OK(connection_publish(hand, subject, NULL, 0, THOLE_STR("rubbish"), &stack.err), &stack.err);
    }
    CHECK_OK(connection_flush(hand, &stack.err), &stack.err);
    connection_close(hand);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        int code = 1;
        for (unsigned k = 0; k < 50 && code != 0; k++) {
            pause_ms(100);
            (void)shell(&code, "%s rejected -o json | grep -F '.start.order.%s\"'", THOLE_COMMAND, ends[i]);
        }
        CU_ASSERT_EQUAL(code, 0);
    }
}

/* Records of both kinds, and a deletion. */
static void test_histories_verify(void)
{
    expect(NULL, 0, "accepted", "delete v-2 --vouched-actor alice");
    expect(NULL, 0, "", "audit verify --all");
    expect(NULL, 0, "",
           "export --all --form jsonl --to - | python3 " THOLE_SOURCE_DIR
           "/proto/golden/records/record_hash.py /dev/stdin");
    expect(NULL, 0, "all are as their histories say", "projections verify");
}

static void test_all(void)
{
    CHECK_OK(server_dir_create("thole-vouched", folder, &stack.err), &stack.err);
    stack_start_configured(&stack, config());
    (void)stack_program_with(&stack, PROGRAM, "engine", "engine", "--partitions=2", NULL);
    thole_client_close(stack_client(&stack)); /* the namespace is set up */
    test_the_command();
    test_what_the_server_refuses();
    test_the_gateway();
    test_the_binder();
    test_rejected();
    test_histories_verify();
    stack_stop(&stack);
    server_dir_remove(folder);
}

static const struct thole_test tests[] = {{"who asks, as NATS vouches for it", test_all}};

THOLE_INTEGRATION_MAIN("vouched", tests)
