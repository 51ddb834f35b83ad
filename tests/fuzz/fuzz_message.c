/* Any bytes as an inbox message, a query and an answer. What is accepted reads the same again. */
#include "in_range.h"
#include "messages.pb-c.h"
#include "query_message.h"
#include "samples.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 64 * 1024 * 1024 };

static void check_message(thole_slice input, struct arena *arena, struct buf *bytes)
{
    struct message message, again;
    struct buf text, text_again;
    if (message_decode(input, arena, &message, NULL) != THOLE_OK)
        return;
    assert(in_range(&thole__v1__inbox_message__descriptor, input, MESSAGE_BYTES_MAX));
    assert(id_check(message.instance, NULL) == THOLE_OK);
    assert(error_type_check(message.error_type, NULL) == THOLE_OK);
    assert(message.kind != MESSAGE_START || name_check(message.orchestration, "", NULL) == THOLE_OK);
    assert(message.kind != MESSAGE_EVENT || name_check(message.event_name, "", NULL) == THOLE_OK);
    assert(message.kind != MESSAGE_ACTIVITY_RESULT || message.try_number > 0);
    buf_init(&text, BYTES_MAX);
    buf_init(&text_again, BYTES_MAX);
    thole_status status = message_encode(&message, bytes);
    assert(status == THOLE_OK);
    status = message_decode(buf_bytes(bytes), arena, &again, NULL);
    assert(status == THOLE_OK);
    (void)status;
    show_message(&message, &text);
    show_message(&again, &text_again);
    assert(thole_slice_equal(buf_bytes(&text), buf_bytes(&text_again)));
    buf_release(&text);
    buf_release(&text_again);
}

static void check_query(thole_slice input, struct arena *arena, struct buf *bytes)
{
    struct query query, again;
    if (query_decode(input, arena, &query, NULL) != THOLE_OK)
        return;
    buf_clear(bytes);
    thole_status status = query_encode(&query, bytes);
    assert(status == THOLE_OK);
    status = query_decode(buf_bytes(bytes), arena, &again, NULL);
    assert(status == THOLE_OK);
    (void)status;
    assert(thole_slice_equal(query.instance, again.instance) && thole_slice_equal(query.name, again.name) &&
           thole_slice_equal(query.input, again.input));
}

static void check_answer(thole_slice input, struct arena *arena, struct buf *bytes)
{
    struct query_answer answer, again;
    if (query_answer_decode(input, arena, &answer, NULL) != THOLE_OK)
        return;
    assert(in_range(&thole__v1__query_answer__descriptor, input, MESSAGE_BYTES_MAX));
    buf_clear(bytes);
    thole_status status = query_answer_encode(&answer, bytes);
    assert(status == THOLE_OK);
    status = query_answer_decode(buf_bytes(bytes), arena, &again, NULL);
    assert(status == THOLE_OK);
    (void)status;
    assert(answer.status == again.status && thole_slice_equal(answer.data, again.data));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    thole_slice const input = {data, size};
    struct arena arena;
    struct buf bytes;
    arena_init(&arena, BYTES_MAX);
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    check_message(input, &arena, &bytes);
    check_query(input, &arena, &bytes);
    check_answer(input, &arena, &bytes);
    buf_release(&bytes);
    arena_release(&arena);
    return 0;
}
