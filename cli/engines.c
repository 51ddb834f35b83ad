#include "engines.h"
#include "values.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 1000, VERSIONED_BYTES = THOLE_NAME_BYTES_MAX + 16 };

struct asking {
    thole_slice wanted;
    uint32_t version;
    size_t engines, names_len;
    bool found;
    char names[NAMES_MAX][THOLE_NAME_BYTES_MAX + 1]; /* without versions */
};

/* "name" is version 1. */
static bool is_meant(const struct asking *asking, thole_slice name, thole_slice known)
{
    char versioned[VERSIONED_BYTES];
    if (!thole_slice_equal(name, asking->wanted))
        return false;
    if (asking->version == 0)
        return true;
    if (asking->version == 1)
        return known.len == name.len;
    (void)snprintf(versioned, sizeof versioned, "%.*s@%" PRIu32, THOLE_FMT(name), asking->version);
    return thole_slice_equal(known, thole_slice_from(versioned));
}

static thole_status on_engine(void *arg, const thole_engine_info *info)
{
    struct asking *asking = arg;
    asking->engines++;
    for (size_t i = 0; i < info->orchestrations_len; i++) {
        thole_slice const known = info->orchestrations[i];
        const uint8_t *at = memchr(known.ptr, '@', known.len);
        thole_slice const name = {known.ptr, at == NULL ? known.len : (size_t)(at - known.ptr)};
        asking->found |= is_meant(asking, name, known);
        if (asking->names_len < NAMES_MAX && name.len <= THOLE_NAME_BYTES_MAX)
            (void)snprintf(asking->names[asking->names_len++], THOLE_NAME_BYTES_MAX + 1, "%.*s",
                           THOLE_FMT(name));
    }
    return THOLE_OK;
}

static void nearest(const struct asking *asking, char ret[THOLE_NAME_BYTES_MAX + 1])
{
    static const char *names[NAMES_MAX];
    char wanted[THOLE_NAME_BYTES_MAX + 1];
    for (size_t i = 0; i < asking->names_len; i++)
        names[i] = asking->names[i];
    (void)snprintf(wanted, sizeof wanted, "%.*s", THOLE_FMT(asking->wanted));
    const char *near = word_suggest(wanted, names, asking->names_len);
    (void)snprintf(ret, THOLE_NAME_BYTES_MAX + 1, "%s",
                   near == NULL || strcmp(near, wanted) == 0 ? "" : near);
}

thole_status engines_know(thole_client *client, thole_slice orchestration, uint32_t version, enum known *ret,
                          char ret_near[THOLE_NAME_BYTES_MAX + 1], thole_error *reterr)
{
    static struct asking asking; /* large; the command has one thread */
    memset(&asking, 0, sizeof asking);
    asking.wanted = orchestration;
    asking.version = version;
    ret_near[0] = '\0';
    THOLE_TRY(thole_client_engines(client, on_engine, &asking, reterr));
    *ret = asking.found ? KNOWN_YES : asking.engines == 0 ? KNOWN_NO_ENGINE : KNOWN_NO;
    if (*ret == KNOWN_NO)
        nearest(&asking, ret_near);
    return THOLE_OK;
}
