/* Any bytes as an engine's heartbeat. What is accepted reads the same again. */
#include "in_range.h"
#include "messages.pb-c.h"
#include "samples.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 64 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct heartbeat heartbeat, again;
    struct buf bytes, text, text_again;
    arena_init(&arena, BYTES_MAX);
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    buf_init(&text, BYTES_MAX);
    buf_init(&text_again, BYTES_MAX);
    if (heartbeat_decode((thole_slice){data, size}, &arena, &heartbeat, NULL) == THOLE_OK) {
        assert(
            in_range(&thole__v1__node_heartbeat__descriptor, (thole_slice){data, size}, MESSAGE_BYTES_MAX));
        thole_status status = heartbeat_encode(&heartbeat, &bytes);
        assert(status == THOLE_OK);
        status = heartbeat_decode(buf_bytes(&bytes), &arena, &again, NULL);
        assert(status == THOLE_OK);
        (void)status;
        show_heartbeat(&heartbeat, &text);
        show_heartbeat(&again, &text_again);
        assert(thole_slice_equal(buf_bytes(&text), buf_bytes(&text_again)));
    }
    buf_release(&bytes);
    buf_release(&text);
    buf_release(&text_again);
    arena_release(&arena);
    return 0;
}
