/* NATS URLs as users write them; and that no message repeats user and password, whatever NATS URL or Postgres
 * connection string they stand in. */
#include "connection.h"
#include "nats_url.h"
#include "postgres.h"
#include "thole_cunit.h"
#include <stdlib.h>

static void test_addresses(void)
{
    static const struct {
        const char *url, *address; /* NULL: malformed */
    } rows[] = {
        {"nats://localhost:4222", "localhost:4222"},
        {"nats://localhost", "localhost:4222"},
        {"localhost", "localhost:4222"},
        {"nats_1.cluster-2:1", "nats_1.cluster-2:1"},
        {"tls://u:p@nats.example.org:4223", "nats.example.org:4223"},
        {"nats://token@h", "h:4222"},
        {"nats://u:p@[::1]:4222", "[::1]:4222"},
        {"nats://[fe80::1%eth0]", "[fe80::1%eth0]:4222"},
        {"nats://h:4222/", "h:4222"},
        {"nats://h/path", "h:4222"},
        {"usr:HUNT/ER2@h:1", "h:1"},
        {"nats://usr:a@b:c/d@h:1", "h:1"},
        {"nats://h:65535", "h:65535"},
        {"nats://h:65536", NULL},
        {"nats://h:0", NULL},
        {"nats://h:", NULL},
        {"nats://h:4222x", NULL},
        {"nats://h:-1", NULL},
        {"nats://usr:secret", NULL},
        {"nats://u:p@", NULL},
        {"nats://", NULL},
        {"", NULL},
        {"nats://[]:4222", NULL},
        {"nats://[::1:4222", NULL},
        {"nats://[::1]4222", NULL},
        {"nats://h\x01:1", NULL},
        {"nats://h\xc3\xa4:1", NULL},
        {"http//h", "http:4222"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char address[NATS_ADDRESS_BYTES] = "none";
        bool const good = nats_url_address(rows[i].url, address);
        CHECK_STR(rows[i].url, good ? address : "malformed",
                  rows[i].address == NULL ? "malformed" : rows[i].address);
    }
}

static void test_longest_address(void)
{
    char url[NATS_ADDRESS_BYTES + 16], address[NATS_ADDRESS_BYTES];
    memset(url, 'h', sizeof url);
    url[NATS_ADDRESS_BYTES - sizeof ":4222"] = 0;
    CU_ASSERT_TRUE(nats_url_address(url, address));
    CU_ASSERT_EQUAL(strlen(address), NATS_ADDRESS_BYTES - 1);
    url[strlen(url)] = 'h';
    url[NATS_ADDRESS_BYTES - sizeof ":4222" + 1] = 0;
    CU_ASSERT_FALSE(nats_url_address(url, address));
}

static void test_schemes(void)
{
    static const struct {
        const char *url;
        enum nats_scheme scheme;
    } rows[] = {{"h", NATS_SCHEME_NATS},          {"nats://h", NATS_SCHEME_NATS},
                {"NATS://h", NATS_SCHEME_NATS},   {"tls://h", NATS_SCHEME_TLS},
                {"TLS://h", NATS_SCHEME_TLS},     {"Tls://u:p@h", NATS_SCHEME_TLS},
                {"tsl://h", NATS_SCHEME_UNKNOWN}, {"https://h", NATS_SCHEME_UNKNOWN},
                {"://h", NATS_SCHEME_UNKNOWN},    {"tls1://h", NATS_SCHEME_UNKNOWN}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_STR(rows[i].url, nats_url_scheme(rows[i].url) == rows[i].scheme ? "" : "another", "");
}

static void test_lists(void)
{
    static const struct {
        const char *text, *urls; /* NULL: refused */
    } rows[] = {
        {"nats://a:1, nats://b:2,c", "nats://a:1|nats://b:2|c|"},
        {" \ta\r\n", "a|"},
        {",a,,", "a|"},
        {"nats://u:p@a,b", "nats://u:p@a|b|"},
        {"nats://u:p@a,tls://u:p@b", "nats://u:p@a|tls://u:p@b|"},
        {"u:p@a", NULL}, /* and each that was to be tls:// */
        {"tls:/u:p@a", NULL},
        {"tls//u:p@a", NULL},
        {"tls;//u:p@a", NULL},
        {"tls:u:p@a", NULL},
        {"//u:p@a", NULL},
        {"nats://a,token@b", NULL},
        {"TLS://u:p@a", "TLS://u:p@a|"},
        {"tsl://u:p@a", NULL},
        {"nats://a,https://b", NULL},
        {"u:a://b@h", NULL},
        {"nats://u:12,34@a", NULL}, /* a password with a comma */
        {"u:12,34@a", NULL},
        {"nats://u:12 34@a", NULL},
        {"a,nats://usr:secret", NULL},
        {"", NULL},
        {" , ", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[64], said[128] = "", *urls[NATS_URLS_MAX];
        size_t n = 99;
        thole_error err = {0};
        (void)snprintf(text, sizeof text, "%s", rows[i].text);
        thole_status const status = nats_urls_split(text, urls, &n, &err);
        for (size_t k = 0; status == THOLE_OK && k < n; k++)
            (void)snprintf(said + strlen(said), sizeof said - strlen(said), "%s|", urls[k]);
        CHECK_STR(rows[i].text, status == THOLE_OK ? said : "refused",
                  rows[i].urls == NULL ? "refused" : rows[i].urls);
        CU_ASSERT(status == THOLE_OK || (status == THOLE_INVALID && err.text[0] != 0));
    }
}

static void test_how_many(void)
{
    char text[2 * NATS_URLS_MAX + 8], *urls[NATS_URLS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < NATS_URLS_MAX; i++)
        memcpy(text + 2 * i, "h,", 3);
    CU_ASSERT_EQUAL(nats_urls_split(text, urls, &n, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(n, NATS_URLS_MAX);
    for (size_t i = 0; i <= NATS_URLS_MAX; i++)
        memcpy(text + 2 * i, "h,", 3);
    CU_ASSERT_EQUAL(nats_urls_split(text, urls, &n, NULL), THOLE_INVALID);
}

/* ---- secrets ---- */

enum { MARK_BYTES = 4, TEXTS = 4000 };

static uint64_t state = 88172645463325252;

static size_t below(size_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % n);
}

/* Marks "QXZJ" or, where only digits would not be noticed as malformed, "7391", and between them what breaks
 * parsers. */
static void make_secret(char *ret, size_t size)
{
    static const char *const between[] = {"/", "@", ":", "%",  "%zz",  "%40", "?",  "#",
                                          " ", ",", "'", "\"", "[",    "]",   "\\", "://",
                                          "=", "&", "~", "\t", "\xc3", "+",   ";",  ""};
    const char *const mark = below(2) == 0 ? "QXZJ" : "7391";
    size_t len = 0;
    for (size_t n = 1 + below(4); n > 0; n--)
        len += (size_t)snprintf(ret + len, size - len, "%s%s", mark, between[below(ARRAY_LEN(between))]);
}

static bool shows(const char *text)
{
    return strstr(text, "QXZJ") != NULL || strstr(text, "7391") != NULL;
}

/* Each $ of @p form is @p secret. */
static void put_in(char *ret, size_t size, const char *form, const char *secret)
{
    size_t len = 0;
    for (; *form != 0; form++)
        len += (size_t)(*form == '$' ? snprintf(ret + len, size - len, "%s", secret)
                                     : snprintf(ret + len, size - len, "%c", *form));
}

static void test_no_message_shows_a_secret(void)
{
    static const char *const nats[] = {"nats://usr:$@127.0.0.1:1", "usr:$@127.0.0.1:1",
                                       "nats://$@127.0.0.1:1", "tls://$:$@127.0.0.1:1,127.0.0.1:1",
                                       "nats://127.0.0.1:1,nats://usr:$@127.0.0.1:1"};
    static const char *const sql[] = {"postgres://usr:$@127.0.0.1:1/db", "postgresql://usr:$@127.0.0.1:1",
                                      "postgres://usr:$@127.0.0.1:1/db?connect_timeout=1",
                                      "host=127.0.0.1 port=1 user=usr password=$",
                                      "host=127.0.0.1 port=1 user=usr password='$'"};
    size_t refused = 0;
    for (size_t i = 0; i < TEXTS; i++) {
        char secret[64], text[256];
        thole_error err = {0};
        struct connection *connection = NULL;
        struct postgres *pg = NULL;
        make_secret(secret, sizeof secret);
        bool const to_nats = i % 2 == 0;
        put_in(text, sizeof text, to_nats ? nats[below(ARRAY_LEN(nats))] : sql[below(ARRAY_LEN(sql))],
               secret);
        thole_status const status =
            to_nats ? connection_open(&(struct connection_options){.url = text, .connect_timeout_ms = 1000},
                                      &connection, &err)
                    : postgres_open(&(struct postgres_options){.conninfo = text, .ns = "secret"}, &pg, &err);
        CU_ASSERT_NOT_EQUAL(status, THOLE_OK); /* nobody listens at port 1 */
        if (shows(err.text) || err.text[0] == 0)
            CHECK_STR(text, err.text, "a message that does not show the secret");
        refused += status == THOLE_INVALID;
    }
    CU_ASSERT(refused > TEXTS / 20 && refused < TEXTS * 19 / 20); /* both ways are taken */
}

static const struct thole_test tests[] = {
    {"addresses", test_addresses}, {"longest_address", test_longest_address},
    {"schemes", test_schemes},     {"lists", test_lists},
    {"how_many", test_how_many},   {"no_message_shows_a_secret", test_no_message_shows_a_secret},
};
THOLE_TEST_MAIN("NATS URLs and secrets", tests)
