/*
 * A fuzz target's main where there is no libFuzzer: runs it over all files of some folders and over COUNT
 * mutations of them, the same ones each time.   fuzz_X COUNT FOLDER...
 */
#include "guarded.h"
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_BYTES = 4096, SEEDS_MAX = 512 };

struct input {
    uint8_t bytes[INPUT_BYTES];
    size_t len;
};

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Adds to the @p n seeds; returns their number. */
static size_t read_seeds(const char *folder, struct input *seeds, size_t n)
{
    struct dirent **entries = NULL;
    int const count = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        FILE *file = entries[i]->d_name[0] != '.' && n < SEEDS_MAX ? fopen(path, "rb") : NULL;
        if (file != NULL) {
            seeds[n].len = fread(seeds[n].bytes, 1, INPUT_BYTES, file);
            n++;
            (void)fclose(file);
        }
        free(entries[i]);
    }
    free(entries);
    return n;
}

/* Flips, inserts, removes and repeats some bytes. */
static void mutate(struct input *input, uint64_t *state)
{
    for (uint64_t changes = 1 + next(state) % 8; changes > 0; changes--) {
        size_t const at = input->len == 0 ? 0 : next(state) % input->len;
        size_t const rest = input->len - at;
        switch (next(state) % 4) {
        case 0:
            if (rest > 0)
                input->bytes[at] ^= (uint8_t)(1U << next(state) % 8);
            break;
        case 1:
            if (rest > 0)
                input->bytes[at] = (uint8_t)next(state);
            break;
        case 2:
            if (input->len < INPUT_BYTES) {
                memmove(input->bytes + at + 1, input->bytes + at, rest);
                input->bytes[at] = (uint8_t)next(state);
                input->len++;
            }
            break;
        default: input->len = at; break;
        }
    }
}

/* The first byte read beyond the input is a crash. */
static void run(const struct input *input)
{
    (void)LLVMFuzzerTestOneInput(guarded_copy(input->bytes, input->len), input->len);
}

int main(int argc, char **argv)
{
    static struct input seeds[SEEDS_MAX], input;
    uint64_t const count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    uint64_t state = 0x9E3779B97F4A7C15u;
    size_t n = 1; /* the first is empty */
    for (int i = 2; i < argc; i++)
        n = read_seeds(argv[i], seeds, n);
    for (size_t i = 0; i < n; i++)
        run(&seeds[i]);
    for (uint64_t i = 0; i < count; i++) {
        input = seeds[next(&state) % n];
        mutate(&input, &state);
        run(&input);
    }
    printf("%zu seeds, %llu mutations\n", n, (unsigned long long)count);
    return 0;
}
