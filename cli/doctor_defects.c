/* doctor: how the engines say that they are; whether streams, consumers and settings are as they must be. */
#include "clock.h"
#include "crowd.h"
#include "doctor_checks.h"
#include "text.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LIST_BYTES_MAX = 600,
    TEXT_BYTES_MAX = 2000,
    CLOSED_OFTEN = 4,
    STEADY_MS = 10000,
    SHOWN_MAX = 4,
    LIMITED_MAX = 20,
    PART_BYTES = 200
};

/* ---- the engines' states of partitions ---- */

static bool is_closed_often(const struct cluster_partition *partition)
{
    return partition->owned && partition->state == CLUSTER_OPEN && partition->closed_lately >= CLOSED_OFTEN;
}

/* One that closes again and again is never open for long: nothing comes of it. */
static bool is_steady(const struct cluster_partition *partition)
{
    return clock_wall_ms() > partition->since_ms + STEADY_MS;
}

static bool is_ill(const struct cluster_partition *partition)
{
    return (partition->owned && partition->state != CLUSTER_UNTOLD && partition->state != CLUSTER_OPEN) ||
           (is_closed_often(partition) && !is_steady(partition));
}

/* Whether the partition works, although it was disturbed several times. */
static bool is_shaky(const struct cluster_partition *partition)
{
    return is_closed_often(partition) && is_steady(partition);
}

typedef bool partition_test_fn(const struct cluster_partition *partition);

/* How many there are; the first of them in words. */
static uint32_t list_partitions(const struct cluster *cluster, partition_test_fn *is_one, struct buf *to)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < cluster->partitions_len; p++) {
        const struct cluster_partition *const partition = &cluster->partitions[p];
        if (!is_one(partition) || ++n > SHOWN_MAX)
            continue;
        buf_printf(to, "%s%" PRIu32 " is %s", n == 1 ? "" : "; ", p, cluster_states[partition->state]);
        if (partition->closed_lately > 0)
            buf_printf(to, ", was closed %" PRIu64 " times in 5 minutes", partition->closed_lately);
        if (partition->why.len > 0)
            buf_printf(to, ": %.*s", (int)(partition->why.len < PART_BYTES ? partition->why.len : PART_BYTES),
                       (const char *)partition->why.ptr);
    }
    if (n > SHOWN_MAX)
        buf_printf(to, "; …");
    return n;
}

static size_t count_untold(const struct cluster *cluster)
{
    size_t n = 0;
    for (const struct cluster_engine *e = cluster->engines; e != NULL; e = e->next)
        n += !e->told;
    return n;
}

static void doctor_defects_check_open(struct doctor_report *report, const struct cluster *cluster)
{
    static const char next[] =
        "the checks below may say why; thole partitions; the engines' logs, area partition";
    struct buf ill, shaky;
    size_t const untold = count_untold(cluster);
    buf_init(&ill, LIST_BYTES_MAX);
    buf_init(&shaky, LIST_BYTES_MAX);
    uint32_t const ills = list_partitions(cluster, is_ill, &ill);
    uint32_t const shakies = list_partitions(cluster, is_shaky, &shaky);
    if (ills > 0)
        report_add(report, "open", FINDING_FAIL, next,
                   "%" PRIu32 " of %" PRIu32 " partitions do not work: %s", ills, cluster->partitions_len,
                   buf_cstr(&ill));
    else if (shakies > 0)
        report_add(report, "open", FINDING_WARN, next,
                   "%" PRIu32 " of %" PRIu32 " partitions work now, and were closed several times: %s",
                   shakies, cluster->partitions_len, buf_cstr(&shaky));
    else if (untold > 0)
        report_add(report, "open", FINDING_SKIP,
                   "an engine of an earlier version does not say it; this user may ask with the rights of "
                   "the role auditor: thole doctor --nats-permissions auditor",
                   "%zu of %zu engines do not say how their partitions are", untold, cluster->engines_len);
    else if (cluster->engines_len > 0)
        report_add(report, "open", FINDING_OK, NULL, "the engines say that their partitions are open");
    buf_release(&ill);
    buf_release(&shaky);
}

static void check_clocks(struct doctor_report *report, const struct cluster *cluster)
{
    for (const struct cluster_engine *e = cluster->engines; e != NULL; e = e->next) {
        char whose[THOLE_NAME_BYTES_MAX + 16];
        (void)snprintf(whose, sizeof whose, "engine %.*s", THOLE_FMT(e->node));
        if (e->told)
            report_clock(report, "engine_clock", whose, e->now_ms, e->asked_ms, e->answered_ms);
    }
}

/* ---- missing or changed objects ---- */

struct defects {
    struct doctor_report *report;
    struct connection *connection;
    const struct topology *topology;
    bool fixes;
    size_t found, mended;
    struct buf texts; /* of the reported ones, each followed by a line feed */
};

static bool is_told(const struct defects *defects, thole_slice text)
{
    size_t at = 0;
    thole_slice const all = buf_bytes(&defects->texts);
    while (at < all.len) {
        const uint8_t *const end = memchr(all.ptr + at, '\n', all.len - at);
        size_t const len = end == NULL ? all.len - at : (size_t)(end - all.ptr) - at;
        if (thole_slice_equal((thole_slice){all.ptr + at, len}, text))
            return true;
        at += len + 1;
    }
    return false;
}

static void report_defect(struct defects *defects, thole_slice text, thole_slice remedy, bool warns)
{
    char todo[SEEN_BYTES_MAX];
    if (is_told(defects, text))
        return;
    defects->found++;
    buf_slice(&defects->texts, text);
    buf_text(&defects->texts, "\n");
    (void)snprintf(todo, sizeof todo, "%.*s", THOLE_FMT(remedy));
    report_add(defects->report, "defect", warns ? FINDING_WARN : FINDING_FAIL, todo, "%.*s", THOLE_FMT(text));
}

static void doctor_defects_on_defect(void *arg, const struct defect *defect)
{
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    defect_text(defect, &text);
    report_defect(arg, buf_bytes(&text), thole_slice_from(defect->remedy), defect->weight == DEFECT_WARNS);
    buf_release(&text);
}

static void mend_defect(void *arg, const struct defect *defect)
{
    struct defects *const defects = arg;
    thole_error error = {.status = THOLE_OK};
    struct buf text;
    if (defect->cure == CURE_NONE)
        return;
    buf_init(&text, TEXT_BYTES_MAX);
    defect_text(defect, &text);
    error.status = topology_mend(defects->connection, defects->topology, defect, &error);
    if (error.status != THOLE_OK)
        report_error(defects->report, "fix", "engine", defect->remedy, &error);
    else
        report_add(defects->report, "fix", FINDING_OK, NULL, "put right: %s", buf_cstr(&text));
    defects->mended += error.status == THOLE_OK;
    buf_release(&text);
}

/* The bucket of the key, which engines alone look at, as an earlier version has made it. */
static void mend_secret(struct defects *defects, const struct cluster *cluster)
{
    static const char field[] = "discard_new_per_subject";
    struct defect defect = {.object = DEFECT_SECRET, .weight = DEFECT_WARNS, .cure = CURE_FIX};
    for (const struct cluster_defect *d = cluster->defects; d != NULL; d = d->next)
        if (thole_slice_equal(d->object, thole_slice_from(defect_objects[DEFECT_SECRET])) &&
            memmem(d->text.ptr, d->text.len, field, sizeof field - 1) != NULL) {
            (void)snprintf(defect.name, sizeof defect.name, "stream KV_THOLE_%s_SECRET",
                           defects->topology->ns);
            (void)snprintf(defect.field, sizeof defect.field, "%s", field);
            (void)snprintf(defect.found, sizeof defect.found, "false");
            (void)snprintf(defect.needed, sizeof defect.needed, "true");
            mend_defect(defects, &defect);
            return;
        }
}

/* Of the streams, then of the queues; who may not see the queues learns of them from the engines. */
static thole_status doctor_defects_look(const struct defects *defects, struct topology_seen *ret,
                                        defect_fn *each, void *arg, thole_error *reterr)
{
    THOLE_TRY(topology_look(defects->connection, defects->topology, ret, each, arg, reterr));
    if (ret->hidden > 0)
        return THOLE_OK;
    thole_status status = topology_look_queues(defects->connection, defects->topology, each, arg, reterr);
    if (status == THOLE_OK || status == THOLE_DENIED)
        status = topology_look_stores(defects->connection, defects->topology, ret, each, arg, reterr);
    return status == THOLE_DENIED ? THOLE_OK : status;
}

/* Another number of partitions is not what the streams are to be compared with. */
static bool settings_differ(const struct cluster *cluster)
{
    static const char key[] = " has key ";
    for (const struct cluster_defect *d = cluster->defects; d != NULL; d = d->next)
        if (thole_slice_equal(d->object, THOLE_STR("config")) &&
            memmem(d->text.ptr, d->text.len, key, sizeof key - 1) != NULL)
            return true;
    return false;
}

static void report_none(const struct defects *defects, const struct cluster *cluster,
                        const struct topology_seen *seen)
{
    bool const all_tell = cluster->engines_len > 0 && count_untold(cluster) == 0;
    if (seen->hidden == 0)
        report_add(defects->report, "defects", FINDING_OK, NULL,
                   "%" PRIu32 " streams and buckets are as they must be", seen->looked);
    else if (all_tell)
        report_add(defects->report, "defects", FINDING_OK, NULL,
                   "the engines say that the streams and buckets are as they must be");
    else
        report_add(defects->report, "defects", FINDING_SKIP,
                   "thole doctor --nats-permissions auditor says what a user must be allowed to",
                   "this user cannot see the streams, and the engines do not tell");
}

/* Limits of the account that an engine has reported already are not looked at a second time. */
static void check_limits(struct defects *defects, const struct cluster *cluster)
{
    thole_error error = {.status = THOLE_OK};
    for (const struct cluster_defect *d = cluster->defects; d != NULL; d = d->next)
        if (thole_slice_equal(d->object, thole_slice_from(defect_objects[DEFECT_LIMITS])))
            return;
    error.status =
        crowd_look(defects->connection, defects->topology, doctor_defects_on_defect, defects, &error);
    if (error.status != THOLE_OK && error.status != THOLE_DENIED)
        report_error(defects->report, "defects", "auditor", NULL, &error);
}

static void check_defects(struct doctor_report *report, struct connection *connection,
                          const struct topology *topology, const struct cluster *cluster)
{
    struct defects defects = {
        .report = report, .connection = connection, .topology = topology, .fixes = report->cli->options.fix};
    struct topology_seen seen = {.looked = 0};
    thole_error error = {.status = THOLE_OK};
    buf_init(&defects.texts, 64 * TEXT_BYTES_MAX);
    if (defects.fixes && !settings_differ(cluster))
        error.status = doctor_defects_look(&defects, &seen, mend_defect, &defects, &error);
    if (defects.fixes && error.status == THOLE_OK)
        mend_secret(&defects, cluster);
    if (error.status == THOLE_OK && !settings_differ(cluster))
        error.status = doctor_defects_look(&defects, &seen, doctor_defects_on_defect, &defects, &error);
    if (error.status != THOLE_OK)
        report_error(report, "defects", "auditor", NULL, &error);
    else if (seen.hidden == 0)
        check_limits(&defects, cluster);
    for (const struct cluster_defect *d = cluster->defects; defects.mended == 0 && d != NULL; d = d->next)
        report_defect(&defects, d->text, d->remedy, d->warns);
    if (defects.found == 0 && error.status == THOLE_OK)
        report_none(&defects, cluster, &seen);
    buf_release(&defects.texts);
}

/* A user removes objects that engines make again: no defect shows any more, and yet the operator should
 * know. */
static void report_mended(struct doctor_report *report, const struct cluster *cluster)
{
    char time[TIME_TEXT_BYTES];
    for (const struct cluster_mended *m = cluster->mended; m != NULL; m = m->next) {
        text_time(m->at_ms, time);
        report_add(report, "mended", FINDING_OK, "who removed it?",
                   "%.*s was missing and was made again at %s", THOLE_FMT(m->name), time);
    }
}

/* An orchestration that rests beside others is no defect; the advice is for operators who want it
 * otherwise. */
static void report_limited(struct doctor_report *report, const struct cluster *cluster)
{
    size_t n = 0;
    for (const struct cluster_limited *l = cluster->limited; l != NULL && n < LIMITED_MAX; l = l->next, n++) {
        bool const rests = thole_slice_equal(l->limit, THOLE_STR("turns"));
        char remedy[SEEN_BYTES_MAX];
        (void)snprintf(remedy, sizeof remedy, "%.*s", THOLE_FMT(l->remedy));
        report_add(report, "limits", rests ? FINDING_OK : FINDING_WARN, remedy,
                   "%.*s: %" PRIu64 " times in 5 minutes, such as %.*s", THOLE_FMT(l->text), l->count,
                   THOLE_FMT(l->instance));
    }
}

void doctor_state(struct doctor_report *report, struct connection *connection,
                  const struct topology *topology, const struct cluster *cluster)
{
    doctor_defects_check_open(report, cluster);
    check_clocks(report, cluster);
    check_defects(report, connection, topology, cluster);
    report_mended(report, cluster);
    report_limited(report, cluster);
}
