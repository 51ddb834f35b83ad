/* The REJECTED stream. */
#include "rejected.h"
#include "header_names.h"
#include "jscan.h"
#include "message.h"
#include "reader.h"
#include "subject.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NUMBER_BYTES = 24, TIME_BYTES = 40, HEADER_BYTES_MAX = 4096, ID_BYTES = 160 };

static thole_slice rejected_number_text(char text[NUMBER_BYTES], uint64_t n)
{
    return (thole_slice){(const uint8_t *)text,
                         (size_t)snprintf(text, NUMBER_BYTES, "%llu", (unsigned long long)n)};
}

static thole_slice rejected_time_text(char text[TIME_BYTES], uint64_t ns)
{
    time_t const seconds = (time_t)(ns / 1000000000u);
    struct tm parts = {.tm_sec = 0};
    char day[24];
    (void)gmtime_r(&seconds, &parts);
    (void)strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
    int const len = snprintf(text, TIME_BYTES, "%s.%09uZ", day, (unsigned)(ns % 1000000000u));
    return (thole_slice){(const uint8_t *)text, (size_t)len};
}

/* The bytes come from any client. */
static void append_printable(struct buf *to, thole_slice text, bool spaces)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t const c = text.ptr[i];
        if ((c > ' ' && c < 0x7f) || (c == ' ' && spaces))
            buf_append(to, &c, 1);
        else
            buf_printf(to, "%%%02X", c);
    }
}

static thole_status rejected_publish_message(struct requests *requests, const char *subject,
                                             const struct rejected_item *item, thole_slice reason,
                                             thole_slice was, uint64_t token, thole_error *reterr)
{
    char sequence[NUMBER_BYTES], bytes[NUMBER_BYTES], when[TIME_BYTES], id[ID_BYTES];
    if (item->binding != NULL)
        (void)snprintf(id, sizeof id, "bind-%s.%llu.%llu", item->binding, (unsigned long long)item->sequence,
                       (unsigned long long)item->stored_ns);
    else
        (void)snprintf(id, sizeof id, item->part == 0 ? "%u.%llu.%llu" : "%u.%llu.%llu.%u", item->partition,
                       (unsigned long long)item->sequence, (unsigned long long)item->stored_ns, item->part);
    struct header const headers[] = {{HEADER_CODE, item->code},
                                     {HEADER_REASON, reason},
                                     {HEADER_SUBJECT, was},
                                     {HEADER_SEQUENCE, rejected_number_text(sequence, item->sequence)},
                                     {HEADER_TIME, rejected_time_text(when, item->stored_ns)},
                                     {HEADER_BYTES, rejected_number_text(bytes, item->bytes)}};
    struct publish const publish = {.subject = subject,
                                    .body = item->payload,
                                    .message_id = item->event != NULL ? item->event : id,
                                    .headers = headers,
                                    .headers_len = sizeof headers / sizeof headers[0]};
    return requests_publish(requests, &publish, token, reterr);
}

thole_status rejected_publish(struct requests *requests, const char *ns, const struct rejected_item *item,
                              uint64_t token, thole_error *reterr)
{
    char subject[SUBJECT_BYTES_MAX];
    struct buf reason, was;
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    if (item->binding != NULL)
        (void)snprintf(subject, sizeof subject, "thole.%s.rejected.bind-%s", ns, item->binding);
    else
        (void)snprintf(subject, sizeof subject, "thole.%s.rejected.%u", ns, item->partition);
    buf_init(&reason, HEADER_BYTES_MAX);
    buf_init(&was, HEADER_BYTES_MAX);
    append_printable(&reason, item->reason, true);
    append_printable(&was, item->subject, false);
    thole_status status = buf_status(&reason) != THOLE_OK ? buf_status(&reason) : buf_status(&was);
    if (status == THOLE_OK)
        status = rejected_publish_message(requests, subject, item, buf_bytes(&reason), buf_bytes(&was), token,
                                          reterr);
    else
        status = thole_fail(reterr, status, "the headers of a rejected message do not fit");
    buf_release(&reason);
    buf_release(&was);
    return status;
}

/* ---- reading ---- */

struct reading {
    struct rejected_list *list;
    size_t cap;
    thole_error *reterr;
};

static uint64_t rejected_number_of(const struct delivery *delivery, const char *key)
{
    uint64_t n = 0;
    return json_uint(delivery_header(delivery, key), &n) ? n : 0;
}

static uint64_t rejected_read_time(thole_slice text)
{
    struct tm parts = {.tm_sec = 0};
    char copy[TIME_BYTES] = "";
    unsigned nanos = 0;
    if (text.len >= sizeof copy)
        return 0;
    memcpy(copy, text.ptr == NULL ? (const uint8_t *)"" : text.ptr, text.len);
    const char *rest = strptime(copy, "%Y-%m-%dT%H:%M:%S", &parts);
    if (rest == NULL || sscanf(rest, ".%9uZ", &nanos) != 1)
        return 0;
    time_t const seconds = timegm(&parts);
    return seconds < 0 ? 0 : (uint64_t)seconds * 1000000000u + nanos;
}

static thole_status rejected_take(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    enum { TOKEN_PARTITION = 3 };
    struct reading *reading = arg;
    struct rejected_list *list = reading->list;
    uint64_t partition = 0;
    (void)json_uint(subject_nth(delivery->subject, TOKEN_PARTITION), &partition);
    if (list->len == reading->cap)
        return THOLE_OK;
    struct rejected_item item = {.partition = (uint32_t)partition,
                                 .number = sequence,
                                 .sequence = rejected_number_of(delivery, HEADER_SEQUENCE),
                                 .stored_ns = rejected_read_time(delivery_header(delivery, HEADER_TIME)),
                                 .bytes = rejected_number_of(delivery, HEADER_BYTES)};
    thole_status status = arena_dup(&list->arena, delivery_header(delivery, HEADER_CODE), &item.code);
    if (status == THOLE_OK)
        status = arena_dup(&list->arena, delivery_header(delivery, HEADER_REASON), &item.reason);
    if (status == THOLE_OK)
        status = arena_dup(&list->arena, delivery_header(delivery, HEADER_SUBJECT), &item.subject);
    if (status == THOLE_OK)
        status = arena_dup(&list->arena, delivery->body, &item.payload);
    if (status != THOLE_OK)
        return thole_fail(reading->reterr, status, "too many rejected messages: ask for fewer");
    list->items[list->len++] = item;
    return THOLE_OK;
}

thole_status rejected_read(struct connection *connection, const char *ns, struct rejected_list *list,
                           thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX];
    struct stream_bounds bounds;
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    (void)snprintf(stream, sizeof stream, "THOLE_%s_REJECTED", ns);
    THOLE_TRY(stream_bounds(connection, stream, &bounds, reterr));
    uint64_t const last = list->behind > 0 && list->behind <= bounds.last ? list->behind - 1 : bounds.last;
    if (bounds.messages == 0 || last < bounds.first)
        return THOLE_OK;
    uint64_t const there = last - bounds.first + 1, n = there < list->most ? there : list->most;
    struct reading reading = {.list = list, .cap = (size_t)n, .reterr = reterr};
    assert(list->len == 0 && n <= list->most && last - n + 1 >= bounds.first);
    list->items = arena_array(&list->arena, reading.cap, sizeof *list->items);
    if (list->items == NULL)
        return thole_fail(reterr, THOLE_LIMIT, "too many rejected messages: ask for fewer");
    return stream_fetch(connection, stream, last - n + 1, last, rejected_take, &reading, reterr);
}
