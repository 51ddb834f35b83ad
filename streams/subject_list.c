/* A stream's subjects, in pages of the API call STREAM.INFO. */
#include "subject_list.h"
#include "api.h"
#include "jscan.h"
#include <assert.h>
#include <string.h>

/*
 * The server sorts the subjects and gives 100,000 from an offset on. Between two calls some may go, and later
 * ones move up: so a page begins before the end of the last one, and must begin at or before the last subject
 * that was handed over. Then nothing between them was left out.
 */
enum { PAGES_OVERLAP = 1000, SUBJECT_MAX = 4096 };

struct list {
    uint64_t since;
    size_t most;
    stream_subject_fn *each;
    void *arg;
    uint64_t offset, total;
    struct buf last; /* the greatest that was handed over; empty: none */
    bool more;
};

static int subject_list_order(thole_slice a, thole_slice b)
{
    size_t const shared = a.len < b.len ? a.len : b.len;
    int const differ = shared == 0 ? 0 : memcmp(a.ptr, b.ptr, shared);
    return differ != 0 ? differ : (a.len > b.len) - (a.len < b.len);
}

static bool subject_list_get_uint(thole_slice object, const char *path, uint64_t *ret)
{
    thole_slice value;
    return json_path(object, path, &value) && json_uint(value, ret);
}

/* The text between the quotes; a subject has nothing to escape. */
static bool subject_list_plain(thole_slice key)
{
    return key.len > 0 && key.len <= SUBJECT_MAX && memchr(key.ptr, '\\', key.len) == NULL;
}

static thole_status subject_list_hand_over(struct list *list, thole_slice subjects, uint64_t *ret_n,
                                           thole_error *reterr)
{
    thole_slice key, value, least = {0}, greatest = {0};
    size_t at = 0;
    *ret_n = 0;
    for (; json_field(subjects, &at, &key, &value); ++*ret_n) {
        if (!subject_list_plain(key))
            return thole_fail(reterr, THOLE_CORRUPT, "a stream's subject that is none");
        if (*ret_n == 0 || subject_list_order(key, least) < 0)
            least = key;
        if (*ret_n == 0 || subject_list_order(key, greatest) > 0)
            greatest = key;
        list->each(list->arg, key);
    }
    if (list->offset > 0 && (*ret_n == 0 || subject_list_order(least, buf_bytes(&list->last)) > 0))
        return thole_fail(reterr, THOLE_UNAVAILABLE, "subjects were removed while they were listed");
    if (*ret_n > 0) {
        buf_clear(&list->last);
        buf_slice(&list->last, greatest);
    }
    return buf_status(&list->last);
}

static thole_status subject_list_page(struct list *list, thole_slice answer, thole_error *reterr)
{
    uint64_t last = 0, n = 0;
    thole_slice subjects = {0};
    /* Only the total shows whether a server does not know the filter or finds nothing. */
    if (!subject_list_get_uint(answer, "state.last_seq", &last) ||
        !subject_list_get_uint(answer, "total", &list->total) || list->total == 0)
        return thole_fail(reterr, THOLE_CORRUPT,
                          "the server's answer does not say how many subjects there are");
    if (last < list->since)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "the server that answered has not got to message %llu",
                          (unsigned long long)list->since);
    if (list->total > list->most)
        return thole_fail(reterr, THOLE_LIMIT, "the stream has %llu subjects",
                          (unsigned long long)list->total);
    (void)json_path(answer, "state.subjects", &subjects);
    THOLE_TRY(subject_list_hand_over(list, subjects, &n, reterr));
    list->more = list->offset + n < list->total;
    if (list->more && n <= PAGES_OVERLAP)
        return thole_fail(reterr, THOLE_CORRUPT, "the server's list of subjects ends early");
    list->offset += list->more ? n - PAGES_OVERLAP : 0;
    return THOLE_OK;
}

static thole_status subject_list_ask(struct connection *connection, const char *stream, struct list *list,
                                     struct buf *answer, thole_error *reterr)
{
    struct api_body body;
    api_body_begin(&body);
    json_member(&body.json, "subjects_filter", THOLE_STR(">"));
    json_member_number(&body.json, "offset", list->offset);
    THOLE_TRY(api_call(connection, "STREAM.INFO", stream, api_body_end(&body), answer, NULL, reterr));
    return subject_list_page(list, buf_bytes(answer), reterr);
}

thole_status stream_subjects(struct connection *connection, const char *stream, uint64_t since, size_t most,
                             stream_subject_fn *each, void *arg, thole_error *reterr)
{
    struct list list = {.since = since, .most = most, .each = each, .arg = arg};
    struct buf answer;
    thole_status status;
    assert(since > 0);
    buf_init(&answer, API_ANSWER_MAX);
    buf_init(&list.last, SUBJECT_MAX);
    do
        status = subject_list_ask(connection, stream, &list, &answer, reterr);
    while (status == THOLE_OK && list.more);
    buf_release(&list.last);
    buf_release(&answer);
    return status;
}

/* ---- some of them, counted ---- */

thole_status stream_counts_request(struct buf *to, const char *filter, uint64_t offset)
{
    struct json json;
    buf_clear(to);
    json_to_buf(&json, to);
    json_object(&json);
    json_member_text(&json, "subjects_filter", filter);
    json_member_number(&json, "offset", offset);
    json_end(&json);
    return buf_status(to);
}

static thole_status hand_over_counts(thole_slice subjects, stream_count_fn *each, void *arg,
                                     uint64_t *ret_here, thole_error *reterr)
{
    thole_slice key, value;
    uint64_t messages;
    size_t at = 0;
    *ret_here = 0;
    for (; json_field(subjects, &at, &key, &value); ++*ret_here) {
        if (!subject_list_plain(key) || !json_uint(value, &messages))
            return thole_fail(reterr, THOLE_CORRUPT, "a stream's subject that is none, or without a number");
        each(arg, key, messages);
    }
    return THOLE_OK;
}

thole_status stream_counts_answer(thole_slice answer, uint64_t since, stream_count_fn *each, void *arg,
                                  uint64_t *ret_here, uint64_t *ret_total, thole_error *reterr)
{
    uint64_t last = 0;
    thole_slice subjects = {0};
    THOLE_TRY(api_judge(answer, "STREAM.INFO", "", NULL, reterr));
    if (!subject_list_get_uint(answer, "state.last_seq", &last))
        return thole_fail(reterr, THOLE_CORRUPT, "the server's answer does not say where the stream ends");
    if (last < since)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "the server that answered has not got to message %llu",
                          (unsigned long long)since);
    if (!subject_list_get_uint(answer, "total", ret_total))
        *ret_total = 0; /* none matches */
    (void)json_path(answer, "state.subjects", &subjects);
    return hand_over_counts(subjects, each, arg, ret_here, reterr);
}
