/* Stream configurations: as JSON, and compared with the server's. */
#include "topology_spec.h"
#include "api.h"
#include "jscan.h"
#include "json.h"
#include "link.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SPEC_JSON_MAX = 8192 };

static void subjects_json(const struct stream_spec *spec, struct json *to)
{
    json_key(to, "subjects");
    json_array(to);
    for (size_t i = 0; i < spec->subjects_len; i++)
        json_string(to, thole_slice_from(spec->subjects[i]));
    json_end(to);
}

static void spec_json(const struct stream_spec *spec, struct buf *to)
{
    struct json json;
    json_to_buf(&json, to);
    json_object(&json);
    json_member_text(&json, "name", spec->name);
    subjects_json(spec, &json);
    json_member_text(&json, "retention", spec->retention);
    json_member_text(&json, "storage", "file");
    json_member_text(&json, "discard", spec->discard_old ? "old" : "new");
    json_member_integer(&json, "num_replicas", spec->replicas == 0 ? 1 : spec->replicas);
    json_member_integer(&json, "max_consumers", -1);
    json_member_integer(&json, "max_msgs", spec->max_msgs == 0 ? -1 : spec->max_msgs);
    json_member_integer(&json, "max_bytes", spec->max_bytes == 0 ? -1 : spec->max_bytes);
    json_member_integer(&json, "max_age", (int64_t)spec->max_age_ms * NANOS_PER_MS);
    json_member_integer(&json, "max_msg_size", -1);
    json_member_integer(&json, "max_msgs_per_subject",
                        spec->max_per_subject == 0 ? -1 : spec->max_per_subject);
    if (spec->write_once)
        json_member_bool(&json, "discard_new_per_subject", true);
    if (spec->dedupe_ms != 0)
        json_member_integer(&json, "duplicate_window", (int64_t)spec->dedupe_ms * NANOS_PER_MS);
    json_member_bool(&json, "allow_direct", true);
    json_member_bool(&json, "allow_rollup_hdrs", spec->allow_rollup);
    json_member_bool(&json, "deny_delete", spec->deny_delete);
    json_member_bool(&json, "deny_purge", spec->deny_purge);
    json_end(&json);
}

/* ---- the comparison ---- */

struct comparing {
    const struct stream_spec *spec;
    thole_slice config;
    defect_fn *each;
    void *arg;
};

/* Whether the server lets no user change the field in an existing stream. */
static bool is_fixed(const char *field, const char *needed)
{
    static const char *const fixed[] = {"mirror",    "sealed",        "storage",
                                        "retention", "max_consumers", "persist_mode"};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (strcmp(field, fixed[i]) == 0)
            return true;
    return (strncmp(field, "deny_", 5) == 0 || strncmp(field, "allow_msg_", 10) == 0) &&
           strcmp(needed, "false") == 0;
}

static bool is_derived(enum defect_object object)
{
    return object == DEFECT_NODES || object == DEFECT_CRASHES || object == DEFECT_WORK ||
           object == DEFECT_REJECTED || object == DEFECT_EVENTS;
}

/* Only the engines know it. */
static bool is_heartbeats_age(const struct defect *defect)
{
    return defect->object == DEFECT_NODES && strcmp(defect->field, "max_age") == 0;
}

/* As an earlier version has made it. */
static bool is_write_once(const struct defect *defect)
{
    return strcmp(defect->field, "discard_new_per_subject") == 0 && strcmp(defect->needed, "true") == 0;
}

static void fill_remedy(const struct stream_spec *spec, struct defect *defect)
{
    if (is_heartbeats_age(defect))
        (void)snprintf(defect->remedy, sizeof defect->remedy, "nats stream edit %s --max-age=%s --force",
                       spec->name, defect->needed);
    else if (strcmp(defect->field, "num_replicas") == 0)
        (void)snprintf(defect->remedy, sizeof defect->remedy, "nats stream edit %s --replicas %s --force",
                       spec->name, defect->needed);
    else if (!is_fixed(defect->field, defect->needed))
        (void)snprintf(defect->remedy, sizeof defect->remedy, "thole doctor -n %s --fix%s", spec->ns,
                       is_write_once(defect)
                           ? ", when all engines are of this version: those before refuse to "
                             "start on it"
                           : "");
    else if (is_derived(spec->object))
        (void)snprintf(defect->remedy, sizeof defect->remedy,
                       "nats stream rm %s --force; an engine makes it again", spec->name);
    else
        (void)snprintf(defect->remedy, sizeof defect->remedy,
                       "nats stream backup %s DIR && nats stream rm %s --force && nats stream restore DIR "
                       "--config FILE, where FILE has %s %s",
                       spec->name, spec->name, defect->field, defect->needed);
}

static void topology_spec_differs(const struct comparing *c, enum defect_weight weight, const char *field,
                                  thole_slice there, const char *needed)
{
    struct defect defect = {.object = c->spec->object, .weight = weight, .p = c->spec->p};
    (void)snprintf(defect.name, sizeof defect.name, "stream %s", c->spec->name);
    (void)snprintf(defect.field, sizeof defect.field, "%s", field);
    (void)snprintf(defect.found, sizeof defect.found, "%.*s", there.len > 100 ? 100 : (int)there.len,
                   (const char *)there.ptr);
    (void)snprintf(defect.needed, sizeof defect.needed, "%s", needed);
    bool const by_hand =
        is_fixed(field, needed) || strcmp(field, "num_replicas") == 0 || is_heartbeats_age(&defect);
    defect.cure = by_hand ? CURE_NONE : CURE_FIX;
    fill_remedy(c->spec, &defect);
    c->each(c->arg, &defect);
}

static thole_slice field_or(thole_slice config, const char *field, thole_slice otherwise)
{
    thole_slice value;
    return json_find(config, field, &value) ? value : otherwise;
}

static void want_text(const struct comparing *c, const char *field, const char *needed)
{
    thole_slice const there = field_or(c->config, field, THOLE_STR("absent"));
    if (!json_text_is(there, needed))
        topology_spec_differs(c, DEFECT_REFUSED, field, there, needed);
}

static void want_bool(const struct comparing *c, enum defect_weight weight, const char *field, bool needed)
{
    thole_slice const there = field_or(c->config, field, THOLE_STR("false"));
    if (json_is_true(there) != needed)
        topology_spec_differs(c, weight, field, there, needed ? "true" : "false");
}

/* needed 0: unlimited, which servers write as 0 or -1. */
static void want_limit(const struct comparing *c, const char *field, int64_t needed)
{
    char text[32] = "no limit";
    int64_t n = 0;
    thole_slice const there = field_or(c->config, field, THOLE_STR("0"));
    if (json_int(there, &n) && (needed == 0 ? n <= 0 : n == needed))
        return;
    if (needed != 0)
        (void)snprintf(text, sizeof text, "%" PRId64, needed);
    topology_spec_differs(c, DEFECT_REFUSED, field, there, text);
}

static void want_absent(const struct comparing *c, enum defect_weight weight, const char *field)
{
    thole_slice there;
    if (json_find(c->config, field, &there) && !thole_slice_equal(there, THOLE_STR("null")))
        topology_spec_differs(c, weight, field, there, "none");
}

static void want_subjects(const struct comparing *c)
{
    const struct stream_spec *const spec = c->spec;
    char needed[SPEC_SUBJECTS_MAX * (SPEC_SUBJECT_BYTES + 8)] = "";
    thole_slice const list = field_or(c->config, "subjects", THOLE_STR("none"));
    thole_slice item;
    size_t at = 0, count = 0, matches = 0, len = 0;
    while (json_item(list, &at, &item)) {
        count++;
        for (size_t i = 0; i < spec->subjects_len; i++)
            matches += json_text_is(item, spec->subjects[i]);
    }
    if (count == spec->subjects_len && matches == count)
        return;
    for (size_t i = 0; i < spec->subjects_len; i++)
        len += (size_t)snprintf(needed + len, sizeof needed - len, "%s%s", i == 0 ? "" : " and ",
                                spec->subjects[i]);
    topology_spec_differs(c, DEFECT_REFUSED, "subjects", list, needed);
}

static void want_replicas(const struct comparing *c)
{
    uint64_t n = 0;
    thole_slice const there = field_or(c->config, "num_replicas", THOLE_STR("absent"));
    if (!json_uint(there, &n) || n == 0 || n > 100)
        topology_spec_differs(c, DEFECT_REFUSED, "num_replicas", there, "a number");
    else if (c->spec->replicas != 0)
        want_limit(c, "num_replicas", c->spec->replicas);
}

thole_slice duration_text(char text[DURATION_BYTES], uint64_t ns)
{
    uint64_t const second = (uint64_t)1000 * NANOS_PER_MS;
    uint64_t const unit = ns % second == 0 ? second : ns % NANOS_PER_MS == 0 ? NANOS_PER_MS : 1;
    int const len = snprintf(text, DURATION_BYTES, "%" PRIu64 "%s", ns / unit,
                             unit == second         ? "s"
                             : unit == NANOS_PER_MS ? "ms"
                                                    : "ns");
    return (thole_slice){(const uint8_t *)text, (size_t)len};
}

static void want_max_age(const struct comparing *c)
{
    const struct stream_spec *const spec = c->spec;
    char has[DURATION_BYTES], needed[DURATION_BYTES] = "no limit";
    uint64_t ns = 0;
    thole_slice const there = field_or(c->config, "max_age", THOLE_STR("0"));
    if (!json_uint(there, &ns)) {
        topology_spec_differs(c, DEFECT_REFUSED, "max_age", there, "a time");
        return;
    }
    bool const fits = spec->any_max_age || (spec->keep_max_age ? ns >= (uint64_t)1000 * NANOS_PER_MS
                                                               : ns == spec->max_age_ms * NANOS_PER_MS);
    if (fits)
        return;
    if (spec->max_age_ms != 0)
        (void)duration_text(needed, spec->max_age_ms * NANOS_PER_MS);
    topology_spec_differs(c, DEFECT_REFUSED, "max_age", duration_text(has, ns),
                          spec->keep_max_age ? "at least a second" : needed);
}

/* A shorter window lets a message that is sent again count twice; an owner who wants a longer one may. */
static void want_window(const struct comparing *c)
{
    char has[DURATION_BYTES], needed[DURATION_BYTES];
    uint64_t ns = 0;
    thole_slice const there = field_or(c->config, "duplicate_window", THOLE_STR("0"));
    if (c->spec->object != DEFECT_IN || (json_uint(there, &ns) && ns >= c->spec->dedupe_ms * NANOS_PER_MS))
        return;
    (void)duration_text(needed, c->spec->dedupe_ms * NANOS_PER_MS);
    topology_spec_differs(c, DEFECT_WARNS, "duplicate_window", duration_text(has, ns), needed);
}

/* Of a setting that older servers do not have. */
static void want_default(const struct comparing *c, const char *field, const char *needed)
{
    thole_slice there;
    if (json_find(c->config, field, &there) && !json_text_is(there, needed) && !json_text_is(there, ""))
        topology_spec_differs(c, DEFECT_REFUSED, field, there, needed);
}

void spec_compare(const struct stream_spec *spec, thole_slice config, defect_fn *each, void *arg)
{
    /* With these, who may publish can have messages removed, or published elsewhere. */
    static const char *const unwanted[] = {"allow_msg_ttl", "allow_msg_schedules", "allow_msg_counter"};
    struct comparing const compare = {spec, config, each, arg}, *const c = &compare;
    want_absent(c, DEFECT_REFUSED, "mirror");
    want_absent(c, DEFECT_REFUSED, "sources");
    want_absent(c, DEFECT_REFUSED, "subject_transform");
    want_absent(c, DEFECT_REFUSED, "republish"); /* sends stored messages anywhere */
    for (size_t i = 0; i < sizeof unwanted / sizeof unwanted[0]; i++)
        want_bool(c, DEFECT_REFUSED, unwanted[i], false);
    want_default(c, "persist_mode", "default");
    want_bool(c, DEFECT_REFUSED, "sealed", false);
    want_subjects(c);
    want_text(c, "retention", spec->retention);
    want_text(c, "storage", "file");
    if (!spec->any_discard)
        want_text(c, "discard", spec->discard_old ? "old" : "new");
    want_max_age(c);
    want_limit(c, "max_msgs_per_subject", spec->max_per_subject);
    want_limit(c, "max_consumers", 0);
    if (spec->no_limits) {
        want_limit(c, "max_msgs", 0);
        want_limit(c, "max_bytes", 0);
    }
    want_limit(c, "max_msg_size", 0);
    want_bool(c, spec->write_once ? DEFECT_WARNS : DEFECT_REFUSED, "discard_new_per_subject",
              spec->write_once);
    want_bool(c, DEFECT_REFUSED, "deny_delete", spec->deny_delete);
    want_bool(c, DEFECT_REFUSED, "deny_purge", spec->deny_purge);
    want_bool(c, DEFECT_REFUSED, "allow_rollup_hdrs", spec->allow_rollup);
    want_bool(c, DEFECT_REFUSED, "no_ack", false);
    want_replicas(c);
    want_bool(c, DEFECT_WARNS, "allow_direct", true);
    want_window(c);
}

/* One that is down is still one of them: thole doctor counts these (check replicas). */
void spec_compare_peers(const struct stream_spec *spec, thole_slice info, defect_fn *each, void *arg)
{
    struct defect defect = {.object = spec->object, .weight = DEFECT_WARNS, .p = spec->p};
    thole_slice value, item;
    uint64_t needed = 0, has = 1;
    size_t at = 0;
    if (!json_path(info, "config.num_replicas", &value) || !json_uint(value, &needed) || needed < 2 ||
        !json_path(info, "cluster.name", &value))
        return;
    if (json_path(info, "cluster.replicas", &value))
        while (json_item(value, &at, &item))
            has++;
    if (has >= needed)
        return;
    (void)snprintf(defect.name, sizeof defect.name, "stream %s", spec->name);
    (void)snprintf(defect.field, sizeof defect.field, "servers");
    (void)snprintf(defect.found, sizeof defect.found, "%" PRIu64, has);
    (void)snprintf(defect.needed, sizeof defect.needed, "%" PRIu64, needed);
    (void)snprintf(defect.remedy, sizeof defect.remedy,
                   "nats stream edit %s --replicas 1 --force && nats stream edit %s --replicas %" PRIu64
                   " --force, with %" PRIu64 " servers there",
                   spec->name, spec->name, needed, needed);
    each(arg, &defect);
}

void spec_missing(const struct stream_spec *spec, struct defect *ret)
{
    *ret = (struct defect){.object = spec->object, .weight = DEFECT_REFUSED, .p = spec->p};
    (void)snprintf(ret->name, sizeof ret->name, "stream %s", spec->name);
    ret->cure = is_derived(spec->object) ? CURE_ENGINE : CURE_NONE;
    if (ret->cure == CURE_ENGINE)
        (void)snprintf(ret->remedy, sizeof ret->remedy, "thole doctor -n %s --fix", spec->ns);
    else
        (void)snprintf(
            ret->remedy, sizeof ret->remedy,
            "nats stream restore DIR, where DIR is a backup of %s; or give it up: thole recover -n %s",
            spec->name, spec->ns);
}

/* ---- checks of a starting engine ---- */

struct first_defect {
    const struct stream_spec *spec;
    thole_status status;
    thole_error *reterr;
};

static void refuse_first(void *arg, const struct defect *defect)
{
    struct first_defect *const first = arg;
    if (first->status != THOLE_OK || defect->weight != DEFECT_REFUSED)
        return;
    first->status =
        thole_fail(first->reterr, THOLE_INVALID,
                   "%s has %s %s, but %s is needed (%s): change it with `nats stream edit`, or, if "
                   "nothing in it is needed, remove the stream and start again",
                   defect->name, defect->field, defect->found, defect->needed, first->spec->purpose);
}

static thole_status verify_config(struct stream_spec *spec, thole_slice config, thole_error *reterr)
{
    struct first_defect first = {spec, THOLE_OK, reterr};
    uint64_t n = 0;
    spec_compare(spec, config, refuse_first, &first);
    THOLE_TRY(first.status);
    if (json_uint(field_or(config, "num_replicas", THOLE_STR("")), &n))
        spec->replicas = (uint32_t)n;
    if ((spec->keep_max_age || spec->any_max_age) &&
        json_uint(field_or(config, "max_age", THOLE_STR("")), &n))
        spec->max_age_ms = n / NANOS_PER_MS;
    return THOLE_OK;
}

/* The server's configuration of the stream; it lives in @p answer. */
static thole_status read_config(struct connection *connection, const struct stream_spec *spec,
                                struct buf *answer, thole_slice *ret, thole_error *reterr)
{
    THOLE_TRY(api_call(connection, "STREAM.INFO", spec->name, THOLE_STR(""), answer, NULL, reterr));
    if (!json_find(buf_bytes(answer), "config", ret))
        return thole_fail(reterr, THOLE_CORRUPT, "stream %s: the server's answer has no config", spec->name);
    return THOLE_OK;
}

thole_status spec_verify(struct connection *connection, struct stream_spec *spec, thole_error *reterr)
{
    struct buf answer;
    thole_slice config;
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = read_config(connection, spec, &answer, &config, reterr);
    if (status == THOLE_OK)
        status = verify_config(spec, config, reterr);
    buf_release(&answer);
    return status;
}

/* ---- streams made by an earlier version ---- */

static bool has_limit(thole_slice config)
{
    thole_slice limit;
    int64_t n = 0;
    return json_find(config, "max_msgs_per_subject", &limit) && json_int(limit, &n) && n > 0;
}

static bool has_first_subject_alone(const struct stream_spec *spec, thole_slice config)
{
    thole_slice item, next;
    size_t at = 0;
    thole_slice const list = field_or(config, "subjects", THOLE_STR("none"));
    return json_item(list, &at, &item) && json_text_is(item, spec->subjects[0]) &&
           !json_item(list, &at, &next);
}

/* The configuration as this version makes it, in what an earlier one has made otherwise, and all else as it
 * is. False: nothing is to be changed. */
static bool brought_forward(const struct stream_spec *spec, thole_slice config, struct buf *to)
{
    struct json json;
    thole_slice key, value;
    size_t at = 0;
    bool const lift = spec->lift_max_per_subject && has_limit(config);
    bool const add = spec->add_subjects && has_first_subject_alone(spec, config);
    if (!lift && !add)
        return false;
    json_to_buf(&json, to);
    json_object(&json);
    while (json_field(config, &at, &key, &value)) {
        if (lift && thole_slice_equal(key, THOLE_STR("max_msgs_per_subject")))
            json_member_integer(&json, "max_msgs_per_subject", -1);
        else if (lift && thole_slice_equal(key, THOLE_STR("discard_new_per_subject")))
            json_member_bool(&json, "discard_new_per_subject", false);
        else if (add && thole_slice_equal(key, THOLE_STR("subjects")))
            subjects_json(spec, &json);
        else
            json_member_copy(&json, key, value);
    }
    json_end(&json);
    return json_ends(config, at); /* a part of it would reset the rest */
}

/* @p verb of the API: "STREAM.CREATE", "STREAM.UPDATE". */
static thole_status send_config(struct connection *connection, const char *verb,
                                const struct stream_spec *spec, const struct buf *json, thole_error *reterr)
{
    struct buf answer;
    if (buf_status(json) != THOLE_OK)
        return thole_fail(reterr, buf_status(json), "stream %s: its configuration is too large", spec->name);
    buf_init(&answer, API_ANSWER_MAX);
    thole_status const status =
        api_call(connection, verb, spec->name, buf_bytes(json), &answer, NULL, reterr);
    buf_release(&answer);
    return status;
}

static thole_status bring_forward(struct connection *connection, const struct stream_spec *spec,
                                  thole_error *reterr)
{
    struct buf answer, json;
    thole_slice config;
    buf_init(&answer, API_ANSWER_MAX);
    buf_init(&json, SPEC_JSON_MAX);
    thole_status status = read_config(connection, spec, &answer, &config, reterr);
    if (status == THOLE_OK && brought_forward(spec, config, &json))
        status = send_config(connection, "STREAM.UPDATE", spec, &json, reterr);
    buf_release(&answer);
    buf_release(&json);
    return status;
}

static thole_status spec_create(struct connection *connection, const struct stream_spec *spec,
                                thole_error *reterr)
{
    struct buf json;
    buf_init(&json, SPEC_JSON_MAX);
    spec_json(spec, &json);
    thole_status const status = send_config(connection, "STREAM.CREATE", spec, &json, reterr);
    buf_release(&json);
    /* Another engine was first, perhaps an older one: verification decides. */
    return status == THOLE_CONFLICT ? THOLE_OK : status;
}

static thole_status spec_lost(const struct stream_spec *spec, enum namespace_part part, thole_error *reterr)
{
    return thole_fail(
        reterr, THOLE_CONFLICT,
        "stream %s was there and is gone, and with it %s: nothing was made. Restore NATS's data, "
        "or, when that is not possible, thole recover",
        spec->name, part_loss(part));
}

thole_status spec_ensure_part(struct connection *connection, enum namespace_part part, bool made,
                              struct stream_spec *spec, thole_error *reterr)
{
    thole_status status = spec_verify(connection, spec, reterr);
    if (status == THOLE_INVALID && (spec->lift_max_per_subject || spec->add_subjects)) {
        THOLE_TRY(bring_forward(connection, spec, reterr));
        status = spec_verify(connection, spec, reterr);
    }
    if (status != THOLE_NOT_FOUND)
        return status;
    if (part_judge(part, false, made) == PART_LOST)
        return spec_lost(spec, part, reterr);
    THOLE_TRY(spec_create(connection, spec, reterr));
    status = spec_verify(connection, spec, reterr);
    if (status == THOLE_NOT_FOUND) /* in a cluster: another engine's request is still being processed */
        return thole_fail(reterr, THOLE_UNAVAILABLE, "stream %s is being made by another engine: try again",
                          spec->name);
    return status;
}

/* ---- put right ---- */

enum { MEND_FIELDS_MAX = 32 };
struct mending {
    char fields[MEND_FIELDS_MAX][sizeof((struct defect *)NULL)->field];
    size_t len;
};

static void note_field(void *arg, const struct defect *defect)
{
    struct mending *const mending = arg;
    if (defect->cure == CURE_FIX && mending->len < MEND_FIELDS_MAX)
        (void)snprintf(mending->fields[mending->len++], sizeof mending->fields[0], "%s", defect->field);
}

static bool is_mended(const struct mending *mending, thole_slice key)
{
    for (size_t i = 0; i < mending->len; i++)
        if (thole_slice_equal(key, thole_slice_from(mending->fields[i])))
            return true;
    return false;
}

/* The present configuration, with the specification's value in fields that differ. */
static bool mended_config(const struct stream_spec *spec, thole_slice config, struct buf *to)
{
    struct mending mending = {.len = 0};
    struct buf made;
    struct json json;
    thole_slice key, value;
    size_t at = 0;
    spec_compare(spec, config, note_field, &mending);
    if (mending.len == 0)
        return false;
    buf_init(&made, SPEC_JSON_MAX);
    spec_json(spec, &made);
    json_to_buf(&json, to);
    json_object(&json);
    while (json_field(config, &at, &key, &value))
        if (!is_mended(&mending, key))
            json_member_copy(&json, key, value);
    bool const whole = json_ends(config, at);
    for (size_t i = 0; i < mending.len; i++)
        if (json_find(buf_bytes(&made), mending.fields[i], &value)) /* else it must not be there */
            json_member_copy(&json, thole_slice_from(mending.fields[i]), value);
    json_end(&json);
    buf_release(&made);
    return whole; /* a part of it would reset the rest */
}

thole_status spec_mend(struct connection *connection, const struct stream_spec *spec, thole_error *reterr)
{
    struct buf answer, json;
    thole_slice config;
    buf_init(&answer, API_ANSWER_MAX);
    buf_init(&json, SPEC_JSON_MAX);
    thole_status status = read_config(connection, spec, &answer, &config, reterr);
    if (status == THOLE_OK && mended_config(spec, config, &json))
        status = send_config(connection, "STREAM.UPDATE", spec, &json, reterr);
    buf_release(&answer);
    buf_release(&json);
    return status;
}

thole_status spec_ensure(struct connection *connection, struct stream_spec *spec, thole_error *reterr)
{
    return spec_ensure_part(connection, PART_CONFIG, false, spec, reterr);
}
