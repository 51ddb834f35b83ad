/* Links: thin, checked wrappers around nats.c's connection and message. */
#include "link.h"
#include "api_prefix.h"
#include "loop.h"
#include "memory.h"
#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool link_subject_is_safe(const char *subject)
{
    size_t len = 0;
    for (; subject[len] != 0; len++) {
        unsigned char const c = (unsigned char)subject[len];
        if (c <= ' ' || c == 0x7f)
            return false;
    }
    return len > 0;
}

static bool header_is_safe(thole_slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] == '\r' || value.ptr[i] == '\n' || value.ptr[i] == 0)
            return false;
    }
    return true;
}

static thole_status link_add_header(natsMsg *message, const struct header *header, thole_error *reterr)
{
    char small[512];
    const char *value = small;
    struct buf large;
    if (!header_is_safe(header->value))
        return thole_fail(reterr, THOLE_INVALID, "value of header %s has a line break or a NUL byte",
                          header->key);
    buf_init(&large, header->value.len);
    if (header->value.len >= sizeof small) {
        buf_slice(&large, header->value);
        value = buf_cstr(&large);
    } else {
        if (header->value.len > 0)
            memcpy(small, header->value.ptr, header->value.len);
        small[header->value.len] = 0;
    }
    thole_status status = buf_status(&large);
    if (status == THOLE_OK)
        status = link_fail(natsMsgHeader_Set(message, header->key, value), "header", header->key, reterr);
    else
        (void)thole_fail(reterr, status, "no memory for header %s of %zu bytes", header->key,
                         header->value.len);
    buf_release(&large);
    return status;
}

thole_status link_message(const char *subject, const char *reply, const struct header *headers,
                          size_t headers_len, thole_slice body, natsMsg **ret, thole_error *reterr)
{
    natsMsg *message = NULL;
    if (!link_subject_is_safe(subject))
        return thole_fail(reterr, THOLE_INVALID, "subject is empty or has a space or control byte");
    if (body.len > INT_MAX)
        return thole_fail(reterr, THOLE_LIMIT, "message of %zu bytes", body.len);
    THOLE_TRY(link_fail(natsMsg_Create(&message, subject, reply, (const char *)body.ptr, (int)body.len),
                        "message to", subject, reterr));
    for (size_t i = 0; i < headers_len; i++) {
        thole_status const status = link_add_header(message, &headers[i], reterr);
        if (status != THOLE_OK) {
            link_message_free(message);
            return status;
        }
    }
    *ret = message;
    return THOLE_OK;
}

static thole_status judge_send(struct link *link, natsStatus status, const char *subject, bool *ret_sent,
                               thole_error *reterr)
{
    *ret_sent = status == NATS_OK;
    if (status == NATS_OK)
        return THOLE_OK;
    if (status != NATS_MAX_PAYLOAD && status != NATS_CONNECTION_CLOSED &&
        status != NATS_INSUFFICIENT_BUFFER && status != NATS_INVALID_ARG && status != NATS_NO_MEMORY &&
        status != NATS_NO_SERVER_SUPPORT) {
        *ret_sent = true; /* perhaps, or a part of it */
        link_break(link);
    }
    return link_fail(status, "publish to", subject, reterr);
}

thole_status link_send(struct link *link, natsMsg *message, bool *ret_sent, thole_error *reterr)
{
    loop_begin(link->loop);
    natsStatus const status = natsConnection_PublishMsg(link->nc, message);
    loop_end(link->loop);
    return judge_send(link, status, natsMsg_GetSubject(message), ret_sent, reterr);
}

thole_status link_send_bytes(struct link *link, const char *subject, const char *reply, thole_slice body,
                             bool *ret_sent, thole_error *reterr)
{
    natsStatus status;
    char room[API_SUBJECT_BYTES];
    *ret_sent = false;
    subject = api_prefix_apply(connection_api_prefix(link->connection), subject, room);
    if (!link_subject_is_safe(subject) || (reply != NULL && !link_subject_is_safe(reply)))
        return thole_fail(reterr, THOLE_INVALID, "subject is empty or has a space or control byte");
    if (body.len > INT_MAX)
        return thole_fail(reterr, THOLE_LIMIT, "message of %zu bytes", body.len);
    loop_begin(link->loop);
    if (reply == NULL)
        status = natsConnection_Publish(link->nc, subject, body.ptr, (int)body.len);
    else
        status = natsConnection_PublishRequest(link->nc, subject, reply, body.ptr, (int)body.len);
    loop_end(link->loop);
    return judge_send(link, status, subject, ret_sent, reterr);
}

void link_hint(struct link *link, const char *subject, const char *reply, thole_slice body)
{
    bool sent;
    thole_status const ignored = link_send_bytes(link, subject, reply, body, &sent, NULL);
    (void)ignored;
}

struct delivery link_delivery(natsMsg *message)
{
    int const len = natsMsg_GetDataLength(message);
    return (struct delivery){
        .subject = thole_slice_from(natsMsg_GetSubject(message)),
        .reply = thole_slice_from(natsMsg_GetReply(message)),
        .body = {(const uint8_t *)natsMsg_GetData(message), len > 0 ? (size_t)len : 0},
        .native = message,
    };
}

thole_slice link_native_header(natsMsg *message, const char *key)
{
    const char *value = NULL;
    if (natsMsgHeader_Get(message, key, &value) != NATS_OK)
        return (thole_slice){NULL, 0};
    return thole_slice_from(value);
}

thole_slice delivery_header(const struct delivery *delivery, const char *key)
{
    return link_native_header((natsMsg *)(uintptr_t)delivery->native, key);
}

thole_slice delivery_header_any_case(const struct delivery *delivery, const char *key)
{
    natsMsg *const message = (natsMsg *)(uintptr_t)delivery->native;
    thole_slice found = delivery_header(delivery, key);
    const char **keys = NULL;
    int n = 0;
    if (found.len > 0 || natsMsgHeader_Keys(message, &keys, &n) != NATS_OK)
        return found;
    for (int i = 0; i < n && found.len == 0; i++)
        if (strcasecmp(keys[i], key) == 0)
            found = link_native_header(message, keys[i]);
    free((void *)keys);
    return found;
}

uint32_t link_status(const struct delivery *delivery, thole_slice *ret_text)
{
    *ret_text = (thole_slice){NULL, 0};
    if (delivery->body.len > 0)
        return 0;
    thole_slice const number = delivery_header(delivery, "Status");
    uint32_t status = 0;
    for (size_t i = 0; i < number.len && i < 3; i++) {
        if (number.ptr[i] < '0' || number.ptr[i] > '9')
            return 0;
        status = status * 10 + (uint32_t)(number.ptr[i] - '0');
    }
    if (number.len > 0)
        *ret_text = delivery_header(delivery, "Description");
    return status;
}
