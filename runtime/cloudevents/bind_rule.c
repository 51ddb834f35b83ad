#include "bind_rule.h"
#include "cloud_event.h"
#include "event_template.h"
#include "jscan.h"
#include "json_check.h"
#include "message.h"
#include <string.h>

const char *const bind_action_names[] = {"start", "signal", "signal-with-start", NULL};
const char *const bind_data_names[] = {"data", "event", NULL};
const char *const bind_from_names[] = {"all", "new", NULL};

/* ---- checks ---- */

/* A subject filter: tokens of printable ASCII without blanks, * and > alone in theirs, > the last. */
static thole_status check_subject(thole_slice subject, thole_error *reterr)
{
    bool good = subject.len > 0 && subject.len <= BIND_SUBJECT_MAX;
    size_t begin = 0;
    for (size_t i = 0; good && i <= subject.len; i++) {
        uint8_t const c = i < subject.len ? subject.ptr[i] : '.';
        good = c > ' ' && c < 0x7f;
        if (c != '.')
            continue;
        size_t const len = i - begin;
        const uint8_t *const token = subject.ptr + begin;
        bool const all = len == 1 && token[0] == '>';
        good = good && len > 0 && (!all || i == subject.len) &&
               (len == 1 || (memchr(token, '*', len) == NULL && memchr(token, '>', len) == NULL));
        begin = i + 1;
    }
    if (good)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID,
                      "the subject is no filter: 1 to %d bytes, tokens with dots between them, * for any "
                      "token, > at the end for all that follow, such as orders.*.created",
                      BIND_SUBJECT_MAX);
}

static thole_status check_stream(thole_slice stream, thole_error *reterr)
{
    bool good = stream.len > 0 && stream.len <= BIND_STREAM_MAX;
    for (size_t i = 0; i < stream.len && good; i++)
        good = stream.ptr[i] > ' ' && stream.ptr[i] < 0x7f && memchr(".*>/\\", stream.ptr[i], 5) == NULL;
    return good ? THOLE_OK
                : thole_fail(reterr, THOLE_INVALID,
                             "the stream's name is not one of a stream: 1 to %d bytes "
                             "without blanks, dots, *, > and slashes",
                             BIND_STREAM_MAX);
}

static thole_status check_template(const char *what, thole_slice text, thole_error *reterr)
{
    thole_error why = {.status = THOLE_OK};
    if (event_template_check(text, &why) == THOLE_OK)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "%s: %.400s", what, why.text);
}

static thole_status check_action(const struct bind_rule *rule, thole_error *reterr)
{
    if (rule->action == BIND_SIGNAL && rule->orchestration.len > 0)
        return thole_fail(reterr, THOLE_INVALID,
                          "a signal starts nothing: leave the orchestration out, or use signal-with-start");
    if (rule->action != BIND_SIGNAL)
        THOLE_TRY(name_check(rule->orchestration, "orchestration", reterr));
    if (rule->action == BIND_START && rule->event.len > 0)
        return thole_fail(reterr, THOLE_INVALID,
                          "a start delivers no event: leave the event out, or use signal-with-start");
    return rule->action == BIND_START ? THOLE_OK : check_template("event", rule->event, reterr);
}

thole_status bind_rule_check(const struct bind_rule *rule, thole_error *reterr)
{
    THOLE_TRY(check_subject(rule->subject, reterr));
    THOLE_TRY(check_stream(rule->stream, reterr));
    THOLE_TRY(check_action(rule, reterr));
    THOLE_TRY(check_template("instance", rule->instance, reterr));
    if (rule->in_flight == 0 || rule->in_flight > BIND_IN_FLIGHT_MAX)
        return thole_fail(reterr, THOLE_INVALID, "in_flight is 1 to %d", BIND_IN_FLIGHT_MAX);
    return THOLE_OK;
}

static thole_status bind_rule_check_fits(const char *what, thole_slice text, thole_slice subject,
                                         thole_error *reterr)
{
    thole_error why = {.status = THOLE_OK};
    if (event_template_fits(text, subject, &why) == THOLE_OK)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "%s: %.400s", what, why.text);
}

thole_status bind_rule_check_places(const struct bind_rule *rule, thole_error *reterr)
{
    THOLE_TRY(bind_rule_check_fits("instance", rule->instance, rule->subject, reterr));
    return bind_rule_check_fits("event", rule->event, rule->subject, reterr);
}

/* ---- which messages ---- */

/* The token that begins at *at, which becomes the begin of the next one; after the last token: text.len +
 * 1. */
static thole_slice next_token(thole_slice text, size_t *at)
{
    size_t const begin = *at;
    size_t end = begin;
    while (end < text.len && text.ptr[end] != '.')
        end++;
    *at = end + 1;
    return (thole_slice){text.ptr + begin, end - begin};
}

bool bind_rule_matches(const struct bind_rule *rule, thole_slice subject)
{
    size_t at = 0, filter_at = 0;
    while (filter_at <= rule->subject.len && at <= subject.len) {
        thole_slice const filter = next_token(rule->subject, &filter_at), token = next_token(subject, &at);
        if (thole_slice_equal(filter, THOLE_STR(">")))
            return true;
        if (!thole_slice_equal(filter, THOLE_STR("*")) && !thole_slice_equal(filter, token))
            return false;
    }
    return filter_at > rule->subject.len && at > subject.len;
}

/* ---- JSON ---- */

void bind_rule_write(const struct bind_rule *rule, struct json *json)
{
    json_object(json);
    json_member_number(json, "format", BIND_RULE_FORMAT);
    json_member(json, "stream", rule->stream);
    json_member(json, "subject", rule->subject);
    json_member_text(json, "action", bind_action_names[rule->action]);
    if (rule->orchestration.len > 0)
        json_member(json, "orchestration", rule->orchestration);
    json_member(json, "instance", rule->instance);
    if (rule->event.len > 0)
        json_member(json, "event", rule->event);
    json_member_text(json, "data", bind_data_names[rule->data]);
    json_member_text(json, "from", bind_from_names[rule->from]);
    json_member_number(json, "in_flight", rule->in_flight);
    json_end(json);
}

static thole_status bind_rule_read_text(thole_slice text, const char *key, struct arena *arena,
                                        thole_slice *ret, thole_error *reterr)
{
    thole_slice value;
    struct buf copy;
    *ret = (thole_slice){NULL, 0};
    if (!json_find(text, key, &value))
        return THOLE_OK;
    buf_init(&copy, value.len);
    thole_status status = json_text(value, &copy) ? arena_dup(arena, buf_bytes(&copy), ret) : THOLE_CORRUPT;
    buf_release(&copy);
    return status == THOLE_OK ? THOLE_OK : thole_fail(reterr, status, "the rule's %s is no text", key);
}

static thole_status bind_rule_read_choice(thole_slice text, const char *key, const char *const *names,
                                          unsigned *ret, thole_error *reterr)
{
    thole_slice value;
    if (json_find(text, key, &value))
        for (*ret = 0; names[*ret] != NULL; (*ret)++)
            if (json_text_is(value, names[*ret]))
                return THOLE_OK;
    return thole_fail(reterr, THOLE_CORRUPT, "the rule's %s is missing or not known", key);
}

static thole_status bind_rule_read_format(thole_slice text, thole_error *reterr)
{
    thole_slice value;
    uint64_t format = 0;
    if (!json_is_valid(text) || !json_find(text, "format", &value) || !json_uint(value, &format) ||
        format == 0)
        return thole_fail(reterr, THOLE_CORRUPT,
                          "what is stored is no rule: store it again with thole bind set");
    return format <= BIND_RULE_FORMAT
               ? THOLE_OK
               : thole_fail(reterr, THOLE_UNSUPPORTED, "the rule has format %llu: a newer thole is needed",
                            (unsigned long long)format);
}

thole_status bind_rule_read(thole_slice text, struct arena *arena, struct bind_rule *ret, thole_error *reterr)
{
    thole_slice value;
    unsigned action = 0, data = 0, from = 0;
    *ret = (struct bind_rule){.in_flight = 0};
    THOLE_TRY(bind_rule_read_format(text, reterr));
    THOLE_TRY(bind_rule_read_text(text, "stream", arena, &ret->stream, reterr));
    THOLE_TRY(bind_rule_read_text(text, "subject", arena, &ret->subject, reterr));
    THOLE_TRY(bind_rule_read_text(text, "orchestration", arena, &ret->orchestration, reterr));
    THOLE_TRY(bind_rule_read_text(text, "instance", arena, &ret->instance, reterr));
    THOLE_TRY(bind_rule_read_text(text, "event", arena, &ret->event, reterr));
    THOLE_TRY(bind_rule_read_choice(text, "action", bind_action_names, &action, reterr));
    THOLE_TRY(bind_rule_read_choice(text, "data", bind_data_names, &data, reterr));
    THOLE_TRY(bind_rule_read_choice(text, "from", bind_from_names, &from, reterr));
    if (json_find(text, "in_flight", &value) && !json_uint(value, &ret->in_flight))
        return thole_fail(reterr, THOLE_CORRUPT, "the rule's in_flight is no number");
    ret->action = (enum bind_action)action;
    ret->data = (enum bind_data)data;
    ret->from = (enum bind_from)from;
    return bind_rule_check(ret, reterr);
}
