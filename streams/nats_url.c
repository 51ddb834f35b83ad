#include "nats_url.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DIGITS "0123456789"
/* Of host names; an underscore is in names of containers. */
#define NAMES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS ".-_"
#define IPV6 NAMES ":%" /* with a zone, which is a name */

enum nats_scheme nats_url_scheme(const char *url)
{
    const char *const end = strstr(url, "://");
    size_t const len = end == NULL ? 0 : (size_t)(end - url);
    if (end == NULL || (len == 4 && strncasecmp(url, "nats", len) == 0))
        return NATS_SCHEME_NATS;
    return len == 3 && strncasecmp(url, "tls", len) == 0 ? NATS_SCHEME_TLS : NATS_SCHEME_UNKNOWN;
}

static const char *after_scheme(const char *url)
{
    const char *const at = strstr(url, "://");
    return at == NULL ? url : at + 3;
}

/* How many bytes of @p host are the host, brackets included; 0: it is none. */
static size_t host_len(const char *host, size_t len)
{
    if (host[0] != '[') {
        size_t const name = strspn(host, NAMES);
        return name < len ? name : len;
    }
    size_t const inside = strspn(host + 1, IPV6);
    return inside > 0 && inside + 2 <= len && host[1 + inside] == ']' ? inside + 2 : 0;
}

static bool is_port(const char *text, size_t len)
{
    char *end;
    unsigned long const port = strspn(text, DIGITS) == 0 ? 0 : strtoul(text, &end, 10);
    return port >= 1 && port <= 65535 && end == text + len;
}

bool nats_url_address(const char *url, char ret[NATS_ADDRESS_BYTES])
{
    const char *host = after_scheme(url);
    const char *const user_end = strrchr(host, '@'); /* a password may contain @ and / */
    if (user_end != NULL)
        host = user_end + 1;
    size_t const len = strcspn(host, "/"), name = host_len(host, len);
    bool const has_port = name < len;
    if (name == 0 || len + sizeof ":4222" > NATS_ADDRESS_BYTES ||
        (has_port && (host[name] != ':' || !is_port(host + name + 1, len - name - 1))))
        return false;
    (void)snprintf(ret, NATS_ADDRESS_BYTES, "%.*s%s", (int)len, host, has_port ? "" : ":4222");
    return true;
}

bool nats_urls_have_secret(const char *urls)
{
    return strchr(urls, '@') != NULL;
}

static thole_status nats_url_malformed(thole_error *reterr)
{
    return thole_fail(
        reterr, THOLE_INVALID,
        "a NATS URL is malformed (none is shown, as they may hold passwords); expected "
        "nats://user:password@host:port, several separated by commas; in user and password write a "
        "comma as %%2C and a blank as %%20");
}

/* Of a mistyped scheme only the typist knows that it was to be tls://: what has a password is not sent to a
 * host that was found by a guess. It is also the second part of a password with a comma in it. */
static bool lacks_scheme(const char *url)
{
    return strchr(url, '@') != NULL && strstr(url, "://") == NULL;
}

thole_status nats_urls_measure(const char *text, size_t *ret_len, thole_error *reterr)
{
    *ret_len = text == NULL ? 0 : strnlen(text, NATS_URLS_BYTES_MAX);
    return *ret_len > 0 && *ret_len < NATS_URLS_BYTES_MAX
               ? THOLE_OK
               : thole_fail(reterr, THOLE_INVALID, "the NATS URL is empty or longer than %d bytes",
                            NATS_URLS_BYTES_MAX - 1);
}

thole_status nats_urls_split(char *text, char *ret[NATS_URLS_MAX], size_t *ret_len, thole_error *reterr)
{
    *ret_len = 0;
    for (char *rest = text; rest != NULL;) {
        char *url = strsep(&rest, ","), address[NATS_ADDRESS_BYTES];
        url += strspn(url, " \t\r\n");
        size_t const len = strcspn(url, " \t\r\n");
        if (len == 0)
            continue;
        if (url[len + strspn(url + len, " \t\r\n")] != 0) /* a blank inside */
            return nats_url_malformed(reterr);
        url[len] = 0;
        if (lacks_scheme(url) || nats_url_scheme(url) == NATS_SCHEME_UNKNOWN)
            return thole_fail(reterr, THOLE_INVALID,
                              "a NATS URL begins with neither nats:// nor tls:// (none is shown, as they may "
                              "hold passwords); one with a user or a password needs it, and in those write "
                              ":// as %%3A%%2F%%2F and a comma as %%2C");
        if (!nats_url_address(url, address))
            return nats_url_malformed(reterr);
        if (*ret_len == NATS_URLS_MAX)
            return thole_fail(reterr, THOLE_INVALID, "more than %d NATS URLs", NATS_URLS_MAX);
        ret[(*ret_len)++] = url;
    }
    return *ret_len > 0 ? THOLE_OK : thole_fail(reterr, THOLE_INVALID, "the NATS URL is empty");
}
