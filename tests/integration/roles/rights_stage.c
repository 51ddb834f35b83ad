#include "rights_stage.h"
#include "connection.h"
#include "jscan.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum {
    CONFIG_BYTES = 4096,
    OUTPUT_BYTES = 60000,
    COMMAND_BYTES = 4096,
    LINE_BYTES = 1024,
    ANSWER_BYTES = 256 * 1024
};

static const char password[] = "geheim";
/* The worker has an NKey, the others a password. */
static const char worker_seed[] = "SUAPUTCCHXSTHNBASBA6HBNFFJ2DFDQEUFEDQPBG2H2ZTVPCVZ6CPXIFOM",
                  worker_public[] = "UANNP4UVODEYGGMJR44NTZGGOHPGGHZMVCQJWQVGFC4EQUIJ4KRPLUOH";
const char *const rights_user_names[USERS] = {"engine",        "worker",    "client",  "service",
                                              "auditor",       "console",   "gateway", "remote-worker",
                                              "remote-client", "archivist", "notary",  "worker-gpu"};

/* The options that narrow each role. */
static const char *const options[USERS] = {
    [USER_ENGINE] = "",
    [USER_WORKER] = "--queue default",
    [USER_CLIENT] = "--verb start,run,wait,signal,query,cancel --orchestration gate,outside --event go"
                    " --query passed",
    [USER_SERVICE] = "",
    [USER_AUDITOR] = "",
    [USER_CONSOLE] = "--queue default --verb show,history,list,rejected,query,cancel,terminate,pause,resume,"
                     "retry,delete,prune,queue,queue-limit",
    [USER_GATEWAY] = "",
    [USER_REMOTE_WORKER] = "--queue default",
    [USER_REMOTE_CLIENT] = "--orchestration gate --event go --query passed",
    [USER_ARCHIVIST] = "--verb archive,hold",
    [USER_NOTARY] = "",
    [USER_WORKER_GPU] = "--queue gpu",
};
static const char *const postgres_roles[USERS] = {"engine", "worker", "reader", "reader", "reader", "reader",
                                                  "worker", "reader", "reader", "reader", "reader", "worker"};

struct stack rights_stack;
static enum rights_stage stage;
static char folder[SERVER_PATH_BYTES]; /* of the permissions, and of the worker's seed */
static char seed_file[SERVER_PATH_BYTES + 16];

const char *rights_shell(int *ret_code, const char *fmt, ...)
{
    static char output[OUTPUT_BYTES];
    char command[COMMAND_BYTES];
    va_list args;
    va_start(args, fmt);
    int const n = vsnprintf(command, sizeof command, fmt, args);
    va_end(args);
    CU_ASSERT_FATAL(n > 0 && (size_t)n < sizeof command);
    FILE *from = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    size_t const len = fread(output, 1, sizeof output - 1, from);
    int const status = pclose(from);
    output[len] = '\0';
    *ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return output;
}

/* ---- NATS ---- */

bool rights_is_apart(enum right_user user)
{
    return user != USER_ENGINE && user != USER_AUDITOR && user != USER_ARCHIVIST && user != USER_NOTARY;
}

const char *rights_role(enum right_user user)
{
    return rights_user_names[user == USER_WORKER_GPU ? USER_WORKER : user];
}

const char *rights_inbox(enum right_user user)
{
    static char text[64];
    bool const of_queue = user == USER_WORKER || user == USER_WORKER_GPU || user == USER_REMOTE_WORKER;
    (void)snprintf(text, sizeof text, "_INBOX_default_%s%s", rights_role(user),
                   !of_queue                 ? ""
                   : user == USER_WORKER_GPU ? "_gpu"
                                             : "_default");
    return text;
}

void rights_permissions_path(enum right_user user, char ret[RIGHTS_PATH_BYTES])
{
    (void)snprintf(ret, RIGHTS_PATH_BYTES, "%s/%s.conf", folder, rights_user_names[user]);
}

const char *rights_api_prefix(enum right_user user)
{
    return stage == RIGHTS_ACCOUNTS && rights_is_apart(user) ? "JS.thole.API" : NULL;
}

/* The subjects that pass between the two accounts: of all users that are apart. */
static void write_crossing(const char *option, const char *file)
{
    int code;
    (void)rights_shell(
        &code,
        "%s doctor --nats-permissions worker,client,service,console,gateway,remote-worker,remote-client"
        " --partitions %d --queue default,gpu --verb start,start-many,run,wait,signal,query,cancel,complete,"
        "fail,list,show,history,rejected,terminate,pause,resume,retry,delete,prune,queue,queue-limit,console"
        " --nats-api-prefix JS.thole.API %s >%s/%s.conf",
        THOLE_COMMAND, RIGHTS_PARTITIONS, option, folder, file);
    CU_ASSERT_EQUAL_FATAL(code, 0);
}

/* A file for each user, which the server's configuration includes. */
static void write_permissions(void)
{
    for (int user = 0; user < USERS; user++) {
        int code;
        const char *const prefix = rights_api_prefix((enum right_user)user);
        (void)rights_shell(&code, "%s doctor --nats-permissions %s --partitions %d %s %s %s >%s/%s.conf",
                           THOLE_COMMAND, rights_role((enum right_user)user), RIGHTS_PARTITIONS,
                           options[user], prefix == NULL ? "" : "--nats-api-prefix",
                           prefix == NULL ? "" : prefix, folder, rights_user_names[user]);
        CU_ASSERT_EQUAL_FATAL(code, 0);
    }
    write_crossing("--exports-to APP", "exports");
    write_crossing("--imports-from THOLE", "imports");
    (void)snprintf(seed_file, sizeof seed_file, "%s/worker.nk", folder);
    FILE *const file = fopen(seed_file, "we");
    CU_ASSERT_FATAL(file != NULL && fprintf(file, "%s\n", worker_seed) > 0 && fclose(file) == 0);
}

static int write_login(char *text, size_t room, int user)
{
    return user == USER_WORKER
               ? snprintf(text, room, "nkey: %s", worker_public)
               : snprintf(text, room, "user: %s, password: %s", rights_user_names[user], password);
}

/* A path is relative to the folder of the configuration: nats in that of the stack, or one below. */
static const char *above(void)
{
    return stage == RIGHTS_CLUSTER ? "../../.." : "../..";
}

static int write_users(char *text, size_t room, bool apart)
{
    int n = 0;
    for (int user = 0; user < USERS; user++) {
        if (stage == RIGHTS_ACCOUNTS && rights_is_apart((enum right_user)user) != apart)
            continue;
        n += snprintf(text + n, room - (size_t)n, "  { ");
        n += write_login(text + n, room - (size_t)n, user);
        n += snprintf(text + n, room - (size_t)n, "\n    include \"%s%s/%s.conf\" }\n", above(),
                      strrchr(folder, '/'), rights_user_names[user]);
    }
    return n;
}

/* A connection without a name belongs to the test, which may do everything. */
static const char *config(void)
{
    static char text[CONFIG_BYTES];
    bool const two = stage == RIGHTS_ACCOUNTS;
    int n = snprintf(text, sizeof text, "no_auth_user: hand\n%s users: [\n  { user: hand, password: hand }\n",
                     two ? "accounts { THOLE: { jetstream: enabled," : "authorization {");
    n += write_users(text + n, sizeof text - (size_t)n, false);
    if (two) {
        n += snprintf(
            text + n, sizeof text - (size_t)n,
            "]\n include \"%s%s/exports.conf\" }\n APP: { include \"%s%s/imports.conf\"\n users: [\n",
            above(), strrchr(folder, '/'), above(), strrchr(folder, '/'));
        n += write_users(text + n, sizeof text - (size_t)n, true);
        n += snprintf(text + n, sizeof text - (size_t)n, "] }");
    } else {
        n += snprintf(text + n, sizeof text - (size_t)n, "]");
    }
    n += snprintf(text + n, sizeof text - (size_t)n, " }\n");
    CU_ASSERT_FATAL((size_t)n < sizeof text);
    return text;
}

void rights_nats_url(enum right_user user, char ret[RIGHTS_URL_BYTES])
{
    const struct server *const servers[] = {&rights_stack.nats, &rights_stack.others[0],
                                            &rights_stack.others[1]};
    char login[64] = "";
    int n = 0;
    if (user != USER_WORKER)
        (void)snprintf(login, sizeof login, "%s:%s@", rights_user_names[user], password);
    for (size_t i = 0; i < ARRAY_LEN(servers) && servers[i]->kind == SERVER_NATS; i++)
        n += snprintf(ret + n, RIGHTS_URL_BYTES - (size_t)n, "%snats://%s127.0.0.1:%u", i == 0 ? "" : ",",
                      login, servers[i]->port);
}

const char *rights_creds(enum right_user user)
{
    return user == USER_WORKER ? seed_file : NULL;
}

struct connection *rights_connect(enum right_user user, const char *name)
{
    char url[RIGHTS_URL_BYTES];
    struct connection *connection = NULL;
    rights_nats_url(user, url);
    struct connection_options const with = {.url = url,
                                            .creds = rights_creds(user),
                                            .inbox = rights_inbox(user),
                                            .api_prefix = rights_api_prefix(user),
                                            .name = name,
                                            .connect_timeout_ms = 5000,
                                            .request_timeout_ms = 5000};
    CU_ASSERT_EQUAL_FATAL(connection_open(&with, &connection, &rights_stack.err), THOLE_OK);
    return connection;
}

size_t rights_violations(void)
{
    const struct server *const servers[] = {&rights_stack.nats, &rights_stack.others[0],
                                            &rights_stack.others[1]};
    char path[SERVER_PATH_BYTES + 32];
    size_t found = 0;
    for (size_t i = 0; i < ARRAY_LEN(servers) && servers[i]->kind == SERVER_NATS; i++) {
        (void)snprintf(path, sizeof path, "%s/nats.log", servers[i]->dir);
        CU_ASSERT(stack_count(path, "Server is ready") > 0); /* is the log */
        found += stack_count(path, "Violation");
    }
    return found;
}

/* ---- walks ---- */

void rights_each_publish(enum right_user user, rights_subject_fn *each, void *arg)
{
    char path[RIGHTS_PATH_BYTES], line[LINE_BYTES];
    bool publishes = false;
    rights_permissions_path(user, path);
    FILE *const file = fopen(path, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    while (fgets(line, sizeof line, file) != NULL) {
        char *const from = strchr(line, '"');
        publishes = strstr(line, "publish:") != NULL || (publishes && strstr(line, "subscribe:") == NULL);
        if (!publishes || from == NULL)
            continue;
        from[1 + strcspn(from + 1, "\"")] = '\0';
        for (char *at = from + 1; *at != '\0'; at++)
            if (*at == '*' || *at == '>')
                *at = '0';
        each(arg, from + 1);
    }
    (void)fclose(file);
}

void rights_each_stream(struct connection *hand, rights_stream_fn *each, void *arg)
{
    thole_error *const err = &rights_stack.err;
    struct buf listed, answer;
    thole_slice names = THOLE_STR(""), name;
    char subject[300];
    size_t at = 0;
    buf_init(&listed, ANSWER_BYTES);
    buf_init(&answer, ANSWER_BYTES);
    CHECK_OK(connection_request(hand, "$JS.API.STREAM.NAMES", THOLE_STR(""), &listed, err), err);
    CU_ASSERT_TRUE(json_find(buf_bytes(&listed), "streams", &names));
    while (json_item(names, &at, &name)) {
        thole_slice const bare = {name.ptr + 1, name.len - 2};
        (void)snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%.*s", THOLE_FMT(bare));
        CHECK_OK(connection_request(hand, subject, THOLE_STR(""), &answer, err), err);
        each(arg, bare, buf_bytes(&answer));
    }
    buf_release(&listed);
    buf_release(&answer);
}

/* ---- Postgres ---- */

void rights_postgres_url(const char *role, char ret[RIGHTS_URL_BYTES])
{
    (void)snprintf(ret, RIGHTS_URL_BYTES, "postgres://thole_default_%s:%s@127.0.0.1:%u/postgres", role,
                   password, rights_stack.postgres.port);
}

static void psql(const char *url, const char *arguments)
{
    int code;
    const char *said =
        rights_shell(&code, "psql -qX -v ON_ERROR_STOP=1 -v namespace=default %s '%s' 2>&1", arguments, url);
    if (code != 0)
        fprintf(stderr, "psql %s: %s\n", arguments, said);
    CU_ASSERT_EQUAL_FATAL(code, 0);
}

/* The rights to all tables, columns and functions of the namespace, as Postgres has them. */
static char *rights_there(const char *url)
{
    int code;
    const char *said =
        rights_shell(&code,
                     "psql -qXAt -c \"SELECT c.relname, c.relacl FROM pg_class AS c WHERE c.relnamespace ="
                     " 'thole_default'::regnamespace AND c.relkind = 'r' ORDER BY 1\" -c \"SELECT "
                     "a.attrelid::regclass, a.attname, a.attacl"
                     " FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid WHERE c.relnamespace ="
                     " 'thole_default'::regnamespace AND a.attacl IS NOT NULL ORDER BY 1, 2\" -c \"SELECT "
                     "p.proname, p.proacl FROM pg_proc AS p"
                     " WHERE p.pronamespace = 'thole_default'::regnamespace ORDER BY 1\" '%s' 2>&1",
                     url);
    CU_ASSERT_EQUAL_FATAL(code, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(strstr(said, "thole_default_worker=w"));
    return strdup(said);
}

/* The doctor's findings about them. */
static void doctor_says(const char *url, const char *expected)
{
    int code;
    const char *said = rights_shell(
        &code,
        "THOLE_POSTGRES='%s' %s doctor --nats nats://127.0.0.1:1 --timeout 5s 2>&1 | grep -A1 ' rights '",
        url, THOLE_COMMAND);
    CHECK_STR(expected, strstr(said, expected) != NULL ? expected : said, expected);
}

/* One right less, to a column, to a table: the doctor says which. */
static void lack_one(const char *super, const char *url)
{
    static const struct {
        const char *right, *role, *lacking;
    } rows[] = {
        {"UPDATE (strikes) ON thole_default.worker_queue", "worker", "worker_queue (UPDATE strikes)"},
        {"SELECT (version) ON thole_default.instances", "worker", "instances (SELECT version)"},
        {"DELETE ON thole_default.timers", "engine", "timers (DELETE)"},
        {"SELECT (id) ON thole_default.incarnation", "reader", "incarnation"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char line[200], expected[160];
        (void)snprintf(line, sizeof line, "-c 'REVOKE %s FROM thole_default_%s'", rows[i].right,
                       rows[i].role);
        psql(super, line);
        (void)snprintf(expected, sizeof expected,
                       "FAIL  rights           rights are missing: thole_default_%s on %s\n", rows[i].role,
                       rows[i].lacking);
        doctor_says(url, expected);
        (void)snprintf(line, sizeof line, "-c 'GRANT %s TO thole_default_%s'", rows[i].right, rows[i].role);
        psql(super, line);
        doctor_says(url, "OK    rights           the roles of the namespace have theirs");
    }
}

/* As deploy/postgres/roles.sql says; each of its steps twice, as an upgrade would. The script for psql, and
 * then what the programs of the tests live with: that of the command, which is the same. */
static void make_tables(void)
{
    static const char *const logins[] = {"migrate", "engine", "worker", "reader"};
    const char *const super = rights_stack.postgres.url;
    char url[RIGHTS_URL_BYTES], line[200];
    int code;
    for (int i = 0; i < 2; i++)
        psql(super, "-f " THOLE_SOURCE_DIR "/deploy/postgres/roles.sql");
    for (size_t i = 0; i < ARRAY_LEN(logins); i++) {
        (void)snprintf(line, sizeof line, "-c \"ALTER ROLE thole_default_%s PASSWORD '%s'\"", logins[i],
                       password);
        /* in a shell's quotes: none within but those */
        psql(super, line);
    }
    rights_postgres_url("migrate", url);
    char *by_psql = NULL;
    for (int i = 0; i < 2; i++) {
        const char *said = rights_shell(&code, "THOLE_POSTGRES='%s' %s migrate %s 2>&1", url, THOLE_COMMAND,
                                        i == 0 ? "" : "--grants");
        if (code != 0)
            fprintf(stderr, "thole migrate: %s\n", said);
        CU_ASSERT_EQUAL_FATAL(code, 0);
        if (i > 0)
            break;
        psql(url, "-f " THOLE_SOURCE_DIR "/deploy/postgres/grants.sql");
        by_psql = rights_there(super);
        psql(super, "-c 'REVOKE ALL ON ALL TABLES IN SCHEMA thole_default FROM thole_default_engine, "
                    "thole_default_worker,"
                    " thole_default_reader'");
        doctor_says(url, "FAIL  rights           rights are missing: thole_default_engine on executions, ");
        doctor_says(
            url, "thole_default_worker on worker_queue\n                       Try: thole migrate --grants");
    }
    doctor_says(url, "OK    rights           the roles of the namespace have theirs");
    lack_one(super, url);
    char *by_command = rights_there(super);
    CHECK_STR("thole migrate --grants", by_command, by_psql);
    free(by_command);
    free(by_psql);
}

/* ---- the stack ---- */

void rights_start(enum rights_stage wanted)
{
    stage = wanted;
    char tokens[SERVER_PATH_BYTES + 16];
    CHECK_OK(server_dir_create("thole-rights", folder, &rights_stack.err), &rights_stack.err);
    write_permissions();
    if (stage == RIGHTS_CLUSTER)
        stack_start_cluster_configured(&rights_stack, config());
    else
        stack_start_configured(&rights_stack, config());
    (void)snprintf(tokens, sizeof tokens, "%s/tokens", rights_stack.dir);
    setenv("VERBS_TOKENS", tokens, 1);
    make_tables();
}

void rights_stop(void)
{
    stack_stop(&rights_stack);
    server_dir_remove(folder);
}

struct stack_program *rights_program(const char *file, enum right_user user, const char *name,
                                     const char *option)
{
    char nats[RIGHTS_URL_BYTES], postgres[RIGHTS_URL_BYTES], url[RIGHTS_URL_BYTES + 16],
        conninfo[RIGHTS_URL_BYTES + 16], creds[SERVER_PATH_BYTES + 32];
    static const char *const roles[USERS] = {[USER_ENGINE] = "engine",
                                             [USER_WORKER] = "worker",
                                             [USER_GATEWAY] = "gateway",
                                             [USER_REMOTE_WORKER] = "remote"};
    bool const engine = user == USER_ENGINE;
    const char *const replicas = rights_stack.others[0].kind == SERVER_NATS ? "--replicas=3" : "--replicas=1";
    rights_nats_url(user, nats);
    rights_postgres_url(postgres_roles[user], postgres);
    (void)snprintf(url, sizeof url, "--nats=%s", nats);
    (void)snprintf(conninfo, sizeof conninfo, "--postgres=%s", postgres);
    (void)snprintf(creds, sizeof creds, "--nats-creds=%s", seed_file);
    const char *const own = engine ? replicas : user == USER_WORKER ? creds : option;
    if (rights_api_prefix(user) != NULL)
        (void)setenv("THOLE_NATS_API_PREFIX", rights_api_prefix(user), 1);
    struct stack_program *const program = stack_program_with(
        &rights_stack, file, name, roles[user], url, conninfo, engine ? "--partitions=2" : "--lease=2s", own,
        own == option ? NULL : option, NULL);
    (void)unsetenv("THOLE_NATS_API_PREFIX");
    return program;
}

void rights_expect(enum right_user user, int code, const char *words, const char *fmt, ...)
{
    char nats[RIGHTS_URL_BYTES], postgres[RIGHTS_URL_BYTES], arguments[1024];
    va_list args;
    int exited;
    va_start(args, fmt);
    (void)vsnprintf(arguments, sizeof arguments, fmt, args);
    va_end(args);
    rights_nats_url(user, nats);
    rights_postgres_url(postgres_roles[user], postgres);
    const char *const said = rights_shell(
        &exited, "THOLE_NATS_URL='%s' THOLE_NATS_INBOX=%s %s%s THOLE_POSTGRES='%s' %s %s 2>&1", nats,
        user == USER_CLIENT ? "" : rights_inbox(user),
        rights_api_prefix(user) == NULL ? "" : "THOLE_NATS_API_PREFIX=",
        rights_api_prefix(user) == NULL ? "" : rights_api_prefix(user), postgres, THOLE_COMMAND, arguments);
    bool const good = exited == code && strstr(said, words) != NULL;
    CU_ASSERT(good);
    if (!good)
        fprintf(stderr, "\n  [%s: thole %s]\n    got  %d: %s\n    want %d: …%s…\n", rights_user_names[user],
                arguments, exited, said, code, words);
}

void rights_programs_end(void)
{
    for (size_t i = 0; i < rights_stack.programs_len; i++)
        (void)stack_terminate(&rights_stack.programs[i], 20000);
}
