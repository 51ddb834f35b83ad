#include "inbox_prefix.h"
#include "subject.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static const char root[] = "_INBOX";

thole_status inbox_prefix_check(const char *prefix, thole_error *reterr)
{
    char below[INBOX_PREFIX_BYTES_MAX + 3];
    size_t const len = strnlen(prefix, INBOX_PREFIX_BYTES_MAX + 1);
    if (len > INBOX_PREFIX_BYTES_MAX)
        return thole_fail(reterr, THOLE_INVALID, "the inbox prefix is longer than %d bytes",
                          INBOX_PREFIX_BYTES_MAX);
    if (strncmp(prefix, root, strlen(root)) != 0)
        return thole_fail(reterr, THOLE_INVALID,
                          "the inbox prefix must begin with %s, because engines and workers answer nowhere "
                          "else; for example %s_orders",
                          root, root);
    (void)snprintf(below, sizeof below, "%s.x", prefix);
    if (!subject_is_reply(thole_slice_from(below)))
        return thole_fail(reterr, THOLE_INVALID,
                          "the inbox prefix is no subject: printable ASCII without blanks, * and >, no dot "
                          "at its end and no two in a row; for example %s_orders",
                          root);
    return THOLE_OK;
}

thole_status inbox_of_connection(const char *prefix, char ret[INBOX_OF_CONNECTION_BYTES], thole_error *reterr)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    static_assert(sizeof letters == 64 + 1, "six bits of each random byte choose one");
    uint8_t random[INBOX_CONNECTION_BYTES];
    char name[INBOX_CONNECTION_BYTES + 1];
    assert(strlen(prefix) <= INBOX_PREFIX_BYTES_MAX);
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no random bytes: %s", strerror(errno));
    for (size_t i = 0; i < sizeof random; i++)
        name[i] = letters[random[i] & 63];
    name[sizeof random] = '\0';
    (void)snprintf(ret, INBOX_OF_CONNECTION_BYTES, "%s.%s", prefix, name);
    return THOLE_OK;
}
