/*
 * When the next execution of an instance begins that continues as new. Usually at once. An instance may begin
 * options.executions_max executions in a row, and as many in each span (a minute); beyond that each waits
 * until the span allows one more. Only the time changes: what the execution records is the same, and a replay
 * knows nothing of it. It ends early when a client has something for the instance, or much waits for it,
 * since the next execution takes that.
 *
 * An owner counts from the time at which it has the instance in memory.
 */
#include "instances_state.h"
#include "lanes.h"
#include <assert.h>

enum {
    MICROS = 1000,
    WAITING_MAX = 16, /* of the messages that the partition may have without a record */
};

static uint64_t span_us(const struct instances *p)
{
    return p->env->options.executions_span_ms * MICROS;
}

static uint64_t each_us(const struct instances *p)
{
    return span_us(p) / p->env->options.executions_max;
}

/* All that a span allows may begin at once, so one is due nearly a span before its place. */
static uint64_t due_ms(const struct instances *p, const struct entry *entry)
{
    uint64_t const ahead = span_us(p) - each_us(p);
    return entry->spread_us < ahead ? 0 : (entry->spread_us - ahead + MICROS - 1) / MICROS;
}

/* An execution that began early leaves no debt: the next one is due after the time of one. */
static void executions_count(const struct instances *p, struct entry *entry)
{
    uint64_t const now = p->env->now_ms * MICROS, latest = now + span_us(p) - each_us(p);
    uint64_t const from = entry->spread_us > now ? entry->spread_us : now;
    entry->spread_us = (from < latest ? from : latest) + each_us(p);
}

static void executions_report(struct instances *p, const struct entry *entry)
{
    struct out_limited *const out = &env_emit(p->env, PARTITION_OUT_LIMITED)->limited;
    *out = (struct out_limited){.limit = LIMIT_EXECUTIONS,
                                .instance = env_copy(p->env, entry->id),
                                .orchestration = env_copy(p->env, entry->orchestration),
                                .execution = entry->execution,
                                .max = p->env->options.executions_max};
}

static bool executions_hurry(const struct entry *entry)
{
    size_t n = 0;
    bool asked = false;
    if (!intake_waits(entry))
        return false;
    for (const struct pending *pending = entry->first; pending != NULL && n < WAITING_MAX && !asked;
         pending = pending->next, n++)
        asked = pending->inbox_sequence != 0 && pending->sender == SENDER_CLIENT;
    return asked || n >= WAITING_MAX;
}

bool executions_delay(struct instances *p, struct entry *entry)
{
    assert(entry->state == ENTRY_CONTINUED && entry->delayed_ms == 0);
    if (p->env->options.executions_max == 0)
        return false;
    if (due_ms(p, entry) <= p->env->now_ms || executions_hurry(entry)) {
        executions_count(p, entry);
        return false;
    }
    entry->delayed_ms = due_ms(p, entry);
    if (p->entries.delayed == NULL || entry->delayed_ms < p->entries.delayed_ms)
        p->entries.delayed_ms = entry->delayed_ms;
    entry->delayed_next = p->entries.delayed;
    p->entries.delayed = entry;
    queries_refuse(p, entry, THOLE_UNAVAILABLE,
                   THOLE_STR("the instance continues as new again and again, and waits for nothing that it "
                             "could be asked meanwhile"));
    executions_report(p, entry);
    return true;
}

static void end_delay(struct instances *p, struct entry **at)
{
    struct entry *const entry = *at;
    *at = entry->delayed_next;
    entry->delayed_ms = 0;
    entry->delayed_next = NULL;
    entries_ready(&p->entries, entry);
}

void executions_hear(struct instances *p, struct entry *entry)
{
    struct entry **at = &p->entries.delayed;
    if (entry->delayed_ms == 0 || !executions_hurry(entry))
        return;
    while (*at != entry)
        at = &(*at)->delayed_next;
    end_delay(p, at);
}

void instances_wake(struct instances *p)
{
    uint64_t next_ms = UINT64_MAX;
    if (p->entries.delayed == NULL || p->entries.delayed_ms > p->env->now_ms)
        return;
    for (struct entry **at = &p->entries.delayed; *at != NULL;)
        if ((*at)->delayed_ms <= p->env->now_ms) {
            end_delay(p, at);
        } else {
            next_ms = (*at)->delayed_ms < next_ms ? (*at)->delayed_ms : next_ms;
            at = &(*at)->delayed_next;
        }
    p->entries.delayed_ms = next_ms;
}

uint64_t instances_deadline_ms(const struct instances *p)
{
    uint64_t const rests = lanes_deadline_ms(&p->entries.lanes);
    uint64_t const delayed = p->entries.delayed == NULL ? UINT64_MAX : p->entries.delayed_ms;
    return rests < delayed ? rests : delayed;
}
