/* Any bytes as the server's answer. */
#include "jscan.h"
#include "json.h"
#include "push_consumer.h"
#include "reader.h"
#include "utf8.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void inside(thole_slice part, thole_slice whole)
{
    assert(part.ptr >= whole.ptr && part.len <= whole.len);
    assert((size_t)(part.ptr - whole.ptr) <= whole.len - part.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"error",           "type",          "seq", "message.data",
                                        "config.subjects", "state.last_seq"};
    thole_slice const input = {data, size};
    thole_slice value, item;
    struct ack_meta meta;
    struct buf text;
    uint64_t sequence;
    int64_t number;
    buf_init(&text, 4096);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        size_t at = 0;
        if (!json_path(input, paths[i], &value))
            continue;
        inside(value, input);
        (void)json_int(value, &number);
        (void)json_time_ns(value, &sequence);
        buf_clear(&text);
        (void)json_text(value, &text);
        while (json_item(value, &at, &item))
            inside(item, value);
    }
    buf_clear(&text);
    (void)base64_decode(input, &text);
    buf_clear(&text);
    struct json json;
    json_to_buf(&json, &text);
    json_string(&json, input); /* every written string can be read */
    if (buf_status(&text) == THOLE_OK) {
        struct buf back;
        buf_init(&back, 4096);
        bool const good = json_text(buf_bytes(&text), &back) && utf8_is_valid(buf_bytes(&back));
        assert(good && (!utf8_is_valid(input) || thole_slice_equal(buf_bytes(&back), input)));
        (void)good;
        buf_release(&back);
    }
    buf_clear(&text);
    thole_status const ignored = stream_get_answer(input, &sequence, &text, NULL);
    (void)ignored;
    (void)ack_parse(input, &meta);
    (void)json_time_ns(input, &sequence);
    buf_release(&text);
    return 0;
}
