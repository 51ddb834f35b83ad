/*
 * Instances whose code has crashed an engine, this one or another: their code is first run in a forked
 * process, and after too many crashes not at all, until a user asks for a retry or the code changes. The list
 * is stored in NATS and read when the partition is opened.
 */
#include "instances_state.h"
#include "memory.h"
#include <stdlib.h>

static void crash_candidates_forget(struct crash_candidate *candidate)
{
    free((void *)(uintptr_t)candidate->id.ptr);
    free((void *)(uintptr_t)candidate->text.ptr);
}

void crash_candidates_release(struct crash_candidates *candidates)
{
    for (size_t i = 0; i < candidates->len; i++)
        crash_candidates_forget(&candidates->list[i]);
    free(candidates->list);
    *candidates = (struct crash_candidates){0};
}

struct crash_candidate *crash_candidates_find(const struct instances *p, thole_slice instance)
{
    for (size_t i = 0; i < p->crash_candidates.len; i++)
        if (thole_slice_equal(p->crash_candidates.list[i].id, instance))
            return &p->crash_candidates.list[i];
    return NULL;
}

static thole_slice crash_candidates_copy(thole_slice from)
{
    return (thole_slice){memory_copy(from.ptr, from.len), from.len};
}

static void crash_candidates_add(struct instances *p, const struct partition_crash *crash)
{
    struct crash_candidates *const all = &p->crash_candidates;
    if (crash_candidates_find(p, crash->instance) != NULL)
        return;
    struct crash_candidate *const place =
        row_add((void **)&all->list, &all->len, &all->cap, sizeof *all->list);
    *place = (struct crash_candidate){.id = crash_candidates_copy(crash->instance),
                                      .text = crash_candidates_copy(crash->text),
                                      .count = crash->count,
                                      .execution = crash->execution};
}

void instances_crashes(struct instances *p, const struct in_crashes *in)
{
    for (size_t i = 0; i < in->crashes_len; i++)
        crash_candidates_add(p, &in->crashes[i]);
}

bool crash_candidates_stuck(const struct instances *p, struct entry *entry)
{
    const struct crash_candidate *const candidate = crash_candidates_find(p, entry->id);
    thole_error err = {0};
    if (candidate == NULL || candidate->count < p->env->options.crash_limit)
        return false;
    (void)thole_fail(
        &err, THOLE_APP,
        "its code has crashed the engine %llu times: %.*s; it is tried again with another build of the "
        "program, or after `thole retry`",
        (unsigned long long)candidate->count, THOLE_FMT(candidate->text));
    entry_block(entry, ENTRY_RECORDS, BLOCKED_CRASHED, thole_slice_from(err.text));
    return true;
}

void crash_candidates_tell(struct instances *p, const struct entry *entry)
{
    const struct crash_candidate *const candidate = crash_candidates_find(p, entry->id);
    struct out_crashed *const out = &env_emit(p->env, PARTITION_OUT_CRASHED)->crashed;
    *out = (struct out_crashed){.instance = env_copy(p->env, entry->id),
                                .orchestration = env_copy(p->env, entry->orchestration),
                                .text = env_copy(p->env, candidate->text),
                                .count = candidate->count,
                                .execution = candidate->execution,
                                .version = entry->version};
}

void crash_candidates_crashed(const struct instances *p, const struct entry *entry, const char *text)
{
    struct crash_candidate *const candidate = crash_candidates_find(p, entry->id);
    candidate->count++;
    candidate->execution = entry->execution;
    candidate->over_n = 0;
    thole_slice const now =
        crash_candidates_copy(thole_slice_from(text)); /* first: it may be the same text */
    free((void *)(uintptr_t)candidate->text.ptr);
    candidate->text = now;
}

void crash_candidates_retry(struct instances *p, const struct entry *entry)
{
    struct crash_candidate *const candidate = crash_candidates_find(p, entry->id);
    if (candidate == NULL || candidate->count == 0)
        return;
    candidate->count = 0;
    crash_candidates_tell(p, entry);
}

/* The instance stays a candidate as long as this owner has the partition: the next instance with its id may
 * run the same code before the end of this one is known to be stored. An earlier owner may have run that next
 * instance and crashed without having stored the end; the end is then made again and must not clear the
 * count. */
void crash_candidates_over(struct instances *p, const struct entry *entry, uint64_t execution, uint64_t n)
{
    struct crash_candidate *const candidate = crash_candidates_find(p, entry->id);
    if (candidate == NULL || candidate->execution > execution)
        return;
    candidate->count = 0;
    candidate->over_n = n;
}

void instances_tell_ends(struct instances *p, uint64_t committed_n)
{
    for (size_t i = 0; i < p->crash_candidates.len; i++) {
        struct crash_candidate *const candidate = &p->crash_candidates.list[i];
        if (candidate->over_n == 0 || candidate->over_n > committed_n)
            continue;
        candidate->over_n = 0;
        struct partition_out *out = env_emit(p->env, PARTITION_OUT_CRASHES_OVER);
        out->crashes_over.instance = env_copy(p->env, candidate->id);
    }
}
