/* Access to reading and acting in the web console: decisions from headers and addresses, one row for each. */
#include "access.h"
#include "listen_address.h"
#include "thole_cunit.h"
#include <arpa/inet.h>
#include <netinet/in.h>

#define TOKEN "0123456789abcdef"

static const struct sockaddr *peer(const char *text)
{
    static struct sockaddr_storage address;
    struct sockaddr_in *const v4 = (void *)&address;
    struct sockaddr_in6 *const v6 = (void *)&address;
    memset(&address, 0, sizeof address);
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1)
        v4->sin_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1)
        v6->sin6_family = AF_INET6;
    return (const struct sockaddr *)&address;
}

static struct console_options options(const char *address)
{
    struct console_options made = {.token = NULL};
    CU_ASSERT_EQUAL(listen_address_parse(address, &made.address, NULL), THOLE_OK);
    return made;
}

static void check_made(struct console_options made, thole_status want, const char *text)
{
    struct access_rules rules;
    thole_error err = {.text = ""};
    CU_ASSERT_EQUAL(access_rules_make(&made, &rules, &err), want);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, text));
    if (want == THOLE_OK) {
        CU_ASSERT_EQUAL(strlen(rules.csrf), 32);
        CU_ASSERT_STRING_NOT_EQUAL(rules.csrf, rules.cookie);
    }
}

static void test_options(void)
{
    struct console_options o = options("8233");
    check_made(o, THOLE_OK, "");
    o = options("0.0.0.0:8233");
    check_made(o, THOLE_INVALID, "give --token-file, or --identity-header");
    o.allow_actions = true;
    check_made(o, THOLE_INVALID, "give --token-file, or --identity-header");
    o.token = TOKEN;
    check_made(o, THOLE_OK, "");
    o.token = "short";
    check_made(o, THOLE_INVALID, "the token has 5 characters");
    o.token = NULL;
    o.identity_header = "X-User";
    check_made(o, THOLE_INVALID, "belong together");
    o.trusted_proxy = "proxy.example";
    check_made(o, THOLE_INVALID, "no IP address");
    o.trusted_proxy = "10.0.0.1";
    check_made(o, THOLE_OK, "");
    o.identity_header = NULL;
    check_made(o, THOLE_INVALID, "belong together");
    check_made(options("[::1]:1"), THOLE_OK, "");
    check_made(options("127.9.9.9:1"), THOLE_OK, "");
    check_made(options("[::]:1"), THOLE_INVALID, "everybody there could read");
}

static struct access_rules rules;
static struct console_options kept;

static void begin(struct console_options made)
{
    kept = made;
    CU_ASSERT_EQUAL(access_rules_make(&kept, &rules, NULL), THOLE_OK);
    memset(rules.csrf, 'c', 32);
    memset(rules.cookie, 'k', 32);
}

#define CSRF "cccccccccccccccccccccccccccccccc"
#define COOKIE "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"

typedef bool decide_fn(const struct access_rules *of, const struct access_facts *facts,
                       struct access_refusal *ret);

static void check(const char *row, decide_fn *decide, struct access_facts facts, const char *want)
{
    struct access_refusal refusal = {.name = "?"};
    bool const may = decide(&rules, &facts, &refusal);
    CHECK_STR(row, may ? "yes" : refusal.name, want);
}

static void test_local(void)
{
    struct access_facts const good = {.host = "localhost:8233", .csrf = CSRF};
    struct access_facts f = good;
    begin(options("8233"));
    check("reads", access_read, good, "yes");
    check("only reads", access_act, good, "READ_ONLY");
    static const char *const hosts[] = {"127.0.0.1", "127.0.0.1:1", "LOCALHOST", "[::1]:8233"};
    static const char *const others[] = {"evil.example",           "localhost.evil.example",
                                         "127.0.0.1.evil.example", "localhost:8233x",
                                         "localhost@evil",         ""};
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
        check(hosts[i], access_read, (struct access_facts){.host = hosts[i]}, "yes");
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        check(others[i], access_read, (struct access_facts){.host = others[i]}, "HOST");
    check("no host", access_read, (struct access_facts){.host = NULL}, "HOST");
    struct console_options acts = options("8233");
    acts.allow_actions = true;
    begin(acts);
    check("acts", access_action, good, "yes");
    f.csrf = NULL;
    check("no secret", access_action, f, "CSRF");
    f.csrf = "cccccccccccccccccccccccccccccccC";
    check("another secret", access_action, f, "CSRF");
    f.csrf = CSRF "c";
    check("a longer secret", access_action, f, "CSRF");
    f = good;
    f.fetch_site = "same-origin";
    f.origin = "http://localhost:8233";
    check("a page of its own", access_action, f, "yes");
    f.origin = "http://localhost:8234";
    check("another port", access_action, f, "ORIGIN");
    f.origin = "null";
    check("no origin", access_action, f, "ORIGIN");
    f.origin = NULL;
    f.fetch_site = "same-site";
    check("the same site", access_action, f, "ORIGIN");
    f = good;
    f.host = "evil.example";
    check("another name", access_action, f, "HOST");
}

static void test_token(void)
{
    struct console_options o = options("0.0.0.0:8233");
    struct access_facts f = {.host = "console.example", .csrf = CSRF};
    o.token = TOKEN;
    begin(o);
    check("none", access_read, f, "TOKEN");
    f.authorization = "Bearer 0123456789abcdeF";
    check("another", access_read, f, "TOKEN");
    f.authorization = "Basic " TOKEN;
    check("another scheme", access_read, f, "TOKEN");
    f.authorization = "Bearer " TOKEN;
    check("reads", access_read, f, "yes");
    check("acts", access_action, f, "yes");
    f.csrf = NULL;
    check("without the page's secret", access_action, f, "CSRF");
    f.authorization = NULL;
    f.cookie = "a=b; thole_stream=" COOKIE "; c=d";
    check("a cookie is for the stream", access_stream, f, "yes");
    check("and for nothing else", access_read, f, "TOKEN");
    f.cookie = "thole_stream=" COOKIE "k";
    check("another cookie", access_stream, f, "TOKEN");
    o = options("8233");
    o.token = TOKEN;
    o.allow_actions = true;
    begin(o);
    f = (struct access_facts){.host = "localhost", .csrf = CSRF};
    check("here it reads", access_read, f, "yes");
    check("and does not act", access_action, f, "TOKEN");
}

static void test_proxy(void)
{
    struct console_options o = options("[::]:8233");
    o.identity_header = "X-User";
    o.trusted_proxy = "10.0.0.1";
    begin(o);
    struct access_facts f = {
        .peer = peer("10.0.0.1"), .host = "console.example", .csrf = CSRF, .identity = "ada"};
    check("by the proxy", access_action, f, "yes");
    f.peer = peer("::ffff:10.0.0.1");
    check("the same as IPv6", access_read, f, "yes");
    f.peer = peer("10.0.0.2");
    check("by another", access_read, f, "NOT_THE_PROXY");
    f.peer = NULL;
    check("from nowhere", access_read, f, "NOT_THE_PROXY");
    f.peer = peer("10.0.0.1");
    f.identity = "";
    check("nobody", access_read, f, "NO_IDENTITY");
    f.identity = NULL;
    check("nobody at all", access_stream, f, "NO_IDENTITY");
}

static const struct thole_test tests[] = {
    {"options", test_options},
    {"local", test_local},
    {"token", test_token},
    {"proxy", test_proxy},
};
THOLE_TEST_MAIN("console_access", tests)
