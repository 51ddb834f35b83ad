#include "told.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SAID_WRONG_MAX = 3 };

/* ---- numbers and bytes ---- */

static void mix(struct told *told, uint64_t n)
{
    told->hash = (told->hash ^ n) * UINT64_C(0x9E3779B97F4A7C15);
    told->hash ^= told->hash >> 29;
}

void told_begin(struct told *told, FILE *to)
{
    *told = (struct told){.hash = UINT64_C(0xCBF29CE484222325), .to = to};
}

void told_line(struct told *told, const char *what)
{
    for (const char *p = what; *p != '\0'; p++)
        mix(told, (uint8_t)*p);
    if (told->to != NULL)
        fprintf(told->to, "\n%s", what);
}

/* Zeros are not written: there would be little else to see. */
void told_number(struct told *told, const char *name, uint64_t n)
{
    mix(told, n);
    if (told->to != NULL && n != 0)
        fprintf(told->to, " %s=%" PRIu64, name, n);
}

static void write_bytes(FILE *to, thole_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        if (bytes.ptr[i] >= ' ' && bytes.ptr[i] < 127 && bytes.ptr[i] != '%')
            putc(bytes.ptr[i], to);
        else
            fprintf(to, "%%%02x", bytes.ptr[i]);
}

void told_bytes(struct told *told, const char *name, thole_slice bytes)
{
    mix(told, bytes.len);
    for (size_t i = 0; i < bytes.len; i += sizeof(uint64_t)) {
        size_t const left = bytes.len - i;
        uint64_t word = 0;
        for (size_t k = 0; k < left && k < sizeof word; k++)
            word |= (uint64_t)bytes.ptr[i + k] << 8 * k;
        mix(told, word);
    }
    if (told->to == NULL || bytes.len == 0)
        return;
    fprintf(told->to, " %s='", name);
    write_bytes(told->to, bytes);
    putc('\'', told->to);
}

/* ---- events ---- */

static void told_retry(struct told *told, const struct retry *retry)
{
    told_number(told, "tries", retry->tries_max);
    told_number(told, "first_delay_ms", retry->first_delay_ms);
    told_number(told, "max_delay_ms", retry->max_delay_ms);
    told_number(told, "try_timeout_ms", retry->try_timeout_ms);
    told_number(told, "total_timeout_ms", retry->total_timeout_ms);
    told_number(told, "factor_milli", retry->factor_milli);
    told_number(told, "jitter_milli", retry->jitter_milli);
    told_number(told, "poison", retry->poison);
    for (size_t i = 0; i < retry->final_types_len; i++)
        told_bytes(told, "final_type", retry->final_types[i]);
}

void told_event(struct told *told, const struct event *event)
{
    told_line(told, event_kind_name(event->kind));
    told_number(told, "id", event->id);
    told_number(told, "ref", event->ref);
    told_number(told, "due_ms", event->due_ms);
    told_number(told, "code", event->code);
    told_number(told, "try", event->try_number);
    told_number(told, "version", event->version);
    told_number(told, "flags",
                (uint64_t)event->timed | (uint64_t)event->flag << 1 | (uint64_t)event->final << 2 |
                    (uint64_t)event->quarantined << 3);
    told_number(told, "lost", event->lost);
    told_bytes(told, "name", event->name);
    told_bytes(told, "queue", event->queue);
    told_bytes(told, "input", event->input);
    told_bytes(told, "worker", event->worker);
    told_bytes(told, "data", event->data);
    told_bytes(told, "request_id", event->request_id);
    told_bytes(told, "error_type", event->error_type);
    told_bytes(told, "details", event->details);
    told_bytes(told, "target", event->target);
    if (event->kind == EVENT_HISTORY_PRUNED) {
        told_number(told, "kept", event->kept);
    } else {
        told_bytes(told, "parent", event->parent.instance);
        told_number(told, "parent_execution", event->parent.execution);
        told_number(told, "parent_event", event->parent.event);
    }
    if (event->retry != NULL)
        told_retry(told, event->retry);
}

/* ---- books ---- */

FILE *told_reader(uint64_t seed)
{
    const char *const wanted = getenv("THOLE_TOLD");
    return wanted != NULL && strtoull(wanted, NULL, 10) == seed ? stdout : NULL;
}

bool told_book_open(struct told_book *book, const char *name)
{
    char path[512];
    const char *const mode = getenv("THOLE_TOLD");
    *book = (struct told_book){.name = name, .writes = mode != NULL && strcmp(mode, "write") == 0};
    (void)snprintf(path, sizeof path, THOLE_SOURCE_DIR "/tests/told/%s", name);
    book->file = fopen(path, book->writes ? "w" : "r");
    if (book->file == NULL)
        fprintf(stderr, "%s cannot be opened\n", path);
    return book->file != NULL;
}

static void wrong(struct told_book *book, const char *what, uint64_t seed)
{
    if (book->wrong++ < SAID_WRONG_MAX)
        fprintf(stderr,
                "\n  seed %" PRIu64 " %s tests/told/%s. If the behaviour was meant to change, write it anew: "
                "THOLE_TOLD=write\n",
                seed, what, book->name);
}

void told_book_check(struct told_book *book, uint64_t seed, uint64_t hash)
{
    uint64_t known_seed = 0, known = 0;
    if (book->writes)
        fprintf(book->file, "%" PRIu64 " %016" PRIx64 "\n", seed, hash);
    else if (fscanf(book->file, "%" SCNu64 " %" SCNx64, &known_seed, &known) != 2 || known_seed != seed)
        wrong(book, "is not the next one in", seed);
    else if (known != hash)
        wrong(book, "says something else than in", seed);
}

bool told_book_close(struct told_book *book)
{
    return fclose(book->file) == 0 && book->wrong == 0;
}
