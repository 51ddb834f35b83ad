#include "api_prefix.h"
#include <stdio.h>
#include <string.h>

thole_status api_prefix_check(const char *prefix, thole_error *reterr)
{
    if (prefix == NULL)
        return THOLE_OK;
    size_t const len = strnlen(prefix, API_PREFIX_BYTES_MAX + 1);
    bool token = false; /* one has begun */
    if (len == 0 || len > API_PREFIX_BYTES_MAX)
        return thole_fail(reterr, THOLE_INVALID, "the prefix of JetStream's subjects must have 1 to %d bytes",
                          API_PREFIX_BYTES_MAX);
    for (size_t i = 0; i < len; i++) {
        unsigned char const c = (unsigned char)prefix[i];
        if (c <= ' ' || c >= 0x7f || c == '*' || c == '>' || (c == '.' && !token))
            return thole_fail(reterr, THOLE_INVALID,
                              "the prefix of JetStream's subjects is no subject: printable ASCII without "
                              "blanks, * and >, no dot at an end and no two in a row; for example "
                              "JS.thole.API");
        token = c != '.';
    }
    return token ? THOLE_OK
                 : thole_fail(reterr, THOLE_INVALID, "the prefix of JetStream's subjects ends with a dot");
}

void api_prefix_copy(const char *prefix, char ret[API_PREFIX_BYTES_MAX + 1])
{
    (void)snprintf(ret, API_PREFIX_BYTES_MAX + 1, "%s", prefix == NULL ? API_PREFIX_DEFAULT : prefix);
}

const char *api_prefix_apply(const char *prefix, const char *subject, char room[API_SUBJECT_BYTES])
{
    static const char own[] = API_PREFIX_DEFAULT ".";
    if (strncmp(subject, own, sizeof own - 1) != 0 || strcmp(prefix, API_PREFIX_DEFAULT) == 0)
        return subject;
    int const n = snprintf(room, API_SUBJECT_BYTES, "%s.%s", prefix, subject + sizeof own - 1);
    return n > 0 && n < API_SUBJECT_BYTES ? room : subject;
}
