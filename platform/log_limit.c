#include "log_limit.h"
#include "buf.h"
#include "memory.h"
#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE_BYTES = 2048, TOTALS_BYTES = 1400 }; /* log_line_of() cuts there */

/* Of one kind in one partition. An interval begins with its first line. */
struct place {
    struct place *next; /* of those that have counted something */
    uint64_t until_ms;  /* the end of the interval */
    uint64_t since_ms;  /* when the first of "more" came */
    uint64_t more, total;
    uint32_t every_ms, lines; /* of the interval: its length, what it has written */
};

struct kind {
    uint64_t total;
    uint64_t spent_ms; /* up to then its lines are paid for, one each LOG_LIMIT_LINE_MS */
};

struct log_limits {
    pthread_mutex_t lock;
    const struct log_kind *rules;
    struct kind *kinds;
    struct place *places; /* by partition and kind; the last ones are of no partition */
    struct place *counting;
    uint64_t due_ms; /* not before then is one of these due */
    size_t kinds_len;
    uint32_t partitions;
};

struct log_limits *log_limits_create(const struct log_kind *kinds, size_t kinds_len, uint32_t partitions)
{
    struct log_limits *const limits = memory_new(sizeof *limits);
    pthread_mutex_init(&limits->lock, NULL);
    limits->rules = kinds;
    limits->kinds_len = kinds_len;
    limits->partitions = partitions;
    limits->due_ms = UINT64_MAX;
    limits->kinds = memory_array(kinds_len, sizeof *limits->kinds);
    limits->places = memory_array(((size_t)partitions + 1) * kinds_len, sizeof *limits->places);
    return limits;
}

void log_limits_destroy(struct log_limits *limits)
{
    if (limits == NULL)
        return;
    pthread_mutex_destroy(&limits->lock);
    free(limits->places);
    free(limits->kinds);
    free(limits);
}

static struct place *log_limit_place_of(struct log_limits *limits, size_t kind,
                                        const struct log_fields *fields)
{
    bool const of_partition = fields != NULL && fields->of_partition;
    assert(kind < limits->kinds_len && (!of_partition || fields->partition < limits->partitions));
    size_t const row = of_partition ? fields->partition : limits->partitions;
    return &limits->places[row * limits->kinds_len + kind];
}

/* All partitions together pay for their lines of the kind. */
static bool log_limit_pay(struct kind *kind, uint64_t now_ms)
{
    if (kind->spent_ms < now_ms)
        kind->spent_ms = now_ms;
    if (kind->spent_ms - now_ms >= (uint64_t)LOG_LIMIT_BURST * LOG_LIMIT_LINE_MS)
        return false;
    kind->spent_ms += LOG_LIMIT_LINE_MS;
    return true;
}

static void begin_interval(struct place *place, uint64_t now_ms, uint32_t every_ms)
{
    place->every_ms = every_ms < LOG_LIMIT_LONGEST_MS ? every_ms : LOG_LIMIT_LONGEST_MS;
    place->until_ms = now_ms + place->every_ms;
    place->lines = 0;
}

static void log_limit_count(struct log_limits *limits, struct place *place, uint64_t now_ms)
{
    if (place->more++ > 0)
        return;
    place->since_ms = now_ms;
    place->next = limits->counting;
    limits->counting = place;
    if (place->until_ms < limits->due_ms)
        limits->due_ms = place->until_ms;
}

static void log_limit_take(struct log_limits *limits, uint64_t now_ms, size_t kind,
                           const struct log_fields *fields, const char *text)
{
    const struct log_kind *const rule = &limits->rules[kind];
    struct place *const place = log_limit_place_of(limits, kind, fields);
    place->total++;
    limits->kinds[kind].total++;
    if (now_ms >= place->until_ms && place->more == 0)
        begin_interval(place, now_ms, LOG_LIMIT_FIRST_MS);
    if (place->lines < rule->lines && log_limit_pay(&limits->kinds[kind], now_ms)) {
        place->lines++;
        log_line_of(rule->level, rule->area, fields, "%s", text);
    } else {
        log_limit_count(limits, place, now_ms);
    }
}

void log_limits_line(struct log_limits *limits, uint64_t now_ms, size_t kind, const struct log_fields *fields,
                     const char *fmt, ...)
{
    char text[LINE_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pthread_mutex_lock(&limits->lock);
    log_limit_take(limits, now_ms, kind, fields, text);
    pthread_mutex_unlock(&limits->lock);
}

/* False: other partitions have written so many that it has to wait. */
static bool say_more(struct log_limits *limits, struct place *place, uint64_t now_ms)
{
    size_t const at = (size_t)(place - limits->places), kind = at % limits->kinds_len;
    const struct log_kind *const rule = &limits->rules[kind];
    uint32_t const row = (uint32_t)(at / limits->kinds_len);
    if (!log_limit_pay(&limits->kinds[kind], now_ms)) {
        place->until_ms = now_ms + LOG_LIMIT_FIRST_MS;
        return false;
    }
    log_line_of(rule->level, rule->area, row == limits->partitions ? NULL : LOG_PARTITION(row),
                "and %" PRIu64 " more %s, in %" PRIu64 " ms; %" PRIu64 " since the start", place->more,
                rule->more, now_ms - place->since_ms, place->total);
    place->more = 0;
    begin_interval(place, now_ms, 2 * place->every_ms);
    return true;
}

uint64_t log_limits_rest(struct log_limits *limits, uint64_t now_ms)
{
    pthread_mutex_lock(&limits->lock);
    uint64_t due_ms = now_ms < limits->due_ms ? limits->due_ms : UINT64_MAX;
    for (struct place **link = &limits->counting; now_ms >= limits->due_ms && *link != NULL;) {
        struct place *const place = *link;
        if (now_ms >= place->until_ms && say_more(limits, place, now_ms)) {
            *link = place->next;
            continue;
        }
        due_ms = place->until_ms < due_ms ? place->until_ms : due_ms;
        link = &place->next;
    }
    limits->due_ms = due_ms;
    pthread_mutex_unlock(&limits->lock);
    return due_ms;
}

uint64_t log_limits_total(struct log_limits *limits, size_t kind)
{
    pthread_mutex_lock(&limits->lock);
    uint64_t const total = limits->kinds[kind].total;
    pthread_mutex_unlock(&limits->lock);
    return total;
}

void log_limits_say_totals(struct log_limits *limits, const char *area)
{
    struct buf text;
    buf_init(&text, TOTALS_BYTES);
    for (size_t kind = 0; kind < limits->kinds_len; kind++) {
        uint64_t const total = log_limits_total(limits, kind);
        if (total > 0)
            buf_printf(&text, "%s=%" PRIu64 " ", limits->rules[kind].name, total);
    }
    if (buf_bytes(&text).len > 0)
        log_line(LOG_LEVEL_INFO, area, "counted: %s", buf_cstr(&text));
    buf_release(&text);
}
