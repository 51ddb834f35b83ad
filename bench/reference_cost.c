/*
 * The cost and the savings when a record that has a payload twice stores it once: `reference_cost`,
 * docs/benchmarks.md. In CPU time, which other load changes little, alone, without servers: a record of two
 * events with the same payload, written (encoded and hashed) and read, with references and without; two small
 * payloads, for which no search is made; and the worst case of a turn, payloads that differ in one byte in
 * their midst.
 */
#include "event.h"
#include "payload_hash.h"
#include "record_hash.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 9, ALIKE = 64, ALIKE_BYTES = 100 * 1024 };

static double cpu_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int cost_compare(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct figures {
    double write_us, read_us;
    size_t bytes;
};

static void cost_fail(const char *what)
{
    fprintf(stderr, "reference_cost: %s\n", what);
    exit(1);
}

/* Writes and reads it @p times; the medians of some rounds. */
static struct figures cost_measure(const struct event *events, size_t len, bool refers, unsigned times)
{
    static const struct salt_key key = {.bytes = {1}};
    static const struct salt_source salts = {&key, 0};
    struct record const record = {.kind = RECORD_TURN,
                                  .epoch = 1,
                                  .n = 1,
                                  .salts = &salts,
                                  .refers = refers,
                                  .turn = {.instance = THOLE_STR("order-17"),
                                           .execution = 1,
                                           .number = 1,
                                           .ran = true,
                                           .events = events,
                                           .events_len = len}};
    double writes[ROUNDS], reads[ROUNDS];
    struct figures figures = {.bytes = 0};
    for (size_t round = 0; round < ROUNDS; round++) {
        struct buf bytes;
        buf_init(&bytes, RECORD_BYTES_MAX);
        double const begun = cpu_us();
        for (unsigned i = 0; i < times; i++) {
            buf_clear(&bytes);
            if (record_encode(&record, &bytes) != THOLE_OK)
                cost_fail("a record cannot be written");
            struct record_hash const hash = record_hash_make(THOLE_STR("bench"), 0, buf_bytes(&bytes));
            if (!record_hash_known(&hash))
                cost_fail("a record has no hash");
        }
        double const written = cpu_us();
        for (unsigned i = 0; i < times; i++) {
            struct arena arena;
            struct record read;
            arena_init(&arena, SIZE_MAX / 2);
            if (record_decode(buf_bytes(&bytes), &arena, &read, NULL) != THOLE_OK ||
                read.turn.events_len != len)
                cost_fail("a record cannot be read");
            arena_release(&arena);
        }
        writes[round] = (written - begun) / times;
        reads[round] = (cpu_us() - written) / times;
        figures.bytes = bytes.len;
        buf_release(&bytes);
    }
    qsort(writes, ROUNDS, sizeof writes[0], cost_compare);
    qsort(reads, ROUNDS, sizeof reads[0], cost_compare);
    figures.write_us = writes[ROUNDS / 2];
    figures.read_us = reads[ROUNDS / 2];
    return figures;
}

static void cost_show(const char *name, const struct event *events, size_t len, unsigned times)
{
    struct figures const without = cost_measure(events, len, false, times),
                         with = cost_measure(events, len, true, times);
    printf("%-34s %9zu %9zu bytes  %9.2f %9.2f us to write  %9.2f %9.2f us to read\n", name, without.bytes,
           with.bytes, without.write_us, with.write_us, without.read_us, with.read_us);
}

static void cost_show_pair(const char *name, size_t bytes, unsigned times)
{
    uint8_t *const one = malloc(bytes), *const two = malloc(bytes);
    if (one == NULL || two == NULL)
        cost_fail("out of memory");
    memset(one, 'x', bytes);
    memset(two, 'x', bytes);
    struct event const events[] = {
        {.kind = EVENT_STARTED, .id = 1, .code = 1, .name = THOLE_STR("checkout"), .data = {one, bytes}},
        {.kind = EVENT_ACTIVITY_SCHEDULED,
         .id = 2,
         .name = THOLE_STR("reserve"),
         .queue = THOLE_STR("default"),
         .data = {two, bytes}}};
    cost_show(name, events, 2, times);
    free(one);
    free(two);
}

static void cost_show_worst(void)
{
    static uint8_t bytes[ALIKE][ALIKE_BYTES];
    struct event events[ALIKE];
    for (size_t i = 0; i < ALIKE; i++) {
        bytes[i][ALIKE_BYTES - 100] = (uint8_t)i;
        events[i] =
            (struct event){.kind = EVENT_CUSTOM_STATUS_SET, .id = i + 1, .data = {bytes[i], ALIKE_BYTES}};
    }
    cost_show("64 of 100 KiB, alike but for a byte", events, ALIKE, 3);
}

int main(void)
{
    printf("each without references, and with them\n");
    cost_show_pair("twice 100 bytes", 100, 20000);
    cost_show_pair("twice 1 KiB", 1024, 10000);
    cost_show_pair("twice 16 KiB", 16 * 1024, 1000);
    cost_show_pair("twice 256 KiB", 256 * 1024, 50);
    cost_show_worst();
    return 0;
}
