#include "client_known.h"
#include "client_internal.h"
#include "memory.h"
#include "values.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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
static bool client_known_is_meant(const struct asking *asking, thole_slice name, thole_slice known)
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

static thole_status client_known_on_engine(void *arg, const thole_engine_info *info)
{
    struct asking *asking = arg;
    asking->engines++;
    for (size_t i = 0; i < info->orchestrations_len; i++) {
        thole_slice const known = info->orchestrations[i];
        const uint8_t *at = memchr(known.ptr, '@', known.len);
        thole_slice const name = {known.ptr, at == NULL ? known.len : (size_t)(at - known.ptr)};
        asking->found |= client_known_is_meant(asking, name, known);
        if (asking->names_len < NAMES_MAX && name.len <= THOLE_NAME_BYTES_MAX)
            (void)snprintf(asking->names[asking->names_len++], THOLE_NAME_BYTES_MAX + 1, "%.*s",
                           THOLE_FMT(name));
    }
    return THOLE_OK;
}

static void client_known_nearest(const struct asking *asking, char ret[THOLE_NAME_BYTES_MAX + 1])
{
    const char **const names = memory_array(NAMES_MAX, sizeof *names);
    char wanted[THOLE_NAME_BYTES_MAX + 1];
    for (size_t i = 0; i < asking->names_len; i++)
        names[i] = asking->names[i];
    (void)snprintf(wanted, sizeof wanted, "%.*s", THOLE_FMT(asking->wanted));
    const char *near = word_suggest(wanted, names, asking->names_len);
    (void)snprintf(ret, THOLE_NAME_BYTES_MAX + 1, "%s",
                   near == NULL || strcmp(near, wanted) == 0 ? "" : near);
    free(names);
}

thole_status client_engines_know(thole_client *client, thole_slice orchestration, uint32_t version,
                                 enum known *ret, char ret_near[THOLE_NAME_BYTES_MAX + 1],
                                 thole_error *reterr)
{
    struct asking *const asking = memory_new(sizeof *asking); /* too large for the stack of a fiber */
    asking->wanted = orchestration;
    asking->version = version;
    ret_near[0] = '\0';
    thole_status const status = thole_client_engines(client, client_known_on_engine, asking, reterr);
    *ret = asking->found ? KNOWN_YES : asking->engines == 0 ? KNOWN_NO_ENGINE : KNOWN_NO;
    if (status == THOLE_OK && *ret == KNOWN_NO)
        client_known_nearest(asking, ret_near);
    free(asking);
    return status;
}

void client_unknown_text(thole_slice orchestration, uint32_t version, const char *ns, enum known known,
                         const char *near, thole_error *ret)
{
    char at[16] = "";
    if (version != 0)
        (void)snprintf(at, sizeof at, "@%" PRIu32, version);
    ret->status = THOLE_NOT_FOUND;
    if (known == KNOWN_NO_ENGINE)
        (void)snprintf(ret->text, sizeof ret->text, "no engine has a heartbeat in namespace %s", ns);
    else
        (void)snprintf(ret->text, sizeof ret->text,
                       "no engine of namespace %s knows orchestration %.*s%s%s%s%s", ns,
                       THOLE_FMT(orchestration), at, near[0] == '\0' ? "" : "; did you mean ", near,
                       near[0] == '\0' ? "" : "?");
}

thole_status client_require_known(thole_client *client, thole_slice orchestration, uint32_t version,
                                  thole_error *reterr)
{
    enum known known;
    char near[THOLE_NAME_BYTES_MAX + 1];
    thole_error unknown;
    THOLE_TRY(client_engines_know(client, orchestration, version, &known, near, reterr));
    if (known == KNOWN_YES)
        return THOLE_OK;
    client_unknown_text(orchestration, version, client->ns, known, near, &unknown);
    return thole_fail(reterr, THOLE_NOT_FOUND, "%s; nothing was started", unknown.text);
}
