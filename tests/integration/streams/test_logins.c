/* Logins: users, credentials files, TLS, against real servers. */
#include "server_process.h"
#include "streams_fixture.h"
#include <unistd.h>

static thole_status try_open(const char *url, const char *creds, thole_error *err)
{
    struct connection *connection = NULL;
    struct connection_options const options = {
        .url = url, .creds = creds, .name = "test", .connect_timeout_ms = 1000, .request_timeout_ms = 1000};
    thole_status const status = connection_open(&options, &connection, err);
    connection_close(connection);
    return status;
}

static void test_credentials_and_permissions(void)
{
    struct server server;
    char program[1024], url[TEXT_BYTES];
    thole_error err = {0};
    CHECK_OK(server_find_nats(program, sizeof program, &err), &err);
    CU_ASSERT(start_configured(
        &server, program,
        "jetstream: {}\nauthorization { users: [ { user: anna, password: geheim, permissions: "
        "{ publish: [\"$JS.API.INFO\", \"_INBOX.>\"], subscribe: [\"_INBOX.>\"] } } ] }"));
    CU_ASSERT_EQUAL(try_open(server.url, NULL, &err), THOLE_DENIED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "credentials"));
    put_text(url, "nats://anna:falsch@127.0.0.1:%u", server.port);
    CU_ASSERT_EQUAL(try_open(url, NULL, &err), THOLE_DENIED);
    CU_ASSERT_PTR_NULL(strstr(err.text, "falsch"));
    put_text(url, "nats://anna:geheim@127.0.0.1:%u", server.port);
    struct connection *connection = connect_to(url);
    struct buf answer;
    buf_init(&answer, 65536);
    CHECK_OK(connection_request(connection, "$JS.API.INFO", THOLE_STR(""), &answer, &err), &err);
    CU_ASSERT_EQUAL(connection_request(connection, "$JS.API.STREAM.INFO.X", THOLE_STR(""), &answer, &err),
                    THOLE_DENIED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "$JS.API.STREAM.INFO.X"));
    buf_release(&answer);
    connection_close(connection);
    server_stop(&server);
    server_dir_remove(server.dir);
}

static void write_login(const char *path, const char *text)
{
    FILE *const file = fopen(path, "we");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_TRUE(fputs(text, file) >= 0);
    fclose(file);
}

/* Waits for another epoch. */
static bool reconnects(const struct connection *connection, uint64_t epoch)
{
    for (unsigned i = 0; i < 300; i++) {
        if (connection_epoch(connection) > epoch)
            return true;
        (void)usleep(100 * 1000);
    }
    return false;
}

/* A user and a password in a file, which change while a connection lives; a token. */
static void test_login_files(void)
{
    struct server server;
    char program[1024], path[TEXT_BYTES], url[TEXT_BYTES], config[TEXT_BYTES];
    struct connection *connection = NULL;
    thole_error err = {0};
    CHECK_OK(server_find_nats(program, sizeof program, &err), &err);
    CU_ASSERT_FATAL(start_configured(&server, program, "authorization { user: anna, password: geheim }"));
    put_text(path, "%s/login", server.dir);
    write_login(path, "user: anna\npassword: falsch\n");
    CU_ASSERT_EQUAL(try_open(server.url, path, &err), THOLE_DENIED);
    CU_ASSERT_PTR_NULL(strstr(err.text, "falsch"));
    write_login(path, "user: anna\n");
    CU_ASSERT_EQUAL(try_open(server.url, path, &err), THOLE_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "belong together"));
    write_login(path, "user: anna\npassword: geheim\n");
    put_text(url, "nats://anna:geheim@127.0.0.1:%u", server.port);
    CU_ASSERT_EQUAL(try_open(url, path, &err), THOLE_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "a user is in the NATS URL, and another one in the file"));
    struct connection_options const options = {.url = server.url,
                                               .creds = path,
                                               .name = "test",
                                               .connect_timeout_ms = 1000,
                                               .request_timeout_ms = 1000};
    CHECK_OK(connection_open(&options, &connection, &err), &err);
    /* The operator changes the password: the server first, then the file. */
    uint64_t const epoch = connection_epoch(connection);
    put_text(config, "authorization { user: anna, password: neu }");
    CU_ASSERT_FATAL(restart_configured(&server, program, config));
    (void)usleep(300 * 1000);
    CU_ASSERT_EQUAL(connection_epoch(connection), 0);
    write_login(path, "user: anna\npassword: neu\n");
    CU_ASSERT_TRUE(reconnects(connection, epoch));
    /* And goes over to tokens. */
    uint64_t const second = connection_epoch(connection);
    CU_ASSERT_FATAL(restart_configured(&server, program, "authorization { token: zeichen }"));
    write_login(path, "token: zeichen\n");
    CU_ASSERT_TRUE(reconnects(connection, second));
    connection_close(connection);
    server_stop(&server);
    server_dir_remove(server.dir);
}

static void test_credentials_file_that_is_none(void)
{
    char path[TEXT_BYTES], dir[SERVER_PATH_BYTES];
    thole_error err = {0};
    CHECK_OK(server_dir_create("thole-creds", dir, &err), &err);
    put_text(path, "%s/bad.creds", dir);
    FILE *file = fopen(path, "w");
    fputs("nothing of use\n", file);
    fclose(file);
    CU_ASSERT_EQUAL(try_open(fixture_server.url, path, &err), THOLE_DENIED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "check the credentials file"));
    server_dir_remove(dir);
}

/* A file as nsc writes it, and a server that trusts its operator. */
static void test_credentials_file(void)
{
    static char config[16384];
    char dir[SERVER_PATH_BYTES], command[2 * TEXT_BYTES], path[TEXT_BYTES], program[1024];
    struct server server;
    thole_error err = {0};
    CHECK_OK(server_find_nats(program, sizeof program, &err), &err);
    CHECK_OK(server_dir_create("thole-creds", dir, &err), &err);
    snprintf(command, sizeof command,
             "python3 " THOLE_SOURCE_DIR "/tests/integration/streams/nats_creds.py %s", dir);
    if (system(command) != 0) {
        fprintf(stderr, "(no python3 or no openssl: no credentials were tried) ");
        server_dir_remove(dir);
        return;
    }
    put_text(path, "%s/server.conf", dir);
    FILE *const file = fopen(path, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    config[fread(config, 1, sizeof config - 1, file)] = '\0';
    fclose(file);
    CU_ASSERT_FATAL(start_configured(&server, program, config));
    CU_ASSERT_EQUAL(try_open(server.url, NULL, &err), THOLE_DENIED);
    put_text(path, "%s/other.creds", dir);
    CU_ASSERT_EQUAL(try_open(server.url, path, &err), THOLE_DENIED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "check the credentials file"));
    put_text(path, "%s/good.creds", dir);
    CHECK_OK(try_open(server.url, path, &err), &err);
    server_stop(&server);
    server_dir_remove(server.dir);
    server_dir_remove(dir);
}

static thole_status try_tls(const char *url, const char *dir, const char *ca, const char *cert,
                            const char *key, thole_error *err)
{
    struct connection *connection = NULL;
    struct connection_options options = {
        .url = url, .name = "test", .connect_timeout_ms = 1000, .request_timeout_ms = 1000};
    char paths[3][TEXT_BYTES];
    put_text(paths[0], "%s/%s", dir, ca == NULL ? "" : ca);
    put_text(paths[1], "%s/%s", dir, cert == NULL ? "" : cert);
    put_text(paths[2], "%s/%s", dir, key == NULL ? "" : key);
    options.ca = ca == NULL ? NULL : paths[0];
    options.cert = cert == NULL ? NULL : paths[1];
    options.key = key == NULL ? NULL : paths[2];
    err->text[0] = '\0';
    thole_status const status = connection_open(&options, &connection, err);
    connection_close(connection);
    return status;
}

/* An authority of the test's own, certificates from it for the server and a user, and a server that asks for
 * them. */
static void test_own_authority(void)
{
    static const struct {
        const char *ca, *cert, *key;
        thole_status want;
        const char *text;
    } rows[] = {
        {"ca.pem", "user.pem", "user.key", THOLE_OK, ""},
        {"ca.pem", NULL, NULL, THOLE_DENIED, "--nats-cert"},
        {NULL, "user.pem", "user.key", THOLE_DENIED, "--nats-ca"},
        {"user.key", "user.pem", "user.key", THOLE_DENIED, "user.key"},
        {"ca.pem", "user.pem", "server.key", THOLE_DENIED, "server.key"},
        {"ca.pem", "log", "user.key", THOLE_DENIED, "log"},
        {"ca.pem", "user.pem", NULL, THOLE_INVALID, "the key is not"},
        {"ca.pem", NULL, "user.key", THOLE_INVALID, "the certificate is not"},
        {"none.pem", NULL, NULL, THOLE_INVALID, "none.pem cannot be read"},
        {"ca.pem", "none.pem", "user.key", THOLE_INVALID, "none.pem cannot be read"},
        {"ca.pem", "user.pem", "none.key", THOLE_INVALID, "none.key cannot be read"},
    };
    struct server server;
    char dir[SERVER_PATH_BYTES], command[4 * TEXT_BYTES], config[2 * TEXT_BYTES], program[1024],
        url[TEXT_BYTES];
    thole_error err = {0};
    CHECK_OK(server_find_nats(program, sizeof program, &err), &err);
    CHECK_OK(server_dir_create("thole-tls", dir, &err), &err);
    (void)snprintf(
        command, sizeof command,
        "cd %s && { openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj "
        "/CN=own && "
        "for who in server user; do openssl req -newkey rsa:2048 -nodes -keyout $who.key -out $who.csr "
        "-subj /CN=localhost && printf subjectAltName=DNS:localhost >names && openssl x509 -req -in "
        "$who.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out $who.pem || exit 1; "
        "done; } >log 2>&1",
        dir);
    if (system(command) != 0) {
        fprintf(stderr, "(no openssl: no certificate was tried) ");
        server_dir_remove(dir);
        return;
    }
    (void)snprintf(config, sizeof config,
                   "tls { cert_file: \"%s/server.pem\", key_file: \"%s/server.key\", ca_file: \"%s/ca.pem\", "
                   "verify: true }",
                   dir, dir, dir);
    CU_ASSERT_FATAL(start_configured(&server, program, config));
    put_text(url, "tls://localhost:%u", server.port);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CU_ASSERT_EQUAL(try_tls(url, dir, rows[i].ca, rows[i].cert, rows[i].key, &err), rows[i].want);
        CHECK_STR(rows[i].text, strstr(err.text, rows[i].text) != NULL ? "named" : err.text, "named");
    }
    server_stop(&server);
    server_dir_remove(server.dir);
    server_dir_remove(dir);
}

/* A client that asks for TLS in any way sends nothing to a server that has none. */
static void test_never_in_plain_text(void)
{
    static const struct {
        const char *scheme, *ca;
        thole_status want;
        const char *text;
    } rows[] = {
        {"nats://", NULL, THOLE_OK, ""},
        {"", NULL, THOLE_OK, ""},
        {"tls://", NULL, THOLE_DENIED, "--nats-ca"},
        {"TLS://", NULL, THOLE_DENIED, "--nats-ca"},
        {"nats://", "/etc/ssl/certs/ca-certificates.crt", THOLE_DENIED, "--nats-ca"},
        {"tsl://", NULL, THOLE_INVALID, "neither nats:// nor tls://"},
        {"https://", NULL, THOLE_INVALID, "neither nats:// nor tls://"},
    };
    struct server server;
    char program[1024], url[TEXT_BYTES];
    thole_error err = {0};
    CHECK_OK(server_find_nats(program, sizeof program, &err), &err);
    CU_ASSERT_FATAL(start_configured(&server, program, ""));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct connection *connection = NULL;
        put_text(url, "%s127.0.0.1:%u", rows[i].scheme, server.port);
        struct connection_options const options = {.url = url,
                                                   .ca = rows[i].ca,
                                                   .name = "test",
                                                   .connect_timeout_ms = 1000,
                                                   .request_timeout_ms = 1000};
        err.text[0] = '\0';
        CU_ASSERT_EQUAL(connection_open(&options, &connection, &err), rows[i].want);
        CHECK_STR(rows[i].scheme, strstr(err.text, rows[i].text) != NULL ? "named" : err.text, "named");
        connection_close(connection);
    }
    server_stop(&server);
    server_dir_remove(server.dir);
}

static thole_status try_name(const char *url, const char *ca, const char *name, thole_error *err)
{
    struct connection *connection = NULL;
    struct connection_options const options = {.url = url,
                                               .ca = ca,
                                               .server_name = name,
                                               .name = "test",
                                               .connect_timeout_ms = 1000,
                                               .request_timeout_ms = 1000};
    err->text[0] = '\0';
    thole_status const status = connection_open(&options, &connection, err);
    connection_close(connection);
    return status;
}

/* A server that is reached under another name than its certificate's: as through a tunnel, or by an address.
 */
static void test_server_name(void)
{
    static char long_name[256];
    static const struct {
        const char *host, *name;
        thole_status want;
        const char *text;
    } rows[] = {
        {"127.0.0.1", NULL, THOLE_DENIED, "--nats-server-name"},
        {"127.0.0.1", "nats.example", THOLE_OK, ""},
        {"127.0.0.1", "NATS.example", THOLE_OK, ""},
        {"127.0.0.1", "n1.pool.example", THOLE_OK, ""}, /* *.pool.example is in the certificate */
        {"127.0.0.1", "192.0.2.7", THOLE_OK, ""},
        {"127.0.0.1", "other.example", THOLE_DENIED, "--nats-server-name"},
        {"127.0.0.1", "example", THOLE_DENIED, "--nats-server-name"},
        {"127.0.0.1", "192.0.2.8", THOLE_DENIED, "--nats-server-name"},
        {"localhost", NULL, THOLE_OK, ""},
        {"localhost", "other.example", THOLE_DENIED, "--nats-server-name"}, /* in place of the URL's */
        {"127.0.0.1", "", THOLE_INVALID, "must be a host name"},
        {"127.0.0.1", ".example", THOLE_INVALID, "must be a host name"},
        {"127.0.0.1", "*.pool.example", THOLE_INVALID, "must be a host name"},
        {"127.0.0.1", long_name, THOLE_INVALID, "must be a host name"},
    };
    struct server server;
    char dir[SERVER_PATH_BYTES], command[4 * TEXT_BYTES], config[TEXT_BYTES], program[1024], url[TEXT_BYTES],
        ca[TEXT_BYTES];
    thole_error err = {0};
    memset(long_name, 'a', sizeof long_name - 2); /* 254 */
    CHECK_OK(server_find_nats(program, sizeof program, &err), &err);
    CHECK_OK(server_dir_create("thole-tls", dir, &err), &err);
    (void)snprintf(command, sizeof command,
                   "cd %s && openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 "
                   "-subj /CN=other.example -addext subjectAltName=DNS:localhost,DNS:nats.example,"
                   "DNS:*.pool.example,IP:192.0.2.7 >log 2>&1",
                   dir);
    if (system(command) != 0) {
        fprintf(stderr, "(no openssl: no certificate was tried) ");
        server_dir_remove(dir);
        return;
    }
    put_text(config, "tls { cert_file: \"%s/cert.pem\", key_file: \"%s/key.pem\" }", dir, dir);
    put_text(ca, "%s/cert.pem", dir);
    CU_ASSERT_FATAL(start_configured(&server, program, config));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        put_text(url, "tls://%s:%u", rows[i].host, server.port);
        CU_ASSERT_EQUAL(try_name(url, ca, rows[i].name, &err), rows[i].want);
        CHECK_STR(rows[i].name == NULL ? rows[i].host : rows[i].name,
                  strstr(err.text, rows[i].text) != NULL ? "named" : err.text, "named");
    }
    server_stop(&server);
    server_dir_remove(server.dir);
    server_dir_remove(dir);
}

/* nats.c alone would connect to a tls:// URL in plain text, and take a certificate for any host. */
static void test_tls(void)
{
    struct server server;
    char dir[SERVER_PATH_BYTES], command[2 * TEXT_BYTES], config[TEXT_BYTES], program[1024];
    char by_name[TEXT_BYTES], by_number[TEXT_BYTES], plain[TEXT_BYTES];
    thole_error err = {0};
    put_text(plain, "tls://127.0.0.1:%u", fixture_server.port);
    CU_ASSERT_EQUAL(try_open(plain, NULL, &err), THOLE_DENIED);
    CHECK_OK(server_find_nats(program, sizeof program, &err), &err);
    CHECK_OK(server_dir_create("thole-tls", dir, &err), &err);
    snprintf(command, sizeof command,
             "cd %s && openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj "
             "/CN=localhost -addext subjectAltName=DNS:localhost >log 2>&1",
             dir);
    if (system(command) != 0) {
        fprintf(stderr, "(no openssl: no certificate was tried) ");
        server_dir_remove(dir);
        return;
    }
    put_text(config, "tls { cert_file: \"%s/cert.pem\", key_file: \"%s/key.pem\" }", dir, dir);
    CU_ASSERT(start_configured(&server, program, config));
    put_text(by_name, "tls://localhost:%u", server.port);
    put_text(by_number, "tls://127.0.0.1:%u", server.port);
    put_text(plain, "nats://localhost:%u", server.port);
    CU_ASSERT_EQUAL(try_open(by_name, NULL, &err), THOLE_DENIED); /* nobody trusts it */
    put_text(config, "%s/cert.pem", dir);
    setenv("SSL_CERT_FILE", config, 1);
    CHECK_OK(try_open(by_name, NULL, &err), &err);
    CHECK_OK(try_open(plain, NULL, &err), &err);                    /* the server asks for it */
    CU_ASSERT_EQUAL(try_open(by_number, NULL, &err), THOLE_DENIED); /* another host's certificate */
    unsetenv("SSL_CERT_FILE");
    server_stop(&server);
    server_dir_remove(server.dir);
    server_dir_remove(dir);
}

static const struct thole_test tests[] = {
    {"credentials and permissions", test_credentials_and_permissions},
    {"a credentials file", test_credentials_file},
    {"login files", test_login_files},
    {"a credentials file that is none", test_credentials_file_that_is_none},
    {"TLS", test_tls},
    {"an own authority", test_own_authority},
    {"never in plain text", test_never_in_plain_text},
    {"a server's other name", test_server_name},
};
FIXTURE_MAIN("logins", tests)
