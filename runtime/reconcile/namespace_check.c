#include "namespace_check.h"
#include "memory.h"
#include "migrations.h"
#include "subject.h"
#include "text.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct namespace_check *namespace_check_create(const char *ns)
{
    struct namespace_check *const check = memory_new(sizeof *check);
    check->ns = ns;
    check->known = memory_array(PARTITIONS_MAX, sizeof *check->known);
    return check;
}

void namespace_check_destroy(struct namespace_check *check)
{
    if (check == NULL)
        return;
    free(check->known);
    free(check->logs);
    free(check);
}

thole_status namespace_check_rows(struct namespace_check *check, struct postgres *pg, thole_error *reterr)
{
    size_t applied = 0;
    THOLE_TRY(postgres_applied(pg, &applied, reterr));
    check->tables = applied > 0;
    if (!check->tables)
        return THOLE_OK;
    if (applied < migrations_len)
        return thole_fail(
            reterr, THOLE_UNSUPPORTED,
            "the tables of namespace %s are at migration %zu, this program knows %zu: first thole "
            "migrate",
            check->ns, applied, migrations_len);
    THOLE_TRY(namespace_store_read(pg, &check->rows, reterr));
    return namespace_store_logs(pg, check->known, PARTITIONS_MAX, reterr);
}

/* ---- NATS ---- */

static thole_status check_log(struct namespace_check *check, struct connection *connection, uint32_t p,
                              enum namespace_depth depth, thole_error *reterr)
{
    struct namespace_log *const log = &check->logs[p];
    const struct log_known *const known = &check->known[p];
    THOLE_TRY(topology_look_log(connection, check->ns, p, depth == NAMESPACE_RECORDS ? known : NULL,
                                &log->there, reterr));
    THOLE_TRY(topology_look_inbox(connection, check->ns, p, &log->inbox, reterr));
    log->fit = log_fit_judge(known, &log->there);
    if (part_judge(PART_HISTORY, log->there.there, true) == PART_LOST)
        check->lost++;
    if (part_judge(PART_INBOX, log->inbox, true) == PART_LOST)
        check->lost++;
    check->older += log->fit == LOG_FIT_OLDER;
    check->cut += log->fit == LOG_FIT_CUT;
    return THOLE_OK;
}

static bool has_both_ids(const struct namespace_check *check)
{
    return check->nats.id.text[0] != '\0' && check->rows.id.text[0] != '\0';
}

thole_status namespace_check_nats(struct namespace_check *check, struct connection *connection,
                                  enum namespace_depth depth, thole_error *reterr)
{
    THOLE_TRY(topology_find(connection, check->ns, &check->nats, reterr));
    check->partitions = check->nats.made ? check->nats.partitions : check->nats.histories;
    check->lost = check->older = check->cut = 0;
    if (!has_both_ids(check))
        depth = NAMESPACE_RECORDS;
    free(check->logs);
    check->logs = memory_array(check->partitions, sizeof *check->logs);
    for (uint32_t p = 0; p < check->partitions; p++)
        THOLE_TRY(check_log(check, connection, p, depth, reterr));
    if (check->nats.made && part_judge(PART_SECRET, check->nats.secret, true) == PART_LOST)
        check->lost++;
    check->verdict = namespace_judge(&(struct namespace_sides){.made = check->nats.made,
                                                               .orphans = check->nats.orphans,
                                                               .nats = check->nats.id,
                                                               .postgres = check->rows.id,
                                                               .owned = check->rows.owned,
                                                               .lost = check->lost,
                                                               .older = check->older});
    return THOLE_OK;
}

thole_status namespace_check_stores(struct namespace_check *check, struct connection *connection,
                                    thole_error *reterr)
{
    check->stores_lost = 0;
    for (int i = 0; i < NAMESPACE_STORES && check->nats.made; i++) {
        struct marked_store *const seen = &check->stores[i];
        thole_status const status =
            marked_store_look(connection, check->ns, (enum namespace_store)i, seen, reterr);
        if (status == THOLE_DENIED)
            *seen = (struct marked_store){.verdict = STORE_NEVER};
        else if (status != THOLE_OK)
            return status;
        check->stores_lost += store_is_lost(seen->verdict);
    }
    return THOLE_OK;
}

bool namespace_check_has_records(const struct namespace_check *check)
{
    for (uint32_t p = 0; p < check->partitions; p++)
        if (check->logs[p].there.last > 0)
            return true;
    return false;
}

bool namespace_check_unfit(const struct namespace_check *check, uint32_t p)
{
    if (!check->nats.made || check->verdict == NAMESPACE_OTHER || !check->nats.secret ||
        p >= check->partitions)
        return true;
    return check->logs[p].fit != LOG_FIT_SAME;
}

/* ---- in words ---- */

void namespace_check_was(const struct namespace_check *check, char ret[NAMESPACE_SAYS_BYTES])
{
    char time[TIME_TEXT_BYTES];
    const struct namespace_rows *const rows = &check->rows;
    if (!check->tables || (rows->owned == 0 && rows->id.text[0] == '\0')) {
        (void)snprintf(ret, NAMESPACE_SAYS_BYTES, "Postgres knows nothing of it");
        return;
    }
    text_time(rows->written_ms, time);
    (void)snprintf(ret, NAMESPACE_SAYS_BYTES,
                   "Postgres has rows of %" PRIu64 " partitions and %" PRIu64
                   "%s instances, last written %s, of "
                   "identity %s",
                   rows->owned, rows->instances, rows->instances == NAMESPACE_INSTANCES_MAX ? " or more" : "",
                   time, rows->id.text[0] != '\0' ? rows->id.text : "none");
}

static void say_lost(const struct namespace_check *check, char ret[NAMESPACE_SAYS_BYTES])
{
    char first[STREAM_NAME_BYTES_MAX] = "";
    if (!check->nats.secret)
        (void)snprintf(first, sizeof first, "the key in bucket THOLE_%s_SECRET", check->ns);
    for (uint32_t p = check->partitions; p-- > 0;) {
        if (!check->logs[p].inbox)
            (void)snprintf(first, sizeof first, "the stream THOLE_%s_IN_%" PRIu32, check->ns, p);
        if (check->logs[p].fit == LOG_FIT_GONE)
            (void)snprintf(first, sizeof first, "the stream THOLE_%s_HIST_%" PRIu32, check->ns, p);
    }
    (void)snprintf(ret, NAMESPACE_SAYS_BYTES, "NATS lacks %s", first);
    if (check->lost > 1)
        (void)snprintf(ret, NAMESPACE_SAYS_BYTES, "NATS lacks %s and %" PRIu32 " more", first,
                       check->lost - 1);
}

static void say_older(const struct namespace_check *check, char ret[NAMESPACE_SAYS_BYTES])
{
    uint32_t p = 0;
    while (p + 1 < check->partitions && check->logs[p].fit != LOG_FIT_OLDER)
        p++;
    uint64_t const last = check->logs[p].there.last, kept = check->known[p].kept;
    if (last < kept)
        (void)snprintf(ret, NAMESPACE_SAYS_BYTES,
                       "NATS is older: THOLE_%s_HIST_%" PRIu32 " ends at record %" PRIu64
                       ", and had had record %" PRIu64 " for long (%" PRIu32 " such logs)",
                       check->ns, p, last, kept, check->older);
    else
        (void)snprintf(ret, NAMESPACE_SAYS_BYTES,
                       "NATS has other histories: record %" PRIu64 " of THOLE_%s_HIST_%" PRIu32
                       " is another one (%" PRIu32 " such logs)",
                       kept, check->ns, p, check->older);
}

void namespace_check_is(const struct namespace_check *check, char ret[NAMESPACE_SAYS_BYTES])
{
    const char *const id = check->nats.id.text[0] != '\0' ? check->nats.id.text : "none";
    switch (check->verdict) {
    case NAMESPACE_LOST:
        if (check->nats.made)
            say_lost(check, ret);
        else if (check->nats.orphans)
            (void)snprintf(ret, NAMESPACE_SAYS_BYTES,
                           "NATS has %" PRIu32 " histories, and no bucket THOLE_%s_CONFIG",
                           check->nats.histories, check->ns);
        else
            (void)snprintf(ret, NAMESPACE_SAYS_BYTES, "NATS has nothing of it");
        return;
    case NAMESPACE_OLDER: say_older(check, ret); return;
    case NAMESPACE_NEW: (void)snprintf(ret, NAMESPACE_SAYS_BYTES, "NATS has nothing of it"); return;
    case NAMESPACE_OTHER:
    case NAMESPACE_SAME:
    case NAMESPACE_EMPTIED: break;
    }
    (void)snprintf(ret, NAMESPACE_SAYS_BYTES, "NATS has %" PRIu32 " partitions, of identity %s",
                   check->partitions, id);
}

void namespace_check_lost_stores(const struct namespace_check *check, char ret[STORES_SAY_BYTES])
{
    char text[MARKED_STORE_TEXT_BYTES];
    size_t len = 0;
    ret[0] = '\0';
    for (int i = 0; i < NAMESPACE_STORES && check->stores_lost > 0; i++) {
        if (!store_is_lost(check->stores[i].verdict))
            continue;
        marked_store_text(check->ns, (enum namespace_store)i, &check->stores[i], text);
        int const n = snprintf(ret + len, STORES_SAY_BYTES - len, "%s%s", len == 0 ? "" : "; ", text);
        if (n > 0 && (size_t)n < STORES_SAY_BYTES - len)
            len += (size_t)n;
    }
}

const char *namespace_check_id(const struct namespace_check *check)
{
    if (check->rows.id.text[0] != '\0')
        return check->rows.id.text;
    return check->nats.id.text[0] != '\0' ? check->nats.id.text : "none";
}

static thole_status refuse_lost_stores(const struct namespace_check *check, thole_error *reterr)
{
    char lost[MARKED_STORE_TEXT_BYTES], more[40] = "";
    int first = 0;
    if (check->stores_lost == 0)
        return THOLE_OK;
    while (!store_is_lost(check->stores[first].verdict))
        first++;
    marked_store_text(check->ns, (enum namespace_store)first, &check->stores[first], lost);
    if (check->stores_lost > 1)
        (void)snprintf(more, sizeof more, "; and %" PRIu32 " more", check->stores_lost - 1);
    return thole_fail(
        reterr, THOLE_CONFLICT,
        "namespace %s: %s%s. Nothing was changed. Restore NATS's data; or give up what is lost: thole "
        "recover --accept-loss %s --reason WHY",
        check->ns, lost, more, namespace_check_id(check));
}

thole_status namespace_check_refuse(const struct namespace_check *check, thole_error *reterr)
{
    char was[NAMESPACE_SAYS_BYTES], is[NAMESPACE_SAYS_BYTES];
    if (namespace_verdict_serves(check->verdict))
        return refuse_lost_stores(check, reterr);
    namespace_check_was(check, was);
    namespace_check_is(check, is);
    return thole_fail(reterr, THOLE_CONFLICT,
                      "namespace %s: %s; %s. Nothing was changed. %s; or give up what is lost: thole recover "
                      "--accept-loss %s --reason WHY",
                      check->ns, was, is,
                      check->verdict == NAMESPACE_OTHER ? "Connect to the right servers"
                                                        : "Restore NATS's data",
                      namespace_check_id(check));
}

thole_status namespace_check_settle(const struct namespace_check *check, struct connection *connection,
                                    thole_error *reterr)
{
    if (!check->nats.made || check->nats.id.text[0] != '\0' || check->rows.id.text[0] == '\0')
        return THOLE_OK;
    return topology_write_id(connection, check->ns, &check->rows.id, reterr);
}
