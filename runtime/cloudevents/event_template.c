#include "event_template.h"
#include "jscan.h"
#include <assert.h>
#include <string.h>

#define SHORT(s) (int)((s).len < 80 ? (s).len : 80), (const char *)(s).ptr

enum source { SOURCE_SUBJECT, SOURCE_HEADER, SOURCE_CE, SOURCE_JSON, SOURCE_STREAM, SOURCE_SEQUENCE };
static const struct {
    const char *word;
    enum source source;
    bool may, must; /* a path after a dot */
} sources[] = {
    {"subject", SOURCE_SUBJECT, true, false},
    {"header", SOURCE_HEADER, true, true},
    {"ce", SOURCE_CE, true, true},
    {"json", SOURCE_JSON, true, true},
    {"stream", SOURCE_STREAM, false, false},
    {"sequence", SOURCE_SEQUENCE, false, false},
};

/* A piece of a template: literal text, or what stands between braces. */
struct piece {
    bool place;
    thole_slice text; /* literal, or without the braces */
    enum source source;
    thole_slice path; /* after the first dot */
    bool as_name;
};

static thole_slice event_template_part(thole_slice text, size_t from, size_t to)
{
    return (thole_slice){text.ptr + from, to - from};
}

static size_t event_template_find(thole_slice text, size_t from, char byte)
{
    while (from < text.len && text.ptr[from] != byte)
        from++;
    return from;
}

/* ---- reading a template ---- */

static thole_status bad_place(thole_slice text, const char *why, thole_error *reterr)
{
    return thole_fail(
        reterr, THOLE_INVALID,
        "{%.*s}: %s; there are {subject.N}, {subject}, {header.NAME}, {ce.ATTRIBUTE}, {json.PATH}, "
        "{stream} and {sequence}, each perhaps with |name behind it",
        SHORT(text), why);
}

static bool is_digits(thole_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    return text.len > 0 && text.len <= 4;
}

static thole_status event_template_read_place(thole_slice text, struct piece *ret, thole_error *reterr)
{
    size_t const bar = event_template_find(text, 0, '|');
    thole_slice const inner = event_template_part(text, 0, bar);
    size_t const dot = event_template_find(inner, 0, '.');
    thole_slice const word = event_template_part(inner, 0, dot);
    *ret = (struct piece){.place = true, .text = text, .as_name = bar < text.len};
    if (ret->as_name && !thole_slice_equal(event_template_part(text, bar + 1, text.len), THOLE_STR("name")))
        return bad_place(text, "only name may stand behind the bar", reterr);
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        if (!thole_slice_equal(word, thole_slice_from(sources[i].word)))
            continue;
        ret->source = sources[i].source;
        ret->path = dot < inner.len ? event_template_part(inner, dot + 1, inner.len) : (thole_slice){NULL, 0};
        if (dot < inner.len ? !sources[i].may || ret->path.len == 0 : sources[i].must)
            return bad_place(text, sources[i].may ? "something must stand behind the dot" : "it takes no dot",
                             reterr);
        if (ret->source == SOURCE_SUBJECT && ret->path.ptr != NULL &&
            (!is_digits(ret->path) || ret->path.ptr[0] == '0'))
            return bad_place(text, "tokens of the subject are counted from 1", reterr);
        return THOLE_OK;
    }
    return bad_place(text, "there is no such place", reterr);
}

/* The next piece. *at: where it begins, then where the next one does. */
static thole_status read_piece(thole_slice text, size_t *at, struct piece *ret, thole_error *reterr)
{
    uint8_t const c = text.ptr[*at];
    bool const doubled = *at + 1 < text.len && text.ptr[*at + 1] == c;
    assert(*at < text.len);
    if ((c == '{' || c == '}') && doubled) {
        *ret = (struct piece){.text = event_template_part(text, *at, *at + 1)};
        *at += 2;
        return THOLE_OK;
    }
    if (c == '}')
        return thole_fail(reterr, THOLE_INVALID, "a } without its { in %.*s; write }} for a brace",
                          SHORT(text));
    if (c != '{') {
        size_t const open = event_template_find(text, *at, '{'), close = event_template_find(text, *at, '}');
        size_t const end = open < close ? open : close;
        *ret = (struct piece){.text = event_template_part(text, *at, end)};
        *at = end;
        return THOLE_OK;
    }
    size_t const end = event_template_find(text, *at, '}');
    if (end == text.len)
        return thole_fail(reterr, THOLE_INVALID, "a { without its } in %.*s; write {{ for a brace",
                          SHORT(text));
    thole_slice const inner = event_template_part(text, *at + 1, end);
    *at = end + 1;
    return event_template_read_place(inner, ret, reterr);
}

thole_status event_template_check(thole_slice text, thole_error *reterr)
{
    struct piece piece;
    size_t places = 0;
    if (text.len == 0 || text.len > TEMPLATE_BYTES_MAX)
        return thole_fail(reterr, THOLE_INVALID, "a template has 1 to %d bytes, this one %zu",
                          TEMPLATE_BYTES_MAX, text.len);
    for (size_t at = 0; at < text.len;) {
        THOLE_TRY(read_piece(text, &at, &piece, reterr));
        places += piece.place;
    }
    if (places > TEMPLATE_PLACES_MAX)
        return thole_fail(reterr, THOLE_INVALID, "a template has at most %d places in braces, this one %zu",
                          TEMPLATE_PLACES_MAX, places);
    return THOLE_OK;
}

/* ---- the value of a place ---- */

static thole_status event_template_missing(const struct piece *piece, const char *why, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_INVALID, "{%.*s}: %s", SHORT(piece->text), why);
}

static size_t event_template_number_of(thole_slice digits)
{
    size_t n = 0;
    for (size_t i = 0; i < digits.len; i++)
        n = n * 10 + (size_t)(digits.ptr[i] - '0');
    return n;
}

/* From 1; empty: there are fewer. */
static thole_slice subject_token_at(thole_slice subject, thole_slice number)
{
    size_t n = event_template_number_of(number), from = 0;
    for (; n > 1 && from < subject.len; n--)
        from = event_template_find(subject, from, '.') + 1;
    return from < subject.len ? event_template_part(subject, from, event_template_find(subject, from, '.'))
                              : (thole_slice){NULL, 0};
}

/* Number of members of that name; *ret is the first. Which of several counts is not the same for all readers.
 */
static size_t event_template_member(thole_slice value, thole_slice key, thole_slice *ret)
{
    thole_slice name, found;
    size_t n = 0;
    for (size_t at = 0; json_field(value, &at, &name, &found);)
        if (thole_slice_equal(name, key) && n++ == 0)
            *ret = found;
    return n;
}

static size_t event_template_item(thole_slice value, thole_slice key, thole_slice *ret)
{
    size_t at = 0;
    if (!is_digits(key))
        return 0;
    for (size_t n = event_template_number_of(key); json_item(value, &at, ret); n--)
        if (n == 0)
            return 1;
    return 0;
}

static thole_status json_place(const struct piece *piece, const struct cloud_event *event, struct buf *to,
                               thole_error *reterr)
{
    thole_slice value = event->data, rest = piece->path;
    if (!event->data_is_json)
        return event_template_missing(piece, "the data is no JSON", reterr);
    while (value.len > 0 &&
           (value.ptr[0] == ' ' || value.ptr[0] == '\n' || value.ptr[0] == '\t' || value.ptr[0] == '\r'))
        value = event_template_part(value, 1, value.len);
    while (rest.len > 0) {
        size_t const dot = event_template_find(rest, 0, '.');
        thole_slice const key = event_template_part(rest, 0, dot), within = value;
        rest = dot < rest.len ? event_template_part(rest, dot + 1, rest.len) : (thole_slice){NULL, 0};
        bool const array = within.len > 0 && within.ptr[0] == '[';
        size_t const found = (array ? event_template_item : event_template_member)(within, key, &value);
        if (found != 1)
            return event_template_missing(
                piece, found == 0 ? "the data has no such member" : "the data has that member twice", reterr);
    }
    if (value.len > 0 && value.ptr[0] == '"')
        return json_text(value, to) ? THOLE_OK : event_template_missing(piece, "it is no text", reterr);
    if (value.ptr[0] == '{' || value.ptr[0] == '[' || thole_slice_equal(value, THOLE_STR("null")))
        return event_template_missing(piece, "it is no text, number or boolean", reterr);
    buf_slice(to, value);
    return THOLE_OK;
}

static thole_status append_place(const struct piece *piece, const struct event_message *message,
                                 const struct cloud_event *event, struct buf *to, thole_error *reterr)
{
    char name[TEMPLATE_BYTES_MAX + 1];
    switch (piece->source) {
    case SOURCE_SUBJECT:
        buf_slice(to, piece->path.ptr == NULL ? message->subject
                                              : subject_token_at(message->subject, piece->path));
        return THOLE_OK;
    case SOURCE_HEADER:
        memcpy(name, piece->path.ptr, piece->path.len);
        name[piece->path.len] = '\0';
        buf_slice(to, event_message_header(message, name));
        return THOLE_OK;
    case SOURCE_CE:
        if (!event->present)
            return event_template_missing(piece, "the message is no CloudEvent", reterr);
        buf_slice(to, cloud_event_attribute(event, piece->path));
        return THOLE_OK;
    case SOURCE_JSON: return json_place(piece, event, to, reterr);
    case SOURCE_STREAM: buf_slice(to, message->stream); return THOLE_OK;
    case SOURCE_SEQUENCE: buf_printf(to, "%llu", (unsigned long long)message->sequence); return THOLE_OK;
    }
    return THOLE_INVALID;
}

/* Of a filter that ends with > there may be any number. */
static bool may_have_token(thole_slice subject, thole_slice number)
{
    size_t tokens = 1;
    for (size_t i = 0; i < subject.len; i++)
        tokens += subject.ptr[i] == '.';
    return event_template_number_of(number) <= tokens ||
           (subject.len > 0 && subject.ptr[subject.len - 1] == '>');
}

static thole_status event_template_check_fits(const struct piece *piece, thole_slice subject,
                                              thole_error *reterr)
{
    if (piece->source == SOURCE_SUBJECT && piece->path.ptr != NULL && !may_have_token(subject, piece->path))
        return thole_fail(reterr, THOLE_INVALID, "{%.*s}: subjects of %.*s have fewer tokens",
                          SHORT(piece->text), SHORT(subject));
    if (piece->source == SOURCE_CE && !cloud_event_name_is_good(piece->path))
        return event_template_missing(
            piece, "names of attributes are lower-case letters and digits, and not data", reterr);
    return THOLE_OK;
}

thole_status event_template_fits(thole_slice text, thole_slice subject, thole_error *reterr)
{
    struct piece piece;
    for (size_t at = 0; at < text.len;) {
        THOLE_TRY(read_piece(text, &at, &piece, reterr));
        if (piece.place)
            THOLE_TRY(event_template_check_fits(&piece, subject, reterr));
    }
    return THOLE_OK;
}

static void make_name(uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint8_t const c = bytes[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'))
            bytes[i] = '_';
    }
}

thole_status event_template_expand(thole_slice text, const struct event_message *message,
                                   const struct cloud_event *event, struct buf *to, thole_error *reterr)
{
    struct piece piece;
    for (size_t at = 0; at < text.len;) {
        THOLE_TRY(read_piece(text, &at, &piece, reterr));
        if (!piece.place) {
            buf_slice(to, piece.text);
            continue;
        }
        size_t const before = to->len;
        THOLE_TRY(append_place(&piece, message, event, to, reterr));
        if (buf_status(to) != THOLE_OK)
            return thole_fail(reterr, THOLE_INVALID, "{%.*s}: what stands there is too long",
                              SHORT(piece.text));
        if (to->len == before)
            return event_template_missing(&piece, "the message does not have it", reterr);
        if (piece.as_name)
            make_name(to->ptr + before, to->len - before);
    }
    return THOLE_OK;
}
