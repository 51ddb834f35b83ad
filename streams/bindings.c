#include "bindings.h"
#include "api.h"
#include "jscan.h"
#include "link.h"
#include "marked_store.h"
#include "memory.h"
#include "message.h"
#include "push_consumer.h"
#include "reader.h"
#include "subject.h"
#include "subject_list.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SUBJECT_BYTES = 240, TOKEN_RULE = 2, VALUE_MAX = 64 * 1024, CONSUMER_JSON_MAX = 4096 };

/* ---- the bucket ---- */

static void bindings_bucket_stream(const char *ns, char ret[STREAM_NAME_BYTES_MAX])
{
    (void)snprintf(ret, STREAM_NAME_BYTES_MAX, "KV_THOLE_%s_BINDINGS", ns);
}

/* $KV.THOLE_<ns>_BINDINGS.<rule> */
static thole_status bindings_key_subject(const char *ns, thole_slice name, char ret[KEY_SUBJECT_BYTES],
                                         thole_error *reterr)
{
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    THOLE_TRY(name_check(name, "rule", reterr));
    (void)snprintf(ret, KEY_SUBJECT_BYTES, "$KV.THOLE_%s_BINDINGS.%.*s", ns, THOLE_FMT(name));
    return THOLE_OK;
}

thole_status bindings_require(struct connection *connection, const char *ns, thole_error *reterr)
{
    return marked_store_require(connection, ns, STORE_BINDINGS, reterr);
}

/* The sequence of what was stored, or the error. */
static thole_status judge_write(thole_slice answer, const char *subject, thole_slice name,
                                uint64_t *ret_revision, thole_error *reterr)
{
    thole_slice error, sequence;
    if (json_find(answer, "error", &error)) {
        if (api_is_wrong_last(error))
            return thole_fail(reterr, THOLE_CONFLICT, "rule %.*s has another revision: nothing was changed",
                              THOLE_FMT(name));
        return thole_fail(reterr, THOLE_UNAVAILABLE, "write to %s: the server says: %.*s", subject,
                          THOLE_FMT(error));
    }
    if (json_find(answer, "seq", &sequence) && json_uint(sequence, ret_revision))
        return THOLE_OK;
    return thole_fail(reterr, THOLE_UNAVAILABLE, "write to %s: nothing says that it is stored", subject);
}

static thole_status bindings_write_key(struct connection *connection, const char *ns, thole_slice name,
                                       const struct header *header, thole_slice value, uint64_t *ret_revision,
                                       thole_error *reterr)
{
    char subject[KEY_SUBJECT_BYTES];
    struct buf answer;
    THOLE_TRY(bindings_key_subject(ns, name, subject, reterr));
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status =
        connection_request_with(connection, subject, header, header != NULL, value, &answer, reterr);
    if (status == THOLE_OK)
        status = judge_write(buf_bytes(&answer), subject, name, ret_revision, reterr);
    buf_release(&answer);
    return status;
}

thole_status bindings_put(struct connection *connection, const char *ns, thole_slice name, thole_slice value,
                          uint64_t revision, uint64_t *ret_revision, thole_error *reterr)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)revision);
    struct header const expected = {"Nats-Expected-Last-Subject-Sequence", thole_slice_from(number)};
    return bindings_write_key(connection, ns, name, revision == BINDINGS_ANY ? NULL : &expected, value,
                              ret_revision, reterr);
}

thole_status bindings_delete(struct connection *connection, const char *ns, thole_slice name,
                             thole_error *reterr)
{
    struct header const mark = {"KV-Operation", THOLE_STR("DEL")};
    uint64_t revision;
    return bindings_write_key(connection, ns, name, &mark, THOLE_STR(""), &revision, reterr);
}

thole_status bindings_get(struct connection *connection, const char *ns, thole_slice name, struct buf *ret,
                          uint64_t *ret_revision, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX], subject[KEY_SUBJECT_BYTES];
    THOLE_TRY(bindings_key_subject(ns, name, subject, reterr));
    bindings_bucket_stream(ns, stream);
    buf_clear(ret);
    THOLE_TRY(stream_last_by_subject(connection, stream, subject, ret_revision, ret, reterr));
    if (ret->len == 0) /* the mark of a deletion */
        *ret_revision = 0;
    return THOLE_OK;
}

/* ---- the list ---- */

struct rule_names {
    struct rule_name {
        char text[THOLE_NAME_BYTES_MAX + 1];
    } * items;
    size_t len, cap;
};

static void bindings_note_name(void *arg, thole_slice subject)
{
    struct rule_names *const names = arg;
    thole_slice const name = subject_nth(subject, TOKEN_RULE);
    if (name_check(name, "rule", NULL) != THOLE_OK || names->len == BINDINGS_MAX)
        return; /* not written by thole */
    names->items = memory_reserve(names->items, &names->cap, names->len + 1, sizeof *names->items);
    (void)snprintf(names->items[names->len++].text, sizeof names->items->text, "%.*s", THOLE_FMT(name));
}

static int bindings_by_name(const void *a, const void *b)
{
    return strcmp(((const struct rule_name *)a)->text, ((const struct rule_name *)b)->text);
}

static thole_status list_named(struct connection *connection, const char *ns, const struct rule_names *names,
                               bindings_fn *each, void *arg, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    struct buf value;
    uint64_t revision;
    buf_init(&value, VALUE_MAX);
    for (size_t i = 0; i < names->len && status == THOLE_OK; i++) {
        thole_slice const name = thole_slice_from(names->items[i].text);
        if (i > 0 && strcmp(names->items[i].text, names->items[i - 1].text) == 0)
            continue;
        status = bindings_get(connection, ns, name, &value, &revision, reterr);
        if (status == THOLE_OK && revision > 0)
            status = each(arg, name, buf_bytes(&value), revision);
    }
    buf_release(&value);
    return status;
}

thole_status bindings_list(struct connection *connection, const char *ns, bindings_fn *each, void *arg,
                           thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX];
    struct stream_bounds bounds;
    struct rule_names names = {.len = 0};
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    THOLE_TRY(marked_store_check(connection, ns, STORE_BINDINGS, reterr));
    bindings_bucket_stream(ns, stream);
    thole_status status = stream_bounds(connection, stream, &bounds, reterr);
    if (status == THOLE_NOT_FOUND || (status == THOLE_OK && bounds.messages == 0))
        return THOLE_OK; /* no rule was ever stored */
    if (status == THOLE_OK)
        status = stream_subjects(connection, stream, bounds.last, BINDINGS_MAX, bindings_note_name, &names,
                                 reterr);
    if (names.len > 0)
        qsort(names.items, names.len, sizeof *names.items, bindings_by_name);
    if (status == THOLE_OK)
        status = list_named(connection, ns, &names, each, arg, reterr);
    free(names.items);
    return status;
}

/* ---- watching ---- */

struct bindings_watch {
    struct ordered_reader *reader;
    bindings_watch_fn *each;
    void *arg;
};

static void bindings_on_entry(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct bindings_watch *const watch = arg;
    thole_slice const name = subject_nth(delivery->subject, TOKEN_RULE);
    if (name_check(name, "rule", NULL) == THOLE_OK && subject_nth(delivery->subject, TOKEN_RULE + 1).len == 0)
        watch->each(watch->arg, name, delivery->body, sequence);
}

thole_status bindings_watch_open(struct connection *connection, const char *ns, bindings_watch_fn *each,
                                 void *arg, struct bindings_watch **ret, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX], filter[KEY_SUBJECT_BYTES];
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    bindings_bucket_stream(ns, stream);
    (void)snprintf(filter, sizeof filter, "$KV.THOLE_%s_BINDINGS.>", ns);
    struct bindings_watch *const watch = memory_new(sizeof *watch);
    watch->each = each;
    watch->arg = arg;
    struct ordered_reader_options const options = {.stream = stream,
                                                   .filter = filter,
                                                   .last_per_subject = true,
                                                   .each = bindings_on_entry,
                                                   .arg = watch};
    thole_status const status = ordered_reader_open(connection, &options, &watch->reader, reterr);
    if (status != THOLE_OK) {
        free(watch);
        return status;
    }
    *ret = watch;
    return THOLE_OK;
}

void bindings_watch_close(struct bindings_watch *watch)
{
    if (watch == NULL)
        return;
    ordered_reader_close(watch->reader);
    free(watch);
}

/* ---- consumers ---- */

void binding_consumer_name(const char *ns, thole_slice rule, char ret[BINDING_CONSUMER_BYTES])
{
    int const len = snprintf(ret, BINDING_CONSUMER_BYTES, "thole_%s_bind_%.*s", ns, THOLE_FMT(rule));
    assert(len > 0 && len < BINDING_CONSUMER_BYTES);
}

/* ---- which streams take a subject ---- */

enum { NAMES_SHOWN_BYTES = 200 };

/* Those that take it: names of streams, as the server lists them. */
struct takers {
    struct buf answer;
    thole_slice list;
};

static thole_status takers_read(struct connection *connection, thole_slice subject, struct takers *ret,
                                thole_error *reterr)
{
    struct buf body;
    struct json json;
    *ret = (struct takers){.list = {NULL, 0}};
    buf_init(&ret->answer, API_ANSWER_MAX);
    buf_init(&body, CONSUMER_JSON_MAX);
    json_to_buf(&json, &body);
    json_object(&json);
    json_member(&json, "subject", subject);
    json_end(&json);
    thole_status const status =
        api_call(connection, "STREAM.NAMES", "", buf_bytes(&body), &ret->answer, NULL, reterr);
    if (status == THOLE_OK)
        (void)json_find(buf_bytes(&ret->answer), "streams", &ret->list);
    buf_release(&body);
    return status;
}

/* Whether the name is that of a namespace's stream or bucket; users may bind all other streams. */
static bool bindings_is_own(thole_slice name)
{
    return subject_begins_with(name, "THOLE_") || subject_begins_with(name, "KV_THOLE_");
}

/* Their number, and all that fit as text; with @p own those of a namespace too. */
static size_t takers_names(const struct takers *takers, bool own, struct buf *ret)
{
    size_t at = 0, n = 0, left = 0;
    thole_slice item;
    struct buf name;
    buf_clear(ret);
    buf_init(&name, VALUE_MAX);
    while (json_item(takers->list, &at, &item)) {
        buf_clear(&name);
        if (!json_text(item, &name) || (!own && bindings_is_own(buf_bytes(&name))))
            continue;
        n++;
        if (n > 1 && ret->len + name.len > NAMES_SHOWN_BYTES)
            left++;
        else
            buf_printf(ret, "%s%.*s", n > 1 ? ", " : "", THOLE_FMT(buf_bytes(&name)));
    }
    if (left > 0)
        buf_printf(ret, " and %zu more", left);
    buf_release(&name);
    return n;
}

static bool takers_have(const struct takers *takers, thole_slice stream)
{
    size_t at = 0;
    thole_slice item;
    struct buf name;
    bool found = false;
    buf_init(&name, VALUE_MAX);
    while (!found && json_item(takers->list, &at, &item)) {
        buf_clear(&name);
        found = json_text(item, &name) && thole_slice_equal(buf_bytes(&name), stream);
    }
    buf_release(&name);
    return found;
}

thole_status binding_stream_of(struct connection *connection, thole_slice subject, struct buf *ret,
                               thole_error *reterr)
{
    struct takers takers;
    buf_clear(ret);
    thole_status status = takers_read(connection, subject, &takers, reterr);
    size_t n = status == THOLE_OK ? takers_names(&takers, false, ret) : 0;
    if (status == THOLE_OK && n == 0)
        n = takers_names(&takers, true, ret);
    if (status == THOLE_OK && n == 0)
        status = thole_fail(reterr, THOLE_NOT_FOUND,
                            "no stream takes %.*s: make one first (nats stream add), then bind it",
                            THOLE_FMT(subject));
    else if (status == THOLE_OK && n > 1)
        status =
            thole_fail(reterr, THOLE_INVALID, "%.*s is in several streams (%s): say which, with --stream",
                       THOLE_FMT(subject), buf_cstr(ret));
    buf_release(&takers.answer);
    return status;
}

/* Explains why the stream is not among those that take the subject. A mirror, or a stream with sources, has
 * no subjects of its own to be found by. */
static thole_status judge_absent(struct connection *connection, thole_slice stream, thole_slice subject,
                                 const char *others, thole_error *reterr)
{
    char target[API_SUBJECT_BYTES];
    struct buf answer;
    thole_slice value;
    (void)snprintf(target, sizeof target, "%.*s", THOLE_FMT(stream));
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = api_call(connection, "STREAM.INFO", target, THOLE_STR(""), &answer, NULL, reterr);
    thole_slice const info = buf_bytes(&answer);
    bool const copies = status == THOLE_OK && (json_path(info, "config.mirror", &value) ||
                                               json_path(info, "config.sources", &value));
    if (status == THOLE_NOT_FOUND)
        status = thole_fail(reterr, status, "there is no stream %.*s; what takes %.*s: %s", THOLE_FMT(stream),
                            THOLE_FMT(subject), others);
    else if (status == THOLE_DENIED)
        status =
            thole_fail(reterr, THOLE_INVALID,
                       "stream %.*s takes nothing of %.*s, or this user may not ask about it; what does: %s",
                       THOLE_FMT(stream), THOLE_FMT(subject), others);
    else if (status == THOLE_OK && !copies)
        status = thole_fail(reterr, THOLE_INVALID, "stream %.*s takes nothing of %.*s; what does: %s",
                            THOLE_FMT(stream), THOLE_FMT(subject), others);
    buf_release(&answer);
    return status;
}

thole_status binding_stream_takes(struct connection *connection, thole_slice stream, thole_slice subject,
                                  thole_error *reterr)
{
    struct takers takers;
    struct buf others;
    buf_init(&others, VALUE_MAX);
    thole_status status = takers_read(connection, subject, &takers, reterr);
    if (status == THOLE_OK && !takers_have(&takers, stream)) {
        if (takers_names(&takers, false, &others) == 0)
            buf_text(&others, "no stream");
        status = judge_absent(connection, stream, subject, buf_cstr(&others), reterr);
    }
    buf_release(&others);
    buf_release(&takers.answer);
    return status;
}

/* ---- the consumer of a rule ---- */

static void bindings_consumer_json(const struct binding_consumer *consumer, const char *name, bool only_new,
                                   struct buf *to)
{
    struct json json;
    json_to_buf(&json, to);
    json_object(&json);
    json_member(&json, "stream_name", consumer->stream);
    json_key(&json, "config");
    json_object(&json);
    json_member_text(&json, "durable_name", name);
    json_member_text(&json, "name", name);
    json_member(&json, "filter_subject", consumer->subject);
    json_member_text(&json, "deliver_policy", only_new ? "new" : "all");
    json_member_text(&json, "replay_policy", "instant");
    json_member_text(&json, "ack_policy", "explicit");
    json_member_integer(&json, "ack_wait", (int64_t)BINDING_ACK_WAIT_MS * NANOS_PER_MS);
    json_member_integer(&json, "max_deliver", -1);
    json_member_number(&json, "max_ack_pending", consumer->in_flight);
    json_member_integer(&json, "num_replicas", 0);
    json_end(&json);
    json_end(&json);
}

/* Whether it is as it should be; *ret_new: how it was made, which cannot be changed. */
static bool consumer_fits(thole_slice info, const struct binding_consumer *consumer, bool *ret_new)
{
    thole_slice value;
    struct buf subject;
    uint64_t n = 0;
    *ret_new = json_path(info, "config.deliver_policy", &value) && json_text_is(value, "new");
    buf_init(&subject, VALUE_MAX);
    bool const same = json_path(info, "config.filter_subject", &value) && json_text(value, &subject) &&
                      thole_slice_equal(buf_bytes(&subject), consumer->subject);
    buf_release(&subject);
    return same && json_path(info, "config.max_ack_pending", &value) && json_uint(value, &n) &&
           n == consumer->in_flight && json_path(info, "config.ack_wait", &value) && json_uint(value, &n) &&
           n == (uint64_t)BINDING_ACK_WAIT_MS * NANOS_PER_MS;
}

thole_status binding_consumer_ensure(struct connection *connection, const char *ns, thole_slice rule,
                                     const struct binding_consumer *consumer, thole_error *reterr)
{
    char name[BINDING_CONSUMER_BYTES], target[API_SUBJECT_BYTES];
    struct buf answer, body;
    bool only_new = consumer->only_new, fits = false;
    binding_consumer_name(ns, rule, name);
    (void)snprintf(target, sizeof target, "%.*s.%s", THOLE_FMT(consumer->stream), name);
    buf_init(&answer, API_ANSWER_MAX);
    buf_init(&body, CONSUMER_JSON_MAX);
    thole_status status = api_call(connection, "CONSUMER.INFO", target, THOLE_STR(""), &answer, NULL, NULL);
    if (status == THOLE_OK)
        fits = consumer_fits(buf_bytes(&answer), consumer, &only_new);
    if (!fits) {
        (void)snprintf(target, sizeof target, "%.*s.%s.%.*s", THOLE_FMT(consumer->stream), name,
                       THOLE_FMT(consumer->subject));
        bindings_consumer_json(consumer, name, only_new, &body);
        buf_clear(&answer);
        status = api_call(connection, "CONSUMER.CREATE", target, buf_bytes(&body), &answer, NULL, reterr);
    }
    buf_release(&answer);
    buf_release(&body);
    return status;
}

thole_status binding_consumer_state(struct connection *connection, const char *ns, thole_slice rule,
                                    thole_slice stream, struct binding_state *ret, thole_error *reterr)
{
    char name[BINDING_CONSUMER_BYTES], target[API_SUBJECT_BYTES];
    struct buf answer;
    thole_slice value;
    binding_consumer_name(ns, rule, name);
    (void)snprintf(target, sizeof target, "%.*s.%s", THOLE_FMT(stream), name);
    buf_init(&answer, API_ANSWER_MAX);
    *ret = (struct binding_state){.pending = 0};
    thole_status status = api_call(connection, "CONSUMER.INFO", target, THOLE_STR(""), &answer, NULL, reterr);
    thole_slice const info = buf_bytes(&answer);
    if (status == THOLE_OK &&
        !(json_find(info, "num_pending", &value) && json_uint(value, &ret->pending) &&
          json_find(info, "num_ack_pending", &value) && json_uint(value, &ret->ack_pending) &&
          json_find(info, "num_redelivered", &value) && json_uint(value, &ret->redelivered) &&
          json_path(info, "ack_floor.stream_seq", &value) && json_uint(value, &ret->acked)))
        status = thole_fail(reterr, THOLE_CORRUPT,
                            "consumer %s: the server's answer does not say where it is", name);
    buf_release(&answer);
    return status;
}

/* nats-server 2.10 may say that a folder is not empty, when it was just written to, of a consumer that is
 * gone. */
static bool consumer_is_gone(struct connection *connection, const char *target)
{
    struct buf answer;
    buf_init(&answer, API_ANSWER_MAX);
    thole_status const status =
        api_call(connection, "CONSUMER.INFO", target, THOLE_STR(""), &answer, NULL, NULL);
    buf_release(&answer);
    return status == THOLE_NOT_FOUND;
}

thole_status binding_consumer_delete(struct connection *connection, const char *ns, thole_slice rule,
                                     thole_slice stream, thole_error *reterr)
{
    char name[BINDING_CONSUMER_BYTES], target[API_SUBJECT_BYTES];
    struct buf answer;
    binding_consumer_name(ns, rule, name);
    (void)snprintf(target, sizeof target, "%.*s.%s", THOLE_FMT(stream), name);
    buf_init(&answer, API_ANSWER_MAX);
    thole_status const status =
        api_call(connection, "CONSUMER.DELETE", target, THOLE_STR(""), &answer, NULL, reterr);
    buf_release(&answer);
    return status == THOLE_INVALID && consumer_is_gone(connection, target) ? THOLE_OK
           : status == THOLE_NOT_FOUND                                     ? THOLE_OK
                                                                           : status;
}

/* ---- messages ---- */

static int by_header(const void *a, const void *b)
{
    const struct bound_header *const x = a, *const y = b;
    size_t const len = x->name.len < y->name.len ? x->name.len : y->name.len;
    int const order = memcmp(x->name.ptr, y->name.ptr, len);
    return order != 0 ? order : x->name.len < y->name.len ? -1 : x->name.len > y->name.len;
}

/* In one order, whatever order nats.c has them in: the same message always gives the same plan. */
static void bindings_read_headers(natsMsg *native, struct bound_view *ret)
{
    const char **keys = NULL;
    int n = 0;
    if (natsMsgHeader_Keys(native, &keys, &n) != NATS_OK)
        return;
    ret->more_headers = n > BOUND_HEADERS_MAX;
    for (int i = 0; i < n && i < BOUND_HEADERS_MAX; i++)
        ret->headers[ret->headers_len++] =
            (struct bound_header){thole_slice_from(keys[i]), link_native_header(native, keys[i])};
    qsort(ret->headers, ret->headers_len, sizeof ret->headers[0], by_header);
    free((void *)keys);
}

void bound_view(const struct work_message *message, struct bound_view *ret)
{
    struct ack_meta meta = {.deliveries = 0};
    struct delivery const delivery = link_delivery(message->native);
    (void)ack_parse(thole_slice_from(message->reply), &meta);
    *ret = (struct bound_view){.subject = delivery.subject,
                               .body = delivery.body,
                               .stream = meta.stream,
                               .sequence = meta.stream_sequence,
                               .stored_ns = meta.stored_ns,
                               .deliveries = meta.deliveries};
    bindings_read_headers(message->native, ret);
}
