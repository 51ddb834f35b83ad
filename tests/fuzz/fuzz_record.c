/* Any bytes as a history record. What is accepted can be written, with references and without, reads the same
 * again, and takes no more room than was said. */
#include "samples.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_MAX = 64 * 1024 * 1024, TEXT_MAX = 64 * 1024 * 1024, FRAME_MAX = 512 };

static size_t bytes_expected(const struct record *record)
{
    size_t bytes = FRAME_MAX + record->node.len + record->turn.instance.len + record->turn.blocked_text.len +
                   position_bytes_max(&record->position);
    for (size_t i = 0; i < record->turn.events_len; i++)
        bytes += event_bytes_max(&record->turn.events[i]);
    return bytes;
}

static void check_again(const struct record *record, bool refers, struct arena *arena)
{
    struct record again, whole = *record;
    struct buf bytes, text, text_again;
    buf_init(&bytes, RECORD_BYTES_MAX);
    buf_init(&text, TEXT_MAX);
    buf_init(&text_again, TEXT_MAX);
    whole.refers = refers;
    thole_status status = record_encode(&whole, &bytes);
    assert(status == THOLE_OK);
    assert(bytes.len <= bytes_expected(record));
    status = record_decode(buf_bytes(&bytes), arena, &again, NULL);
    assert(status == THOLE_OK);
    (void)status;
    show_record(record, &text);
    show_record(&again, &text_again);
    assert(thole_slice_equal(buf_bytes(&text), buf_bytes(&text_again)));
    for (size_t i = 0; i < again.turn.events_len; i++)
        assert(event_equal(&again.turn.events[i], &record->turn.events[i]));
    buf_release(&bytes);
    buf_release(&text);
    buf_release(&text_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct record record;
    thole_error err = {.text = ""};
    arena_init(&arena, ARENA_MAX);
    thole_status const status = record_decode((thole_slice){data, size}, &arena, &record, &err);
    for (int refers = 0; status == THOLE_OK && record.kind != RECORD_UNKNOWN && refers < 2; refers++)
        check_again(&record, refers, &arena);
    assert(status == THOLE_OK || (err.status == status && err.text[0] != '\0'));
    assert(status == THOLE_OK || status == THOLE_CORRUPT || status == THOLE_LIMIT ||
           status == THOLE_UNSUPPORTED);
    arena_release(&arena);
    return 0;
}
