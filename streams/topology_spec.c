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
    if (spec->dedupe_ms != 0)
        json_member_integer(&json, "duplicate_window", (int64_t)spec->dedupe_ms * NANOS_PER_MS);
    json_member_bool(&json, "allow_direct", true);
    json_member_bool(&json, "allow_rollup_hdrs", spec->allow_rollup);
    json_member_bool(&json, "deny_delete", spec->deny_delete);
    json_member_bool(&json, "deny_purge", spec->deny_purge);
    json_end(&json);
}

/* The refusal. */
static thole_status differs(const struct stream_spec *spec, const char *field, thole_slice there,
                            const char *needed, thole_error *reterr)
{
    return thole_fail(
        reterr, THOLE_INVALID,
        "stream %s has %s %.*s, but %s is needed (%s): change it with `nats stream edit`, or, if "
        "nothing in it is needed, remove the stream and start again",
        spec->name, field, there.len > 100 ? 100 : (int)there.len, (const char *)there.ptr, needed,
        spec->purpose);
}

static thole_slice field_or(thole_slice config, const char *field, thole_slice otherwise)
{
    thole_slice value;
    return json_find(config, field, &value) ? value : otherwise;
}

static thole_status want_text(const struct stream_spec *spec, thole_slice config, const char *field,
                              const char *needed, thole_error *reterr)
{
    thole_slice const there = field_or(config, field, THOLE_STR("absent"));
    return json_text_is(there, needed) ? THOLE_OK : differs(spec, field, there, needed, reterr);
}

static thole_status want_bool(const struct stream_spec *spec, thole_slice config, const char *field,
                              bool needed, thole_error *reterr)
{
    thole_slice const there = field_or(config, field, THOLE_STR("false"));
    if (json_is_true(there) == needed)
        return THOLE_OK;
    return differs(spec, field, there, needed ? "true" : "false", reterr);
}

/* needed 0: unlimited, which servers write as 0 or -1. */
static thole_status want_limit(const struct stream_spec *spec, thole_slice config, const char *field,
                               int64_t needed, thole_error *reterr)
{
    char text[32] = "no limit";
    int64_t n = 0;
    thole_slice const there = field_or(config, field, THOLE_STR("0"));
    if (json_int(there, &n) && (needed == 0 ? n <= 0 : n == needed))
        return THOLE_OK;
    if (needed != 0)
        (void)snprintf(text, sizeof text, "%" PRId64, needed);
    return differs(spec, field, there, text, reterr);
}

static thole_status want_absent(const struct stream_spec *spec, thole_slice config, const char *field,
                                thole_error *reterr)
{
    thole_slice there;
    if (!json_find(config, field, &there) || thole_slice_equal(there, THOLE_STR("null")))
        return THOLE_OK;
    return differs(spec, field, there, "none", reterr);
}

static thole_status want_subjects(const struct stream_spec *spec, thole_slice config, thole_error *reterr)
{
    char needed[SPEC_SUBJECTS_MAX * (SPEC_SUBJECT_BYTES + 8)] = "";
    thole_slice const list = field_or(config, "subjects", THOLE_STR("none"));
    thole_slice item;
    size_t at = 0, count = 0, matches = 0, len = 0;
    while (json_item(list, &at, &item)) {
        count++;
        for (size_t i = 0; i < spec->subjects_len; i++)
            matches += json_text_is(item, spec->subjects[i]);
    }
    if (count == spec->subjects_len && matches == count)
        return THOLE_OK;
    for (size_t i = 0; i < spec->subjects_len; i++)
        len += (size_t)snprintf(needed + len, sizeof needed - len, "%s%s", i == 0 ? "" : " and ",
                                spec->subjects[i]);
    return differs(spec, "subjects", list, needed, reterr);
}

static thole_status want_replicas(struct stream_spec *spec, thole_slice config, thole_error *reterr)
{
    uint64_t n = 0;
    thole_slice const there = field_or(config, "num_replicas", THOLE_STR("absent"));
    if (!json_uint(there, &n) || n == 0 || n > 100)
        return differs(spec, "num_replicas", there, "a number", reterr);
    if (spec->replicas != 0 && spec->replicas != n)
        return want_limit(spec, config, "num_replicas", spec->replicas, reterr);
    spec->replicas = (uint32_t)n;
    return THOLE_OK;
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

static thole_status want_max_age(struct stream_spec *spec, thole_slice config, thole_error *reterr)
{
    char has[DURATION_BYTES], needed[DURATION_BYTES] = "no limit";
    uint64_t ns = 0;
    thole_slice const there = field_or(config, "max_age", THOLE_STR("0"));
    if (!json_uint(there, &ns))
        return differs(spec, "max_age", there, "a time", reterr);
    if (spec->any_max_age)
        return THOLE_OK;
    if (spec->keep_max_age && ns >= (uint64_t)1000 * NANOS_PER_MS) {
        spec->max_age_ms = ns / NANOS_PER_MS;
        return THOLE_OK;
    }
    if (!spec->keep_max_age && ns == spec->max_age_ms * NANOS_PER_MS)
        return THOLE_OK;
    if (spec->keep_max_age)
        return differs(spec, "max_age", duration_text(has, ns), "at least a second", reterr);
    if (spec->max_age_ms != 0)
        (void)duration_text(needed, spec->max_age_ms * NANOS_PER_MS);
    return differs(spec, "max_age", duration_text(has, ns), needed, reterr);
}

static thole_status verify_config(struct stream_spec *spec, thole_slice config, thole_error *reterr)
{
    THOLE_TRY(want_absent(spec, config, "mirror", reterr));
    THOLE_TRY(want_absent(spec, config, "sources", reterr));
    THOLE_TRY(want_absent(spec, config, "subject_transform", reterr));
    THOLE_TRY(want_bool(spec, config, "sealed", false, reterr));
    THOLE_TRY(want_subjects(spec, config, reterr));
    THOLE_TRY(want_text(spec, config, "retention", spec->retention, reterr));
    THOLE_TRY(want_text(spec, config, "storage", "file", reterr));
    if (!spec->any_discard)
        THOLE_TRY(want_text(spec, config, "discard", spec->discard_old ? "old" : "new", reterr));
    THOLE_TRY(want_max_age(spec, config, reterr));
    THOLE_TRY(want_limit(spec, config, "max_msgs_per_subject", spec->max_per_subject, reterr));
    THOLE_TRY(want_limit(spec, config, "max_consumers", 0, reterr));
    if (spec->no_limits) {
        THOLE_TRY(want_limit(spec, config, "max_msgs", 0, reterr));
        THOLE_TRY(want_limit(spec, config, "max_bytes", 0, reterr));
    }
    THOLE_TRY(want_limit(spec, config, "max_msg_size", 0, reterr));
    THOLE_TRY(want_bool(spec, config, "discard_new_per_subject", false, reterr));
    THOLE_TRY(want_bool(spec, config, "deny_delete", spec->deny_delete, reterr));
    THOLE_TRY(want_bool(spec, config, "deny_purge", spec->deny_purge, reterr));
    THOLE_TRY(want_bool(spec, config, "allow_rollup_hdrs", spec->allow_rollup, reterr));
    THOLE_TRY(want_bool(spec, config, "no_ack", false, reterr));
    THOLE_TRY(want_replicas(spec, config, reterr));
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

/* ---- what an earlier version has made ---- */

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

thole_status spec_ensure(struct connection *connection, struct stream_spec *spec, thole_error *reterr)
{
    thole_status status = spec_verify(connection, spec, reterr);
    if (status == THOLE_INVALID && (spec->lift_max_per_subject || spec->add_subjects)) {
        THOLE_TRY(bring_forward(connection, spec, reterr));
        status = spec_verify(connection, spec, reterr);
    }
    if (status != THOLE_NOT_FOUND)
        return status;
    THOLE_TRY(spec_create(connection, spec, reterr));
    status = spec_verify(connection, spec, reterr);
    if (status == THOLE_NOT_FOUND) /* in a cluster: another engine's request is still being processed */
        return thole_fail(reterr, THOLE_UNAVAILABLE, "stream %s is being made by another engine: try again",
                          spec->name);
    return status;
}
