/* Any bytes as a query, as its answer, and as a file of histories: nothing crashes, what is accepted is good
 * in form and comes back the same. */
#include "history_file.h"
#include "message.h"
#include "query_message.h"
#include <assert.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_question(thole_slice bytes, struct arena *arena)
{
    struct query query, again;
    struct buf to;
    if (query_decode(bytes, arena, &query, NULL) != THOLE_OK)
        return;
    assert(id_check(query.instance, NULL) == THOLE_OK && name_check(query.name, "query", NULL) == THOLE_OK);
    buf_init(&to, MESSAGE_BYTES_MAX);
    if (query_encode(&query, &to) == THOLE_OK &&
        query_decode(buf_bytes(&to), arena, &again, NULL) == THOLE_OK)
        assert(thole_slice_equal(query.instance, again.instance) &&
               thole_slice_equal(query.name, again.name) && thole_slice_equal(query.input, again.input));
    buf_release(&to);
}

static thole_status on_begin(void *arg, thole_slice instance)
{
    (void)arg;
    assert(id_check(instance, NULL) == THOLE_OK);
    return THOLE_OK;
}

static thole_status on_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    size_t *left = arg;
    (void)sequence;
    assert(bytes.len <= *left);
    return THOLE_OK;
}

static thole_status on_end(void *arg)
{
    (void)arg;
    return THOLE_OK;
}

static void check_file(const uint8_t *data, size_t size)
{
    struct history_file_reader const reader = {on_begin, on_record, on_end, &size};
    FILE *from = size == 0 ? NULL : fmemopen((void *)(uintptr_t)data, size, "r");
    if (from == NULL)
        return;
    thole_status const status = history_file_read(from, &reader, NULL);
    (void)status;
    (void)fclose(from);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct query_answer answer;
    thole_slice const bytes = {data, size};
    arena_init(&arena, 1024 * 1024);
    check_question(bytes, &arena);
    thole_status const status = query_answer_decode(bytes, &arena, &answer, NULL);
    (void)status;
    arena_release(&arena);
    check_file(data, size);
    return 0;
}
