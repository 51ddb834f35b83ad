#include "cloud_event.h"
#include "jscan.h"
#include "json.h"
#include "json_check.h"
#include "percent.h"
#include "text.h"
#include "utf8.h"
#include <assert.h>
#include <string.h>
#include <strings.h>

#define STRUCTURED "application/cloudevents"
/* For error texts: "%.*s" */
#define SHORT(s) (int)((s).len < 80 ? (s).len : 80), (const char *)(s).ptr

struct attributes {
    struct cloud_attribute *items; /* EVENT_ATTRIBUTES_MAX of them */
    size_t len;
    struct arena *arena;
    const char *where; /* "header ce-", "member " */
    thole_error *reterr;
};

/* ---- small parts ---- */

static bool same_folded(thole_slice a, const char *b)
{
    return a.len == strlen(b) && strncasecmp((const char *)a.ptr, b, a.len) == 0;
}

static bool begins_folded(thole_slice text, const char *prefix)
{
    size_t const len = strlen(prefix);
    return text.len >= len && strncasecmp((const char *)text.ptr, prefix, len) == 0;
}

thole_slice event_message_header(const struct event_message *message, const char *name)
{
    for (size_t i = 0; i < message->headers_len; i++)
        if (same_folded(message->headers[i].name, name))
            return message->headers[i].value;
    return (thole_slice){NULL, 0};
}

/* The type without its parameters. */
static thole_slice media_type(thole_slice text)
{
    size_t len = 0;
    while (len < text.len && text.ptr[len] != ';')
        len++;
    while (len > 0 && text.ptr[len - 1] == ' ')
        len--;
    return (thole_slice){text.ptr, len};
}

/* application/json, text/json, application/problem+json; what is not said is JSON in structured mode only. */
static bool type_is_json(thole_slice content_type)
{
    thole_slice const type = media_type(content_type);
    return same_folded(type, "application/json") || same_folded(type, "text/json") ||
           (type.len > 5 && same_folded((thole_slice){type.ptr + type.len - 5, 5}, "+json"));
}

thole_slice cloud_event_attribute(const struct cloud_event *event, thole_slice name)
{
    for (size_t i = 0; i < event->attributes_len; i++)
        if (thole_slice_equal(event->attributes[i].name, name))
            return event->attributes[i].value;
    return (thole_slice){NULL, 0};
}

/* ---- attributes ---- */

bool cloud_event_name_is_good(thole_slice name)
{
    bool good = name.len > 0 && name.len <= EVENT_ATTRIBUTE_NAME_MAX;
    for (size_t i = 0; i < name.len && good; i++)
        good = (name.ptr[i] >= 'a' && name.ptr[i] <= 'z') || (name.ptr[i] >= '0' && name.ptr[i] <= '9');
    return good && !thole_slice_equal(name, THOLE_STR("data")); /* the event in JSON would have two */
}

static thole_status cloud_event_check_name(const struct attributes *to, thole_slice name)
{
    if (cloud_event_name_is_good(name))
        return THOLE_OK;
    return thole_fail(
        to->reterr, THOLE_INVALID,
        "%s%.*s: names of attributes are lower-case letters and digits, at most %d, and not data", to->where,
        SHORT(name), EVENT_ATTRIBUTE_NAME_MAX);
}

static thole_status cloud_event_add(struct attributes *to, thole_slice name, thole_slice value)
{
    THOLE_TRY(cloud_event_check_name(to, name));
    for (size_t i = 0; i < to->len; i++)
        if (thole_slice_equal(to->items[i].name, name))
            return thole_fail(to->reterr, THOLE_INVALID, "%s%.*s is there twice", to->where, THOLE_FMT(name));
    if (to->len == EVENT_ATTRIBUTES_MAX)
        return thole_fail(to->reterr, THOLE_INVALID, "the event has more than %d attributes",
                          EVENT_ATTRIBUTES_MAX);
    if (value.len > EVENT_ATTRIBUTE_MAX)
        return thole_fail(to->reterr, THOLE_INVALID, "%s%.*s has %zu bytes, at most %d are allowed",
                          to->where, THOLE_FMT(name), value.len, EVENT_ATTRIBUTE_MAX);
    if (!utf8_is_valid(value) || (value.len > 0 && memchr(value.ptr, 0, value.len) != NULL))
        return thole_fail(to->reterr, THOLE_INVALID, "%s%.*s is not UTF-8", to->where, THOLE_FMT(name));
    to->items[to->len++] = (struct cloud_attribute){name, value};
    return THOLE_OK;
}

/* Checks the attributes that each event must have. */
static thole_status check_required(const struct cloud_event *event, thole_error *reterr)
{
    static const char *const required[] = {"specversion", "id", "source", "type"};
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++)
        if (cloud_event_attribute(event, thole_slice_from(required[i])).len == 0)
            return thole_fail(reterr, THOLE_INVALID,
                              "the CloudEvent has no %s: specversion, id, source and type are required",
                              required[i]);
    thole_slice const version = cloud_event_attribute(event, THOLE_STR("specversion"));
    if (thole_slice_equal(version, THOLE_STR("1.0")))
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "the CloudEvent has specversion %.*s, only 1.0 is known",
                      SHORT(version));
}

/* ---- binary mode ---- */

/* Out of double quotes, if it is in some. @p to has room for all of it. */
static size_t cloud_event_unquote(thole_slice value, uint8_t *to)
{
    size_t len = 0;
    for (size_t i = 1; i + 1 < value.len; i++) {
        if (value.ptr[i] == '\\' && i + 2 < value.len)
            i++;
        to[len++] = value.ptr[i];
    }
    return len;
}

/* Percent-encoded bytes become themselves; a % without two digits stays. */
static thole_status decode_header(struct arena *arena, thole_slice value, thole_slice *ret)
{
    bool const quoted = value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"';
    *ret = value;
    if (!quoted && (value.len == 0 || memchr(value.ptr, '%', value.len) == NULL))
        return THOLE_OK;
    uint8_t *const to = arena_alloc(arena, value.len + 1);
    if (to == NULL)
        return arena_status(arena);
    size_t from_len = value.len, len = 0;
    if (quoted)
        from_len = cloud_event_unquote(value, to);
    else
        memcpy(to, value.ptr, value.len);
    for (size_t i = 0; i < from_len; i++, len++) {
        int const byte = percent_byte((thole_slice){to, from_len}, i);
        to[len] = byte >= 0 ? (uint8_t)byte : to[i];
        i += byte >= 0 ? 2 : 0;
    }
    *ret = (thole_slice){to, len};
    return THOLE_OK;
}

/* Clients may change the case of headers. */
static void cloud_event_lower(uint8_t *to, thole_slice from)
{
    for (size_t i = 0; i < from.len; i++)
        to[i] = from.ptr[i] >= 'A' && from.ptr[i] <= 'Z' ? (uint8_t)(from.ptr[i] + ('a' - 'A')) : from.ptr[i];
}

static thole_status cloud_event_read_binary(const struct event_message *message, struct attributes *to,
                                            struct cloud_event *ret)
{
    thole_slice value;
    for (size_t i = 0; i < message->headers_len; i++) {
        const struct event_header *const header = &message->headers[i];
        if (!begins_folded(header->name, "ce-"))
            continue;
        uint8_t *const name = arena_alloc(to->arena, header->name.len);
        if (name == NULL || decode_header(to->arena, header->value, &value) != THOLE_OK)
            return thole_fail(to->reterr, arena_status(to->arena), "the event's headers are too large");
        cloud_event_lower(name, (thole_slice){header->name.ptr + 3, header->name.len - 3});
        THOLE_TRY(cloud_event_add(to, (thole_slice){name, header->name.len - 3}, value));
    }
    thole_slice const type = event_message_header(message, "content-type");
    ret->attributes_len = to->len;
    if (type.len > 0 && cloud_event_attribute(ret, THOLE_STR("datacontenttype")).len == 0)
        THOLE_TRY(cloud_event_add(to, THOLE_STR("datacontenttype"), type));
    ret->attributes_len = to->len;
    ret->data = message->body;
    ret->data_is_json = type_is_json(cloud_event_attribute(ret, THOLE_STR("datacontenttype"))) &&
                        json_is_valid(message->body);
    return THOLE_OK;
}

/* ---- structured mode ---- */

/* The text of a string, without its escapes. */
static thole_status cloud_event_text_of(struct arena *arena, thole_slice value, thole_slice *ret)
{
    struct buf text;
    buf_init(&text, value.len);
    thole_status status = json_text(value, &text) ? THOLE_OK : THOLE_INVALID;
    if (status == THOLE_OK)
        status = arena_dup(arena, buf_bytes(&text), ret);
    buf_release(&text);
    return status;
}

static thole_status read_base64(struct attributes *to, thole_slice value, thole_slice *ret)
{
    struct buf bytes;
    thole_slice text;
    THOLE_TRY(cloud_event_text_of(to->arena, value, &text));
    buf_init(&bytes, text.len);
    thole_status status = base64_decode(text, &bytes) ? THOLE_OK : THOLE_INVALID;
    if (status == THOLE_OK)
        status = arena_dup(to->arena, buf_bytes(&bytes), ret);
    buf_release(&bytes);
    return status;
}

static thole_status read_member(struct attributes *to, thole_slice key, thole_slice value)
{
    thole_slice text = value;
    if (thole_slice_equal(value, THOLE_STR("null")))
        return THOLE_OK; /* like an absent one */
    if (value.ptr[0] == '{' || value.ptr[0] == '[')
        return thole_fail(to->reterr, THOLE_INVALID, "the event's member %.*s is no text, number or boolean",
                          SHORT(key));
    if (value.ptr[0] == '"') {
        thole_status const status = cloud_event_text_of(to->arena, value, &text);
        if (status != THOLE_OK)
            return thole_fail(to->reterr, status, "the event's member %.*s is no text", SHORT(key));
    }
    return cloud_event_add(to, key, text);
}

/* Data that is JSON stays JSON; a string with another content type is its text. */
static thole_status cloud_event_read_data(struct attributes *to, thole_slice data, thole_slice base64,
                                          struct cloud_event *ret)
{
    thole_slice const type = cloud_event_attribute(ret, THOLE_STR("datacontenttype"));
    if (data.ptr != NULL && base64.ptr != NULL)
        return thole_fail(to->reterr, THOLE_INVALID, "the event has both data and data_base64");
    if (base64.ptr != NULL) {
        thole_status const status = read_base64(to, base64, &ret->data);
        ret->data_is_json = status == THOLE_OK && type_is_json(type) && json_is_valid(ret->data);
        return status == THOLE_OK ? THOLE_OK
                                  : thole_fail(to->reterr, status, "the event's data_base64 is no base64");
    }
    ret->data = data;
    ret->data_is_json = data.ptr != NULL;
    if (data.ptr == NULL || data.ptr[0] != '"' || type.len == 0 || type_is_json(type))
        return THOLE_OK;
    ret->data_is_json = false;
    thole_status const status = cloud_event_text_of(to->arena, data, &ret->data);
    return status == THOLE_OK ? THOLE_OK : thole_fail(to->reterr, status, "the event's data is no text");
}

static thole_status read_structured(const struct event_message *message, struct attributes *to,
                                    struct cloud_event *ret)
{
    thole_slice key, value, data = {NULL, 0}, base64 = {NULL, 0};
    size_t at = 0;
    if (!json_is_valid(message->body))
        return thole_fail(to->reterr, THOLE_INVALID,
                          "the Content-Type says a CloudEvent in JSON, and the body is no JSON");
    while (json_field(message->body, &at, &key, &value)) {
        thole_slice *const kept = thole_slice_equal(key, THOLE_STR("data"))          ? &data
                                  : thole_slice_equal(key, THOLE_STR("data_base64")) ? &base64
                                                                                     : NULL;
        if (kept == NULL)
            THOLE_TRY(read_member(to, key, value));
        else if (kept->ptr != NULL)
            return thole_fail(to->reterr, THOLE_INVALID, "member %.*s is there twice", THOLE_FMT(key));
        else
            *kept = value;
    }
    if (!json_ends(message->body, at))
        return thole_fail(to->reterr, THOLE_INVALID, "the event is no JSON object");
    ret->attributes_len = to->len;
    return cloud_event_read_data(to, data, base64, ret);
}

static thole_status other_format(thole_slice type, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_INVALID,
                      "%.*s is not known: send application/cloudevents+json, one event in a message, or the "
                      "attributes as headers ce-*",
                      SHORT(type));
}

thole_status cloud_event_read(const struct event_message *message, struct arena *arena,
                              struct cloud_event *ret, thole_error *reterr)
{
    thole_slice const type = media_type(event_message_header(message, "content-type"));
    bool const structured = begins_folded(type, STRUCTURED);
    struct attributes to = {.arena = arena, .where = structured ? "member " : "header ce-", .reterr = reterr};
    *ret = (struct cloud_event){.data = message->body};
    if (structured && !same_folded(type, STRUCTURED "+json"))
        return other_format(type, reterr);
    if (!structured && event_message_header(message, "ce-specversion").len == 0) {
        ret->data_is_json = json_is_valid(message->body);
        return THOLE_OK;
    }
    to.items = arena_array(arena, EVENT_ATTRIBUTES_MAX, sizeof *to.items);
    if (to.items == NULL)
        return thole_fail(reterr, arena_status(arena), "no memory for the event's attributes");
    ret->attributes = to.items;
    THOLE_TRY((structured ? read_structured : cloud_event_read_binary)(message, &to, ret));
    ret->present = true;
    return check_required(ret, reterr);
}

/* ---- writing ---- */

static void cloud_event_write_base64(struct json *json, thole_slice bytes)
{
    struct buf text;
    buf_init(&text, bytes.len / 3 * 4 + 8);
    text_base64(&text, bytes);
    json_member(json, "data_base64", buf_bytes(&text));
    buf_release(&text);
}

void cloud_event_write(const struct cloud_event *event, struct buf *to)
{
    struct json json;
    char key[EVENT_ATTRIBUTE_NAME_MAX + 1];
    assert(event->present);
    json_to_buf(&json, to);
    json_object(&json);
    for (size_t i = 0; i < event->attributes_len; i++) {
        thole_slice const name = event->attributes[i].name;
        memcpy(key, name.ptr, name.len);
        key[name.len] = '\0';
        json_member(&json, key, event->attributes[i].value);
    }
    if (event->data_is_json)
        json_member_copy(&json, THOLE_STR("data"), event->data);
    else if (event->data.len > 0 && utf8_is_valid(event->data))
        json_member(&json, "data", event->data);
    else if (event->data.len > 0)
        cloud_event_write_base64(&json, event->data);
    json_end(&json);
}

void cloud_event_header_value(thole_slice value, struct buf *to)
{
    for (size_t i = 0; i < value.len; i++) {
        uint8_t const c = value.ptr[i];
        if (c > ' ' && c < 0x7f && c != '"' && c != '%')
            buf_append(to, &c, 1);
        else
            buf_printf(to, "%%%02X", c);
    }
}
