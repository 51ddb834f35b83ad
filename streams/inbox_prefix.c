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

/* Names and roles are short: it fits. */
static size_t add_name(char *to, size_t len, const char *name)
{
    to[len++] = '_';
    for (; *name != '\0'; name++) {
        assert(len + 2 <= INBOX_PREFIX_BYTES_MAX);
        to[len++] = *name;
        if (*name == '_')
            to[len++] = '_';
    }
    to[len] = '\0';
    return len;
}

void inbox_prefix_of(const struct inbox_owner *owner, char ret[INBOX_PREFIX_BYTES_MAX + 1])
{
    static_assert(sizeof root + 2 * (1 + 2 * THOLE_NAME_BYTES_MAX) + sizeof "_remote-worker" <=
                      INBOX_PREFIX_BYTES_MAX,
                  "a namespace, a role and a queue fit");
    size_t len = sizeof root - 1;
    memcpy(ret, root, sizeof root);
    len = add_name(ret, len, owner->ns);
    len = add_name(ret, len, owner->role);
    if (owner->queue != NULL)
        (void)add_name(ret, len, owner->queue);
}

const char *inbox_prefix_or_own(const char *chosen, const struct inbox_owner *owner,
                                char room[INBOX_PREFIX_BYTES_MAX + 1])
{
    if (chosen != NULL)
        return chosen;
    inbox_prefix_of(owner, room);
    return room;
}
