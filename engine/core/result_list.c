#include "result_list.h"
#include "codec.h"
#include "message.h"

enum { FIELD_FORMAT = 1, FIELD_INSTANCE = 2, FIELD_RESULTS = 15, FIELD_MESSAGES = 1 };

/* ---- writing ---- */

void result_list_add(struct buf *list, thole_slice message)
{
    wire_put_bytes(list, FIELD_MESSAGES, message);
}

size_t result_list_bytes(size_t message_bytes)
{
    return 1 + wire_number_bytes(message_bytes) + message_bytes;
}

void result_list_write(thole_slice list, struct buf *to)
{
    wire_put_number(to, FIELD_FORMAT, MESSAGE_FORMAT);
    wire_put_bytes(to, FIELD_RESULTS, list);
}

thole_slice result_list_only(thole_slice list)
{
    struct wire_message results = wire_message_of(list);
    struct wire_field field = {.bytes = {NULL, 0}};
    (void)wire_take(&results, &field);
    return field.bytes;
}

/* ---- reading ---- */

/* The last one counts, as everywhere in protocol buffers. */
static thole_slice instance_of(thole_slice bytes)
{
    struct wire_message message = wire_message_of(bytes);
    struct wire_field field;
    thole_slice instance = {NULL, 0};
    while (wire_take(&message, &field))
        if (field.number == FIELD_INSTANCE && field.type == WIRE_BYTES)
            instance = field.bytes;
    return message.bad ? (thole_slice){NULL, 0} : instance;
}

bool result_list_next(struct result_list *list, struct result_item *ret)
{
    struct wire_field field;
    for (;;) {
        while (wire_take(&list->results, &field))
            if (field.number == FIELD_MESSAGES && field.type == WIRE_BYTES) {
                *ret = (struct result_item){field.bytes, instance_of(field.bytes)};
                return true;
            }
        do {
            if (list->results.bad || !wire_take(&list->message, &field))
                return false;
        } while (field.number != FIELD_RESULTS || field.type != WIRE_BYTES);
        list->results = wire_message_of(field.bytes);
    }
}

static thole_status result_list_read_format(thole_slice bytes, thole_error *reterr)
{
    struct wire_message message = wire_message_of(bytes);
    struct wire_field field;
    uint64_t format = 0;
    while (wire_take(&message, &field))
        if (field.number == FIELD_FORMAT && field.type == WIRE_NUMBER)
            format = field.value;
    if (message.bad || format == 0)
        return thole_fail(reterr, THOLE_CORRUPT, "it is no message of results");
    if (format > MESSAGE_FORMAT)
        return thole_fail(reterr, THOLE_UNSUPPORTED, "message format %llu, this engine knows %d",
                          (unsigned long long)format, MESSAGE_FORMAT);
    return THOLE_OK;
}

thole_status result_list_read(thole_slice message, struct result_list *ret, size_t *ret_len,
                              thole_error *reterr)
{
    struct result_list list = {wire_message_of(message), wire_message_of((thole_slice){NULL, 0})};
    struct result_item item;
    size_t len = 0;
    THOLE_TRY(result_list_read_format(message, reterr));
    *ret = list;
    while (result_list_next(&list, &item) && len <= RESULT_LIST_MAX) {
        THOLE_TRY(codec_corrupt(id_check(item.instance, reterr), reterr));
        len++;
    }
    if (list.results.bad || list.message.bad || len == 0 || len > RESULT_LIST_MAX)
        return thole_fail(reterr, THOLE_CORRUPT, "it has no results, more than %d, or is cut off",
                          RESULT_LIST_MAX);
    *ret_len = len;
    return THOLE_OK;
}
