#include "access.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* ---- addresses ---- */

/* IPv4 as IPv6 has it. False: of another family. */
static bool address_bytes(const struct sockaddr *address, uint8_t ret[16])
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (address == NULL)
        return false;
    if (address->sa_family == AF_INET6) {
        memcpy(&v6, address, sizeof v6);
        memcpy(ret, &v6.sin6_addr, 16);
        return true;
    }
    if (address->sa_family != AF_INET)
        return false;
    memcpy(&v4, address, sizeof v4);
    memset(ret, 0, 10);
    memset(ret + 10, 0xff, 2);
    memcpy(ret + 12, &v4.sin_addr, 4);
    return true;
}

static bool text_bytes(const char *text, uint8_t ret[16])
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return address_bytes((const struct sockaddr *)&v4, ret);
    return inet_pton(AF_INET6, text, &v6.sin6_addr) == 1 && address_bytes((const struct sockaddr *)&v6, ret);
}

static bool is_loopback(const struct sockaddr *address)
{
    static const uint8_t v4[13] = {[10] = 0xff, [11] = 0xff, [12] = 127}, v6[16] = {[15] = 1};
    uint8_t bytes[16];
    return address_bytes(address, bytes) &&
           (memcmp(bytes, v4, sizeof v4) == 0 || memcmp(bytes, v6, sizeof v6) == 0);
}

static bool is_proxy(const struct access_rules *rules, const struct sockaddr *peer)
{
    uint8_t proxy[16], from[16];
    return text_bytes(rules->options->trusted_proxy, proxy) && address_bytes(peer, from) &&
           memcmp(proxy, from, sizeof proxy) == 0;
}

/* ---- secrets ---- */

static thole_status make_secret(char ret[ACCESS_SECRET_BYTES], thole_error *reterr)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t bytes[(ACCESS_SECRET_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "the system has no random numbers");
    for (size_t i = 0; i < sizeof bytes; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret[ACCESS_SECRET_BYTES - 1] = '\0';
    return THOLE_OK;
}

/* Takes as long for any text of that length, whatever it is. */
static bool is_secret(const char *said, const char *secret)
{
    size_t const len = strlen(secret);
    return said != NULL && strlen(said) == len && CRYPTO_memcmp(said, secret, len) == 0;
}

bool access_has_token(const struct access_rules *rules, const struct access_facts *facts)
{
    static const char scheme[] = "Bearer ";
    size_t const len = sizeof scheme - 1;
    return rules->options->token != NULL && facts->authorization != NULL &&
           strncasecmp(facts->authorization, scheme, len) == 0 &&
           is_secret(facts->authorization + len, rules->options->token);
}

static bool has_cookie(const struct access_rules *rules, const struct access_facts *facts)
{
    static const char name[] = "thole_stream=";
    const char *at = facts->cookie == NULL ? NULL : strstr(facts->cookie, name);
    char value[2 * ACCESS_SECRET_BYTES];
    if (at == NULL)
        return false;
    (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(at + sizeof name - 1, "; "),
                   at + sizeof name - 1);
    return is_secret(value, rules->cookie);
}

/* ---- rules ---- */

static thole_status access_check_options(const struct console_options *options, bool loopback,
                                         thole_error *reterr)
{
    uint8_t bytes[16];
    size_t const len = options->token == NULL ? CONSOLE_TOKEN_BYTES_MIN : strlen(options->token);
    if ((options->identity_header == NULL) != (options->trusted_proxy == NULL))
        return thole_fail(reterr, THOLE_INVALID,
                          "--identity-header and --trusted-proxy belong together: who reaches the console "
                          "without the proxy could write any name into the header");
    if (options->trusted_proxy != NULL && !text_bytes(options->trusted_proxy, bytes))
        return thole_fail(reterr, THOLE_INVALID, "--trusted-proxy: \"%.60s\" is no IP address",
                          options->trusted_proxy);
    if (len < CONSOLE_TOKEN_BYTES_MIN || len > CONSOLE_TOKEN_BYTES_MAX)
        return thole_fail(reterr, THOLE_INVALID, "the token has %zu characters; it must have %d to %d", len,
                          CONSOLE_TOKEN_BYTES_MIN, CONSOLE_TOKEN_BYTES_MAX);
    if (loopback || options->token != NULL || options->identity_header != NULL)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID,
                      "--http: on an address that other machines reach, everybody there could read all "
                      "histories: give --token-file, or --identity-header and --trusted-proxy");
}

thole_status access_rules_make(const struct console_options *options, struct access_rules *ret,
                               thole_error *reterr)
{
    *ret = (struct access_rules){.options = options,
                                 .loopback = is_loopback((const struct sockaddr *)&options->address)};
    THOLE_TRY(access_check_options(options, ret->loopback, reterr));
    THOLE_TRY(make_secret(ret->csrf, reterr));
    return make_secret(ret->cookie, reterr);
}

/* ---- decisions ---- */

static bool access_refuse(struct access_refusal *ret, unsigned code, const char *name, const char *text)
{
    ret->code = code;
    ret->name = name;
    (void)snprintf(ret->text, sizeof ret->text, "%s", text);
    return false;
}

/* "localhost", "127.0.0.1" or "[::1]", with any port: another name is that of a page which has the name of
 * its own server point here. */
static bool is_local_host(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; host != NULL && i < sizeof names / sizeof names[0]; i++) {
        size_t const len = strlen(names[i]);
        if (strncasecmp(host, names[i], len) == 0 &&
            (host[len] == '\0' ||
             (host[len] == ':' && strspn(host + len + 1, "0123456789") == strlen(host + len + 1))))
            return true;
    }
    return false;
}

/* From every user a request must come by the way that the options name. */
static bool came_rightly(const struct access_rules *rules, const struct access_facts *facts,
                         struct access_refusal *ret)
{
    if (rules->options->identity_header != NULL) {
        if (!is_proxy(rules, facts->peer))
            return access_refuse(
                ret, 403, "NOT_THE_PROXY",
                "this console only takes requests from the proxy that --trusted-proxy names");
        if (facts->identity == NULL || facts->identity[0] == '\0')
            return access_refuse(ret, 403, "NO_IDENTITY", "the proxy has not said who the user is");
        return true;
    }
    if (rules->loopback && !is_local_host(facts->host))
        return access_refuse(
            ret, 403, "HOST",
            "this console is called localhost or 127.0.0.1; a request for another name is refused, "
            "as it may come from a page of another site");
    return true;
}

bool access_read(const struct access_rules *rules, const struct access_facts *facts,
                 struct access_refusal *ret)
{
    if (!came_rightly(rules, facts, ret))
        return false;
    if (rules->loopback || rules->options->identity_header != NULL || access_has_token(rules, facts))
        return true;
    return access_refuse(ret, 401, "TOKEN", "this console needs its token: Authorization: Bearer TOKEN");
}

bool access_stream(const struct access_rules *rules, const struct access_facts *facts,
                   struct access_refusal *ret)
{
    return access_read(rules, facts, ret) || (ret->code == 401 && has_cookie(rules, facts));
}

bool access_act(const struct access_rules *rules, const struct access_facts *facts,
                struct access_refusal *ret)
{
    const struct console_options *const options = rules->options;
    if (!access_read(rules, facts, ret))
        return false;
    if (options->identity_header != NULL || access_has_token(rules, facts))
        return true;
    if (options->token != NULL)
        return access_refuse(ret, 401, "TOKEN", "actions need the console's token");
    if (options->allow_actions && rules->loopback)
        return true;
    return access_refuse(
        ret, 403, "READ_ONLY",
        "this console only reads: start it with --allow-actions, --token-file or --identity-header");
}

/* The origin is that of the page's own address. */
static bool is_own_origin(const struct access_facts *facts)
{
    const char *const host = facts->origin == NULL ? NULL : strstr(facts->origin, "://");
    return host != NULL && facts->host != NULL && strcasecmp(host + 3, facts->host) == 0;
}

bool access_action(const struct access_rules *rules, const struct access_facts *facts,
                   struct access_refusal *ret)
{
    if (!access_act(rules, facts, ret))
        return false;
    if (facts->fetch_site != NULL && strcmp(facts->fetch_site, "same-origin") != 0)
        return access_refuse(ret, 403, "ORIGIN", "an action must come from a page of this console");
    if (facts->origin != NULL && !is_own_origin(facts))
        return access_refuse(ret, 403, "ORIGIN", "an action must come from a page of this console");
    if (!is_secret(facts->csrf, rules->csrf))
        return access_refuse(
            ret, 403, "CSRF",
            "the header X-Thole-Csrf is missing or of another process: read /api/v1/session again");
    return true;
}
