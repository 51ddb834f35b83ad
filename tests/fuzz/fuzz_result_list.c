/* Any bytes as a message of several results. What is accepted has results with an id each, from where they
 * stand in it; written again it is what the generated code reads, and reads the same. */
#include "message.h"
#include "messages.pb-c.h"
#include "result_list.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 64 * 1024 * 1024 };

static void check_generated(thole_slice bytes, struct result_list list, size_t len)
{
    struct result_item item;
    Thole__V1__InboxMessage *const pb = thole__v1__inbox_message__unpack(NULL, bytes.len, bytes.ptr);
    assert(pb != NULL && pb->format == MESSAGE_FORMAT && pb->instance.len == 0);
    assert(pb->body_case == THOLE__V1__INBOX_MESSAGE__BODY_RESULTS && pb->results->n_messages == len);
    for (size_t i = 0; i < len && result_list_next(&list, &item); i++) {
        thole_slice const message = {pb->results->messages[i].data, pb->results->messages[i].len};
        assert(thole_slice_equal(message, item.bytes));
        (void)message;
    }
    thole__v1__inbox_message__free_unpacked(pb, NULL);
}

static void check_again(struct result_list list, size_t len)
{
    struct result_list read, again;
    struct result_item item, same;
    struct buf items, bytes;
    size_t len_again = 0;
    buf_init(&items, BYTES_MAX);
    buf_init(&bytes, BYTES_MAX);
    for (read = list; result_list_next(&read, &item);)
        result_list_add(&items, item.bytes);
    result_list_write(buf_bytes(&items), &bytes);
    assert(bytes.len <= items.len + RESULT_LIST_ROOM_BYTES);
    thole_status const status = result_list_read(buf_bytes(&bytes), &again, &len_again, NULL);
    assert(status == THOLE_OK && len_again == len);
    (void)status;
    check_generated(buf_bytes(&bytes), again, len);
    while (result_list_next(&list, &item)) {
        bool const there = result_list_next(&again, &same);
        assert(there && thole_slice_equal(item.bytes, same.bytes) &&
               thole_slice_equal(item.instance, same.instance));
        (void)there;
    }
    assert(!result_list_next(&again, &same));
    buf_release(&items);
    buf_release(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct result_list list, read;
    struct result_item item;
    size_t len = 0, got = 0;
    if (result_list_read((thole_slice){data, size}, &list, &len, NULL) != THOLE_OK)
        return 0;
    assert(len > 0 && len <= RESULT_LIST_MAX);
    for (read = list; result_list_next(&read, &item); got++) {
        assert(item.bytes.ptr >= data && item.bytes.ptr + item.bytes.len <= data + size);
        assert(item.instance.ptr >= item.bytes.ptr && item.instance.len < item.bytes.len);
        assert(id_check(item.instance, NULL) == THOLE_OK);
    }
    assert(got == len);
    check_again(list, len);
    return 0;
}
