#include "partition_states.h"
#include "clock.h"
#include "memory.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LATELY_MS = 5 * 60 * 1000, CLOSINGS_KEPT = 32, TEXT_BYTES = 240, LIMITED_KEPT = 8, LIMITED_TOLD = 64 };

struct limited {
    enum partition_limit limit;
    uint64_t at_ms, count; /* monotonic; count 0: nothing is here */
    char orchestration[THOLE_NAME_BYTES_MAX + 1], instance[THOLE_ID_BYTES_MAX + 1];
    struct limited_words words;
};

struct told {
    struct partition_now now;
    uint64_t since_ms; /* wall clock: in this state */
    enum closed_cause cause;
    char text[TEXT_BYTES];               /* why it was closed last; empty: it was not */
    uint64_t closings_ms[CLOSINGS_KEPT]; /* monotonic, a ring */
    size_t closings;
    struct limited limited[LIMITED_KEPT];
};

struct partition_states {
    pthread_mutex_t lock; /* guards the rest */
    uint32_t partitions;
    struct told told[];
};

struct partition_states *partition_states_create(uint32_t partitions)
{
    struct partition_states *const states = memory_new(sizeof *states + partitions * sizeof states->told[0]);
    states->partitions = partitions;
    (void)pthread_mutex_init(&states->lock, NULL);
    return states;
}

void partition_states_destroy(struct partition_states *states)
{
    if (states == NULL)
        return;
    (void)pthread_mutex_destroy(&states->lock);
    free(states);
}

void partition_states_set(struct partition_states *states, uint32_t p, const struct partition_now *now)
{
    if (states == NULL)
        return;
    struct told *const told = &states->told[p];
    if (told->now.state == now->state && told->now.wanted == now->wanted && told->now.busy == now->busy &&
        told->now.epoch == now->epoch)
        return; /* no other thread writes them */
    (void)pthread_mutex_lock(&states->lock);
    if (told->now.state != now->state || told->since_ms == 0)
        told->since_ms = clock_wall_ms();
    told->now = *now;
    (void)pthread_mutex_unlock(&states->lock);
}

void partition_states_closed(struct partition_states *states, uint32_t p, enum closed_cause cause,
                             const char *text)
{
    if (states == NULL)
        return;
    struct told *const told = &states->told[p];
    (void)pthread_mutex_lock(&states->lock);
    told->cause = cause;
    (void)snprintf(told->text, sizeof told->text, "%s", text);
    told->closings_ms[told->closings++ % CLOSINGS_KEPT] = clock_monotonic_ms();
    (void)pthread_mutex_unlock(&states->lock);
}

struct limited_words limited_words_of(const struct out_limited *out)
{
    struct limited_words words = {.text = "", .remedy = ""};
    switch (out->limit) {
    case LIMIT_EXECUTIONS:
        (void)snprintf(
            words.text, sizeof words.text,
            "an instance of orchestration %.*s continues as new more than %llu times a minute: its "
            "next execution begins later (--executions-max)",
            THOLE_FMT(out->orchestration), (unsigned long long)out->max);
        words.remedy = "let its code await something in each execution, or thole terminate it";
        break;
    case LIMIT_TURNS:
        (void)snprintf(
            words.text, sizeof words.text,
            "orchestration %.*s takes most of the turns beside others, so it has %llu at a time and "
            "rests between them (--burst-max)",
            THOLE_FMT(out->orchestration), (unsigned long long)out->max);
        words.remedy = "nothing, if that is as it should be; more engines, or a namespace of its own";
        break;
    case PARTITION_LIMITS: break;
    }
    return words;
}

/* The place of the orchestration and limit, or of what was met longest ago. */
static struct limited *limited_place(struct told *told, const struct out_limited *out)
{
    struct limited *oldest = &told->limited[0];
    for (size_t i = 0; i < LIMITED_KEPT; i++) {
        struct limited *const place = &told->limited[i];
        if (place->count > 0 && place->limit == out->limit &&
            thole_slice_equal(thole_slice_from(place->orchestration), out->orchestration))
            return place;
        if (place->at_ms < oldest->at_ms)
            oldest = place;
    }
    *oldest = (struct limited){.limit = out->limit};
    (void)snprintf(oldest->orchestration, sizeof oldest->orchestration, "%.*s",
                   THOLE_FMT(out->orchestration));
    return oldest;
}

void partition_states_limited(struct partition_states *states, uint32_t p, const struct out_limited *out,
                              const struct limited_words *words)
{
    uint64_t const now_ms = clock_monotonic_ms();
    if (states == NULL)
        return;
    (void)pthread_mutex_lock(&states->lock);
    struct limited *const place = limited_place(&states->told[p], out);
    if (now_ms - place->at_ms >= LATELY_MS)
        place->count = 0;
    place->at_ms = now_ms;
    place->count++;
    (void)snprintf(place->instance, sizeof place->instance, "%.*s", THOLE_FMT(out->instance));
    place->words = *words;
    (void)pthread_mutex_unlock(&states->lock);
}

bool partition_states_wanted(struct partition_states *states, uint32_t p)
{
    (void)pthread_mutex_lock(&states->lock);
    bool const wanted = states->told[p].now.wanted;
    (void)pthread_mutex_unlock(&states->lock);
    return wanted;
}

bool partition_states_busy(struct partition_states *states)
{
    bool busy = false;
    (void)pthread_mutex_lock(&states->lock);
    for (uint32_t p = 0; p < states->partitions; p++)
        busy |= states->told[p].now.busy;
    (void)pthread_mutex_unlock(&states->lock);
    return busy;
}

static uint64_t closed_lately(const struct told *told, uint64_t now_ms)
{
    uint64_t n = 0;
    for (size_t i = 0; i < CLOSINGS_KEPT && i < told->closings; i++)
        n += now_ms - told->closings_ms[i] < LATELY_MS;
    return n;
}

/* @p room: how many more of the engine's may be told. */
static void limited_json(const struct told *told, size_t *room, struct json *json)
{
    uint64_t const now_ms = clock_monotonic_ms();
    json_key(json, "limited");
    json_array(json);
    for (size_t i = 0; i < LIMITED_KEPT; i++) {
        const struct limited *const place = &told->limited[i];
        if (*room == 0 || place->count == 0 || now_ms - place->at_ms >= LATELY_MS)
            continue;
        --*room;
        json_object(json);
        json_member_text(json, "limit", partition_limit_name(place->limit));
        json_member_text(json, "orchestration", place->orchestration);
        json_member_text(json, "instance", place->instance);
        json_member_number(json, "count", place->count);
        json_member_text(json, "text", place->words.text);
        json_member_text(json, "remedy", place->words.remedy);
        json_end(json);
    }
    json_end(json);
}

static void told_json(const struct told *told, uint32_t p, size_t *room, struct json *json)
{
    static const char *const names[] = {"closed", "opening", "open", "closing"};
    json_object(json);
    json_member_number(json, "partition", p);
    json_member_text(json, "state", names[told->now.state]);
    json_member_bool(json, "wanted", told->now.wanted);
    json_member_number(json, "epoch", told->now.epoch);
    json_member_number(json, "since_ms", told->since_ms);
    json_member_number(json, "closed_lately", closed_lately(told, clock_monotonic_ms()));
    if (told->text[0] != '\0') {
        json_member_text(json, "cause", metric_rules[METRIC_ENGINE_CLOSED].values[told->cause]);
        json_member_text(json, "text", told->text);
    }
    limited_json(told, room, json);
    json_end(json);
}

void partition_states_json(struct partition_states *states, struct json *json)
{
    size_t room = LIMITED_TOLD;
    json_array(json);
    (void)pthread_mutex_lock(&states->lock);
    for (uint32_t p = 0; p < states->partitions; p++)
        if (states->told[p].now.wanted || states->told[p].now.state != PARTITION_CLOSED)
            told_json(&states->told[p], p, &room, json);
    (void)pthread_mutex_unlock(&states->lock);
    json_end(json);
}
