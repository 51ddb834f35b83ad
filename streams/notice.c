/* Cancellation pushes and live events. */
#include "notice.h"
#include "cancel_proof.h"
#include "codec.h"
#include "event.h"
#include "header_names.h"
#include "jscan.h"
#include "message.h"
#include "subject.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    IDS_TEXT_MAX = CANCEL_NOTICE_IDS_MAX * 21,
    PROOF_DIGITS = 16,
    PROOFS_TEXT_MAX = CANCEL_NOTICE_IDS_MAX * (PROOF_DIGITS + 1),
    NUMBER_BYTES = 24,
};

static thole_slice notice_number_text(char text[NUMBER_BYTES], uint64_t n)
{
    return (thole_slice){(const uint8_t *)text,
                         (size_t)snprintf(text, NUMBER_BYTES, "%llu", (unsigned long long)n)};
}

/* The @p index-th token back to an id, in the arena. */
static thole_status notice_read_token(thole_slice subject, size_t index, struct arena *arena,
                                      thole_slice *ret, thole_error *reterr)
{
    struct buf id;
    buf_init(&id, THOLE_ID_BYTES_MAX);
    thole_status status = subject_token_decode(subject_nth(subject, index), &id, reterr);
    if (status == THOLE_OK && arena_dup(arena, buf_bytes(&id), ret) != THOLE_OK)
        status = thole_fail(reterr, THOLE_LIMIT, "the notice does not fit into the arena");
    else if (status != THOLE_OK)
        status = THOLE_CORRUPT;
    buf_release(&id);
    return status;
}

static thole_status notice_read_number(thole_slice text, const char *what, enum range range, uint64_t *ret,
                                       thole_error *reterr)
{
    if (json_uint(text, ret) && *ret > 0)
        return codec_corrupt(range_check_as(range, what, *ret, reterr), reterr);
    return thole_fail(reterr, THOLE_CORRUPT, "%s is not a positive number", what);
}

static thole_status notice_copy(struct arena *arena, thole_slice from, thole_slice *ret, thole_error *reterr)
{
    if (arena_dup(arena, from, ret) == THOLE_OK)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_LIMIT, "the notice does not fit into the arena");
}

/* ---- cancellation ---- */

struct cancel_publish {
    struct connection *connection;
    const char *subject;
    const struct nonce_key *key;
    const struct cancel_notice *notice;
    struct tagged_hash about;
};

static thole_status publish_ids(const struct cancel_publish *publish, size_t first, size_t len,
                                thole_error *reterr)
{
    const struct cancel_notice *const notice = publish->notice;
    struct buf ids, proofs;
    assert(len > 0 && len <= CANCEL_NOTICE_IDS_MAX && first + len <= notice->activity_ids_len);
    buf_init(&ids, IDS_TEXT_MAX);
    buf_init(&proofs, PROOFS_TEXT_MAX);
    for (size_t i = 0; i < len; i++) {
        uint64_t const id = notice->activity_ids[first + i];
        struct nonce const nonce = nonce_make(publish->key, notice->instance, notice->execution, id);
        uint64_t const proof = cancel_proof(thole_slice_from(nonce.text), &publish->about);
        buf_printf(&ids, i == 0 ? "%llu" : ",%llu", (unsigned long long)id);
        buf_printf(&proofs, i == 0 ? "%016llx" : ",%016llx", (unsigned long long)proof);
    }
    char number[NUMBER_BYTES], decided[NUMBER_BYTES];
    struct header headers[6] = {{HEADER_ACTIVITIES, buf_bytes(&ids)},
                                {HEADER_KIND, notice->kind},
                                {HEADER_PROOFS, buf_bytes(&proofs)}};
    size_t headers_len = 3;
    if (notice->try_number > 0)
        headers[headers_len++] = (struct header){HEADER_TRY, notice_number_text(number, notice->try_number)};
    if (notice->early)
        headers[headers_len++] = (struct header){HEADER_EARLY, THOLE_STR("1")};
    if (notice->decided_ms > 0)
        headers[headers_len++] =
            (struct header){HEADER_DECIDED, notice_number_text(decided, notice->decided_ms)};
    thole_status status = buf_status(&ids) != THOLE_OK ? buf_status(&ids) : buf_status(&proofs);
    if (status == THOLE_OK)
        status = connection_publish(publish->connection, publish->subject, headers, headers_len,
                                    notice->reason, reterr);
    else
        status = thole_fail(reterr, status, "cancel notice: no room for the activity ids");
    buf_release(&ids);
    buf_release(&proofs);
    return status;
}

thole_status cancel_notice_publish(struct connection *connection, const char *ns, const struct nonce_key *key,
                                   const struct cancel_notice *notice, thole_error *reterr)
{
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = name_check(notice->kind, "cancel kind", reterr);
    if (status == THOLE_OK)
        status = subject_cancel(&subject, ns, notice->instance, notice->execution, reterr);
    if (status == THOLE_OK) {
        struct cancel_publish const publish = {
            connection, buf_cstr(&subject), key, notice,
            cancel_about(notice->try_number, notice->kind, notice->reason)};
        for (size_t at = 0; status == THOLE_OK && at < notice->activity_ids_len;
             at += CANCEL_NOTICE_IDS_MAX) {
            size_t const left = notice->activity_ids_len - at;
            status = publish_ids(&publish, at, left < CANCEL_NOTICE_IDS_MAX ? left : CANCEL_NOTICE_IDS_MAX,
                                 reterr);
        }
    }
    buf_release(&subject);
    return status;
}

static thole_status read_ids(thole_slice text, struct arena *arena, struct cancel_notice *notice,
                             thole_error *reterr)
{
    size_t count = text.len > 0 ? 1 : 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == ',';
    if (count == 0 || count > CANCEL_NOTICE_IDS_MAX)
        return thole_fail(reterr, THOLE_CORRUPT, "the cancel notice names %zu activities", count);
    uint64_t *ids = arena_array(arena, count, sizeof *ids);
    if (ids == NULL)
        return thole_fail(reterr, THOLE_LIMIT, "the notice does not fit into the arena");
    for (size_t i = 0; i < count; i++) {
        const uint8_t *comma = memchr(text.ptr, ',', text.len);
        size_t const len = comma == NULL ? text.len : (size_t)(comma - text.ptr);
        THOLE_TRY(notice_read_number((thole_slice){text.ptr, len}, "the notice's activity id", RANGE_EVENT_ID,
                                     &ids[i], reterr));
        text.ptr += comma == NULL ? len : len + 1;
        text.len -= comma == NULL ? len : len + 1;
    }
    assert(text.len == 0);
    notice->activity_ids = ids;
    notice->activity_ids_len = count;
    return THOLE_OK;
}

static bool read_proof(const uint8_t *digits, uint64_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < PROOF_DIGITS; i++) {
        uint8_t const c = digits[i];
        bool const digit = c >= '0' && c <= '9', letter = c >= 'a' && c <= 'f';
        if (!digit && !letter)
            return false;
        *ret = *ret << 4 | (uint64_t)(digit ? c - '0' : c - 'a' + 10);
    }
    return true;
}

/* One for each activity. */
static thole_status read_proofs(thole_slice text, struct arena *arena, struct cancel_notice *notice,
                                thole_error *reterr)
{
    size_t const n = notice->activity_ids_len;
    if (text.len != n * (PROOF_DIGITS + 1) - 1)
        return thole_fail(reterr, THOLE_CORRUPT, "the cancel notice has no proof for each of its activities");
    uint64_t *const proofs = arena_array(arena, n, sizeof *proofs);
    if (proofs == NULL)
        return thole_fail(reterr, THOLE_LIMIT, "the notice does not fit into the arena");
    for (size_t i = 0; i < n; i++) {
        const uint8_t *const at = text.ptr + i * (PROOF_DIGITS + 1);
        if (!read_proof(at, &proofs[i]) || (i > 0 && at[-1] != ','))
            return thole_fail(reterr, THOLE_CORRUPT, "a proof of the cancel notice is not %d digits",
                              PROOF_DIGITS);
    }
    notice->proofs = proofs;
    return THOLE_OK;
}

static thole_status read_try(thole_slice text, uint32_t *ret, thole_error *reterr)
{
    uint64_t number = 0;
    if (text.len == 0)
        return THOLE_OK;
    THOLE_TRY(notice_read_number(text, "the notice's try", RANGE_TRY, &number, reterr));
    *ret = (uint32_t)number;
    return THOLE_OK;
}

thole_status cancel_notice_parse(const struct delivery *delivery, struct arena *arena,
                                 struct cancel_notice *ret, thole_error *reterr)
{
    enum { TOKEN_INSTANCE = 3, TOKEN_EXECUTION = 4, TOKENS = 5 };
    struct cancel_notice notice = {.execution = 0};
    thole_slice const kind = delivery_header(delivery, HEADER_KIND);
    if (!thole_slice_equal(subject_nth(delivery->subject, 2), THOLE_STR("cancel")) ||
        subject_nth(delivery->subject, TOKENS).len > 0)
        return thole_fail(reterr, THOLE_CORRUPT, "not the subject of a cancel notice");
    if (name_check(kind, "cancel kind", reterr) != THOLE_OK)
        return THOLE_CORRUPT;
    if (delivery->body.len > REASON_BYTES_MAX)
        return thole_fail(reterr, THOLE_CORRUPT, "the cancel notice's reason has %zu bytes",
                          delivery->body.len);
    THOLE_TRY(notice_read_token(delivery->subject, TOKEN_INSTANCE, arena, &notice.instance, reterr));
    THOLE_TRY(notice_read_number(subject_nth(delivery->subject, TOKEN_EXECUTION), "the notice's execution",
                                 RANGE_EXECUTION, &notice.execution, reterr));
    THOLE_TRY(read_ids(delivery_header(delivery, HEADER_ACTIVITIES), arena, &notice, reterr));
    THOLE_TRY(read_proofs(delivery_header(delivery, HEADER_PROOFS), arena, &notice, reterr));
    THOLE_TRY(read_try(delivery_header(delivery, HEADER_TRY), &notice.try_number, reterr));
    if (!json_uint(delivery_header(delivery, HEADER_DECIDED), &notice.decided_ms) ||
        range_check_as(RANGE_TIME_MS, "", notice.decided_ms, NULL) != THOLE_OK)
        notice.decided_ms = 0; /* used for measurements only */
    notice.early = delivery_header(delivery, HEADER_EARLY).len > 0;
    THOLE_TRY(notice_copy(arena, kind, &notice.kind, reterr));
    THOLE_TRY(notice_copy(arena, delivery->body, &notice.reason, reterr));
    *ret = notice;
    return THOLE_OK;
}

/* ---- events ---- */

static const char *const event_kinds[] = {"started",    "completed",        "failed", "cancelled",
                                          "terminated", "continued_as_new", "paused", "resumed",
                                          "deleted",    "rejected"};

const char *event_notice_kind(size_t i)
{
    return i < sizeof event_kinds / sizeof event_kinds[0] ? event_kinds[i] : NULL;
}

static const char *known_kind(thole_slice kind)
{
    size_t i = 0;
    while (event_notice_kind(i) != NULL && !thole_slice_equal(kind, thole_slice_from(event_notice_kind(i))))
        i++;
    return event_notice_kind(i);
}

/* Request ids of executions begin with '<': no client waits for them. */
static bool is_clients(thole_slice request_id)
{
    return request_id.len > 0 && request_id.ptr[0] != '<';
}

thole_status event_notice_publish(struct connection *connection, const char *ns,
                                  const struct event_notice *notice, thole_error *reterr)
{
    char execution[NUMBER_BYTES];
    struct buf subject, request;
    if (known_kind(thole_slice_from(notice->kind)) == NULL)
        return thole_fail(reterr, THOLE_INVALID, "there is no event notice of kind \"%s\"", notice->kind);
    if (notice->orchestration.len == 0)
        return thole_fail(reterr, THOLE_INVALID, "orchestration name is empty");
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&request, SUBJECT_BYTES_MAX);
    thole_status status =
        subject_event(&subject, ns, notice->orchestration, notice->instance, notice->kind, reterr);
    if (status == THOLE_OK && is_clients(notice->request_id))
        status = subject_token(&request, notice->request_id, reterr);
    if (status == THOLE_OK) {
        struct header headers[5] = {{HEADER_EXECUTION, notice_number_text(execution, notice->execution)}};
        size_t n = 1;
        if (request.len > 0)
            headers[n++] = (struct header){HEADER_REQUEST, buf_bytes(&request)};
        if (notice->code.len > 0)
            headers[n++] = (struct header){HEADER_CODE, notice->code};
        if (notice->trace.parent.len > 0)
            headers[n++] = (struct header){HEADER_TRACEPARENT, notice->trace.parent};
        if (notice->trace.list.len > 0)
            headers[n++] = (struct header){HEADER_TRACESTATE, notice->trace.list};
        status = connection_publish(connection, buf_cstr(&subject), headers, n, notice->data, reterr);
    }
    buf_release(&subject);
    buf_release(&request);
    return status;
}

thole_status event_notice_parse(const struct delivery *delivery, struct arena *arena,
                                struct event_notice *ret, thole_error *reterr)
{
    enum { TOKEN_ORCHESTRATION = 3, TOKEN_INSTANCE = 4, TOKEN_KIND = 5, TOKENS = 6 };
    struct event_notice notice = {.execution = 0};
    thole_slice const orchestration = subject_nth(delivery->subject, TOKEN_ORCHESTRATION);
    thole_slice const request = delivery_header(delivery, HEADER_REQUEST);
    notice.kind = known_kind(subject_nth(delivery->subject, TOKEN_KIND));
    if (!thole_slice_equal(subject_nth(delivery->subject, 2), THOLE_STR("event")) ||
        subject_nth(delivery->subject, TOKENS).len > 0 || notice.kind == NULL)
        return thole_fail(reterr, THOLE_CORRUPT, "not the subject of an event notice");
    if (name_check(orchestration, "orchestration", reterr) != THOLE_OK)
        return THOLE_CORRUPT;
    THOLE_TRY(notice_read_token(delivery->subject, TOKEN_INSTANCE, arena, &notice.instance, reterr));
    if (!json_uint(delivery_header(delivery, HEADER_EXECUTION), &notice.execution))
        return thole_fail(reterr, THOLE_CORRUPT, "the notice's execution is not a number");
    THOLE_TRY(codec_corrupt(
        range_check_as(RANGE_EXECUTION, "the notice's execution", notice.execution, reterr), reterr));
    if (request.len > 0)
        THOLE_TRY(notice_read_token(request, 0, arena, &notice.request_id, reterr));
    THOLE_TRY(notice_copy(arena, delivery_header(delivery, HEADER_CODE), &notice.code, reterr));
    THOLE_TRY(notice_copy(arena, orchestration, &notice.orchestration, reterr));
    THOLE_TRY(notice_copy(arena, delivery->body, &notice.data, reterr));
    *ret = notice;
    return THOLE_OK;
}
