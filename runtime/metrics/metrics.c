#include "memory.h"
#include "metrics_state.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- how much room a metric takes ---- */

size_t metric_values(const struct metrics *metrics, enum metric metric)
{
    const struct metric_rule *const rule = &metric_rules[metric];
    size_t n = 0;
    if (rule->label == NULL)
        return 1;
    if (rule->values == NULL)
        return metrics->options.activities_len;
    while (rule->values[n] != NULL)
        n++;
    return n;
}

size_t metric_labels(const struct metrics *metrics, enum metric metric)
{
    size_t const names = metric_rules[metric].named == NULL ? 1 : METRIC_NAMES_MAX;
    return names * metric_values(metrics, metric);
}

size_t metric_buckets(enum metric metric)
{
    size_t n = 0;
    while (metric_rules[metric].bounds[n] != 0)
        n++;
    return n;
}

size_t metric_width(enum metric metric)
{
    return metric_rules[metric].kind == METRIC_HISTOGRAM ? metric_buckets(metric) + 2 : 1;
}

/* ---- the registry ---- */

struct metrics *metrics_create(const struct metrics_options *options)
{
    struct metrics *const metrics = memory_new(sizeof *metrics);
    metrics->options = *options;
    for (int m = 0; m < METRICS; m++) {
        bool const shown = (metric_rules[m].roles & options->roles) != 0;
        metrics->offsets[m] = shown ? metrics->cells_len : METRIC_HIDDEN;
        if (shown)
            metrics->cells_len += metric_labels(metrics, (enum metric)m) * metric_width((enum metric)m);
    }
    return metrics;
}

void metrics_destroy(struct metrics *metrics)
{
    if (metrics == NULL)
        return;
    for (struct metric_cells *cells = atomic_load(&metrics->cells), *next; cells != NULL; cells = next) {
        next = cells->next;
        free(cells);
    }
    for (struct pulse *pulse = atomic_load(&metrics->pulses), *next; pulse != NULL; pulse = next) {
        next = pulse->next;
        free(pulse);
    }
    free(metrics);
}

static bool metrics_take(atomic_bool *taken)
{
    bool expected = false;
    return atomic_compare_exchange_strong(taken, &expected, true);
}

struct metric_cells *metrics_cells(struct metrics *metrics)
{
    if (metrics == NULL)
        return NULL;
    for (struct metric_cells *old = atomic_load(&metrics->cells); old != NULL; old = old->next)
        if (metrics_take(&old->taken))
            return old;
    struct metric_cells *const cells =
        memory_new(sizeof *cells + metrics->cells_len * sizeof cells->values[0]);
    cells->owner = metrics;
    atomic_init(&cells->taken, true);
    cells->next = atomic_load(&metrics->cells);
    while (!atomic_compare_exchange_weak(&metrics->cells, &cells->next, cells)) {
    }
    return cells;
}

void metrics_return_cells(struct metric_cells *cells)
{
    if (cells == NULL)
        return;
    for (int m = 0; m < METRICS; m++)
        for (size_t i = 0;
             metric_rules[m].kind == METRIC_GAUGE && i < metric_labels(cells->owner, (enum metric)m); i++)
            metric_set(cells, (enum metric)m, i, 0);
    atomic_store(&cells->taken, false);
}

/* ---- counting ---- */

/* Where the label's first value is; NULL: nothing is to be counted. */
static _Atomic uint64_t *metrics_find(struct metric_cells *cells, enum metric metric, size_t label)
{
    if (cells == NULL || cells->owner->offsets[metric] == METRIC_HIDDEN)
        return NULL;
    assert(label < metric_labels(cells->owner, metric));
    return &cells->values[cells->owner->offsets[metric] + label * metric_width(metric)];
}

/* No other thread writes the cell, so that nothing is lost between the two. */
static void metrics_grow(_Atomic uint64_t *cell, uint64_t n)
{
    atomic_store_explicit(cell, atomic_load_explicit(cell, memory_order_relaxed) + n, memory_order_relaxed);
}

void metric_add(struct metric_cells *cells, enum metric metric, size_t label, uint64_t n)
{
    _Atomic uint64_t *const cell = metrics_find(cells, metric, label);
    assert(metric_rules[metric].kind != METRIC_HISTOGRAM);
    if (cell != NULL)
        metrics_grow(cell, n);
}

void metric_count(struct metric_cells *cells, enum metric metric, size_t label, uint64_t n)
{
    _Atomic uint64_t *const cell = metrics_find(cells, metric, label);
    assert(metric_rules[metric].kind == METRIC_COUNTER);
    if (cell != NULL)
        (void)atomic_fetch_add_explicit(cell, n, memory_order_relaxed);
}

void metric_set(struct metric_cells *cells, enum metric metric, size_t label, uint64_t value)
{
    _Atomic uint64_t *const cell = metrics_find(cells, metric, label);
    assert(metric_rules[metric].kind != METRIC_HISTOGRAM);
    if (cell != NULL)
        atomic_store_explicit(cell, value, memory_order_relaxed);
}

void metric_observe(struct metric_cells *cells, enum metric metric, size_t label, uint64_t value)
{
    _Atomic uint64_t *const first = metrics_find(cells, metric, label);
    const uint64_t *const bounds = metric_rules[metric].bounds;
    size_t bucket = 0;
    assert(metric_rules[metric].kind == METRIC_HISTOGRAM);
    if (first == NULL)
        return;
    while (bounds[bucket] != 0 && value > bounds[bucket])
        bucket++;
    metrics_grow(&first[bucket], 1);
    metrics_grow(&first[metric_buckets(metric) + 1], value);
}

/* ---- names ---- */

size_t metric_names_shown(const struct metrics *metrics)
{
    return atomic_load_explicit(&metrics->names_len, memory_order_acquire);
}

const char *metric_name_shown(const struct metrics *metrics, size_t i)
{
    return i == METRIC_NAMES_MAX - 1 ? "<other>" : metrics->names[i];
}

static size_t find_name(const struct metrics *metrics, const char *name)
{
    size_t const len = metric_names_shown(metrics);
    size_t i = 0;
    while (i < len && strcmp(metric_name_shown(metrics, i), name) != 0)
        i++;
    return i;
}

/* The last place is that of all others, and is taken by the first of them. */
static size_t metrics_note_name(struct metrics *metrics, const char *name)
{
    while (atomic_flag_test_and_set_explicit(&metrics->noting, memory_order_acquire))
        ;
    size_t const len = metric_names_shown(metrics), i = find_name(metrics, name);
    if (i == len && i < METRIC_NAMES_MAX) {
        (void)snprintf(metrics->names[i], sizeof metrics->names[i], "%s", name);
        atomic_store_explicit(&metrics->names_len, len + 1, memory_order_release);
    }
    atomic_flag_clear_explicit(&metrics->noting, memory_order_release);
    return i;
}

size_t metrics_named(struct metric_cells *cells, enum metric metric, const char *name, size_t label)
{
    if (cells == NULL)
        return 0;
    struct metrics *const metrics = cells->owner;
    assert(metric_rules[metric].named != NULL && label < metric_values(metrics, metric));
    size_t i = find_name(metrics, name);
    if (i == metric_names_shown(metrics) && i < METRIC_NAMES_MAX)
        i = metrics_note_name(metrics, name);
    if (i == METRIC_NAMES_MAX)
        i = METRIC_NAMES_MAX - 1;
    return i * metric_values(metrics, metric) + label;
}

size_t metric_error_class(thole_status status)
{
    switch (status) {
    case THOLE_UNAVAILABLE: return ERRORS_UNAVAILABLE;
    case THOLE_TIMEOUT: return ERRORS_TIMEOUT;
    case THOLE_DENIED: return ERRORS_DENIED;
    case THOLE_INVALID: return ERRORS_INVALID;
    case THOLE_CORRUPT: return ERRORS_CORRUPT;
    default: return ERRORS_OTHER;
    }
}

/* ---- loops ---- */

struct pulse *metrics_pulse(struct metrics *metrics, const char *name, uint64_t limit_ms)
{
    if (metrics == NULL)
        return NULL;
    for (struct pulse *old = atomic_load(&metrics->pulses); old != NULL; old = old->next)
        if (strcmp(old->name, name) == 0 && old->limit_ms == limit_ms && metrics_take(&old->taken))
            return old;
    struct pulse *const pulse = memory_new(sizeof *pulse);
    pulse->name = name;
    pulse->limit_ms = limit_ms;
    atomic_init(&pulse->taken, true);
    pulse->next = atomic_load(&metrics->pulses);
    while (!atomic_compare_exchange_weak(&metrics->pulses, &pulse->next, pulse)) {
    }
    return pulse;
}

void metrics_return_pulse(struct pulse *pulse)
{
    if (pulse == NULL)
        return;
    pulse_rests(pulse);
    atomic_store(&pulse->taken, false);
}

void pulse_begins(struct pulse *pulse, uint64_t now_ms)
{
    if (pulse != NULL)
        atomic_store_explicit(&pulse->since_ms, now_ms, memory_order_relaxed);
}

void pulse_rests(struct pulse *pulse)
{
    if (pulse != NULL)
        atomic_store_explicit(&pulse->since_ms, 0, memory_order_relaxed);
}

/* ---- reading ---- */

uint64_t metrics_read(const struct metrics *metrics, enum metric metric, size_t label, size_t at)
{
    size_t const offset = metrics->offsets[metric];
    uint64_t value = 0;
    if (offset == METRIC_HIDDEN)
        return 0;
    for (struct metric_cells *cells = atomic_load(&metrics->cells); cells != NULL; cells = cells->next) {
        uint64_t const one = atomic_load_explicit(&cells->values[offset + label * metric_width(metric) + at],
                                                  memory_order_relaxed);
        if (metric_rules[metric].join == METRIC_SUM)
            value += one;
        else if (one > value)
            value = one;
    }
    return value;
}

uint64_t metrics_value(const struct metrics *metrics, enum metric metric, size_t label)
{
    assert(metric_rules[metric].kind != METRIC_HISTOGRAM);
    return metrics_read(metrics, metric, label, 0);
}
