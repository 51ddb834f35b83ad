/*
 * Instances whose code has crashed an engine, this one or another: they are run alone, and after too many
 * crashes not at all, until somebody says so or there is other code. The list is kept outside, and read when
 * the partition is opened.
 */
#include "instances_state.h"
#include <stdlib.h>
#include <string.h>

static void forget(struct suspect *suspect)
{
    free((void *)(uintptr_t)suspect->id.ptr);
    free((void *)(uintptr_t)suspect->text.ptr);
}

void suspects_release(struct suspects *suspects)
{
    for (size_t i = 0; i < suspects->len; i++)
        forget(&suspects->list[i]);
    free(suspects->list);
    *suspects = (struct suspects){0};
}

struct suspect *suspects_find(const struct instances *p, thole_slice instance)
{
    for (size_t i = 0; i < p->suspects.len; i++)
        if (thole_slice_equal(p->suspects.list[i].id, instance))
            return &p->suspects.list[i];
    return NULL;
}

static bool copy(thole_slice from, thole_slice *ret)
{
    uint8_t *const bytes = malloc(from.len + 1);
    if (bytes == NULL)
        return false;
    if (from.len > 0)
        memcpy(bytes, from.ptr, from.len);
    *ret = (thole_slice){bytes, from.len};
    return true;
}

static void add(struct instances *p, const struct partition_crash *crash)
{
    struct suspects *const all = &p->suspects;
    struct suspect suspect = {.count = crash->count};
    if (suspects_find(p, crash->instance) != NULL)
        return;
    bool const good = copy(crash->instance, &suspect.id) && copy(crash->text, &suspect.text);
    struct suspect *const place =
        good ? row_add((void **)&all->list, &all->len, &all->cap, sizeof *all->list) : NULL;
    if (place != NULL) {
        *place = suspect;
    } else {
        forget(&suspect);
        env_no_memory(p->env);
    }
}

void instances_crashes(struct instances *p, const struct partition_in *in)
{
    for (size_t i = 0; i < in->crashes_len; i++)
        add(p, &in->crashes[i]);
}

bool suspects_stuck(const struct instances *p, struct entry *entry)
{
    const struct suspect *const suspect = suspects_find(p, entry->id);
    thole_error err = {0};
    if (suspect == NULL || suspect->count < p->env->options.crash_limit)
        return false;
    (void)thole_fail(
        &err, THOLE_APP,
        "its code has crashed the engine %llu times: %.*s; it is tried again with another build of the "
        "program, or after `thole retry`",
        (unsigned long long)suspect->count, THOLE_FMT(suspect->text));
    entry_block(entry, BLOCKED_CRASHED, thole_slice_from(err.text));
    entry->failed = BLOCKED_CRASHED;
    return true;
}

void suspects_tell(struct instances *p, const struct entry *entry)
{
    const struct suspect *const suspect = suspects_find(p, entry->id);
    struct partition_out *const out = env_emit(p->env, PARTITION_OUT_CRASHED);
    out->instance = env_copy(p->env, entry->id);
    out->orchestration = env_copy(p->env, entry->orchestration);
    out->version = entry->version;
    out->count = suspect->count;
    out->data = env_copy(p->env, suspect->text);
}

void suspects_crashed(const struct instances *p, const struct entry *entry, const char *text)
{
    struct suspect *const suspect = suspects_find(p, entry->id);
    thole_slice now;
    suspect->count++;
    suspect->over_n = 0;
    if (copy(thole_slice_from(text), &now)) {
        free((void *)(uintptr_t)suspect->text.ptr);
        suspect->text = now;
    }
}

void suspects_retry(struct instances *p, const struct entry *entry)
{
    struct suspect *const suspect = suspects_find(p, entry->id);
    if (suspect == NULL || suspect->count == 0)
        return;
    suspect->count = 0;
    suspects_tell(p, entry);
}

/* It stays a suspect for as long as this owner has the partition: the next instance of its id may run the
 * same code before anybody knows that the end of this one is stored. */
void suspects_over(struct instances *p, const struct entry *entry, uint64_t n)
{
    struct suspect *const suspect = suspects_find(p, entry->id);
    if (suspect == NULL)
        return;
    suspect->count = 0;
    suspect->over_n = n;
}

void instances_tell_ends(struct instances *p, uint64_t committed_n)
{
    for (size_t i = 0; i < p->suspects.len; i++) {
        struct suspect *const suspect = &p->suspects.list[i];
        if (suspect->over_n == 0 || suspect->over_n > committed_n)
            continue;
        suspect->over_n = 0;
        env_emit(p->env, PARTITION_OUT_CRASHES_OVER)->instance = env_copy(p->env, suspect->id);
    }
}
