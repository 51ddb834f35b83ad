#include "torture.h"
#include "guarded.h"
#include "heap.h"
#include <stdlib.h>

enum { ARENA_MAX = 16 << 20, GARBAGE_BYTES_MAX = 200, HEAP_NOISE = 8192 };

/* xorshift: the same numbers on every machine. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

void torture_touch(thole_slice bytes)
{
    volatile uint8_t last = 0;
    for (size_t i = 0; i < bytes.len; i++)
        last = bytes.ptr[i];
    (void)last;
}

/* From memory of exactly that size: reading beyond the end is a crash. */
static thole_status decode_exact(torture_fn *decode, const uint8_t *bytes, size_t len, size_t arena_max)
{
    struct arena arena;
    thole_error err = {.text = ""};
    arena_init(&arena, arena_max);
    thole_status const status = decode((thole_slice){guarded_copy(bytes, len), len}, &arena, &err);
    arena_release(&arena);
    bool const known =
        status == THOLE_OK || status == THOLE_CORRUPT || status == THOLE_UNSUPPORTED || status == THOLE_LIMIT;
    if (!known || (status != THOLE_OK && (err.status != status || err.text[0] == '\0')))
        CU_FAIL("a status that a decoder may not return, or one without a text");
    return status;
}

static void cut_off(torture_fn *decode, thole_slice bytes)
{
    for (size_t len = 0; len < bytes.len; len++)
        (void)decode_exact(decode, bytes.ptr, len, ARENA_MAX);
}

static void changed(torture_fn *decode, thole_slice bytes)
{
    static const uint8_t values[] = {0x00, 0x01, 0x0a, 0x12, 0x1a, 0x22, 0x3a, 0x7f, 0x80, 0xff};
    uint8_t *copy = malloc(bytes.len);
    memcpy(copy, bytes.ptr, bytes.len);
    for (size_t i = 0; i < bytes.len; i++) {
        for (size_t v = 0; v < ARRAY_LEN(values); v++) {
            copy[i] = values[v];
            (void)decode_exact(decode, copy, bytes.len, ARENA_MAX);
        }
        copy[i] = bytes.ptr[i];
    }
    free(copy);
}

static void changed_at_random(torture_fn *decode, thole_slice bytes, uint64_t *state)
{
    uint8_t *copy = malloc(bytes.len + 8);
    size_t used = 0;
    for (size_t round = 0; round < 3000; round++) {
        size_t len = bytes.len;
        if (round == 1000)
            used = heap_used();
        memcpy(copy, bytes.ptr, len);
        for (uint64_t n = next_random(state) % 4; n > 0; n--)
            copy[next_random(state) % len] = (uint8_t)next_random(state);
        size_t const at = next_random(state) % len;
        if (next_random(state) % 2 == 0) {
            memmove(copy + at + 1, copy + at, len - at);
            copy[at] = (uint8_t)next_random(state);
            len++;
        } else {
            memmove(copy + at, copy + at + 1, len - at - 1);
            len--;
        }
        (void)decode_exact(decode, copy, len, ARENA_MAX);
    }
    CU_ASSERT(heap_used() < used + HEAP_NOISE); /* nor does it keep anything */
    free(copy);
}

void torture_bytes(torture_fn *decode, thole_slice bytes)
{
    uint64_t state = 0x9e3779b97f4a7c15;
    CU_ASSERT_EQUAL(decode_exact(decode, bytes.ptr, bytes.len, ARENA_MAX), THOLE_OK);
    cut_off(decode, bytes);
    changed(decode, bytes);
    changed_at_random(decode, bytes, &state);
}

void torture_garbage(torture_fn *decode, size_t rounds)
{
    uint64_t state = 88172645463325252;
    uint8_t bytes[GARBAGE_BYTES_MAX];
    for (size_t round = 0; round < rounds; round++) {
        size_t const len = next_random(&state) % sizeof bytes;
        bool const fields = round % 2 == 0;
        for (size_t i = 0; i < len; i++) {
            uint64_t const r = next_random(&state);
            /* A tag of a low field number, or a small length or number. */
            bytes[i] = (uint8_t)(!fields      ? r
                                 : i % 2 == 0 ? (r % 15 + 1) << 3 | (r >> 8) % 6
                                              : r % (len - i + 1));
        }
        (void)decode_exact(decode, bytes, len, ARENA_MAX);
    }
}

void torture_arena(torture_fn *decode, thole_slice bytes)
{
    size_t limit = 0, failures = 0;
    thole_status status;
    while ((status = decode_exact(decode, bytes.ptr, bytes.len, limit)) == THOLE_LIMIT) {
        limit += 16;
        failures++;
    }
    CU_ASSERT_EQUAL(status, THOLE_OK);
    CU_ASSERT(failures > 0);
}
