/* Which code an instance has here, and what it means that there is none. */
#include "instances_state.h"
#include <stdio.h>

enum {
    BARE_MEMORY_MAX = 1024 * 1024 * 1024, /* of an instance without code: it holds only its history */
    BLOCKED_TEXT_BYTES_MAX = 1024,
};

const thole_orchestration_entry *turns_code(const struct instances *p, thole_slice orchestration,
                                            uint32_t version)
{
    const thole_orchestration_entry *newest = NULL;
    for (size_t i = 0; i < p->env->options.orchestrations_len; i++) {
        const thole_orchestration_entry *code = &p->env->options.orchestrations[i];
        if (!thole_slice_equal(thole_slice_from(code->name), orchestration))
            continue;
        if (entry_version(code) == version)
            return code;
        if (newest == NULL || entry_version(code) > entry_version(newest))
            newest = code;
    }
    return version == 0 ? newest : NULL;
}

struct instance *turns_instance(const struct instances *p, const struct entry *entry,
                                const thole_orchestration_entry *code)
{
    struct instance_options options = {.id = entry->id,
                                       .execution = entry->execution,
                                       .memory_max = code == NULL ? BARE_MEMORY_MAX
                                                                  : p->env->options.instance_memory_max,
                                       .payload_max = p->env->options.payload_max,
                                       .quarantine_ms = p->env->options.quarantine_ms,
                                       .stacks = p->env->options.stacks,
                                       .drops = watched_drops,
                                       .drops_arg = (void *)(uintptr_t)p};
    if (code != NULL)
        instance_options_code(&options, code);
    return instance_create(&options);
}

void turns_no_code(const struct instances *p, struct entry *entry)
{
    const struct partition_options *const options = &p->env->options;
    char version[32] = "";
    thole_error err = {0};
    if (entry->version > 1 || turns_code(p, entry->orchestration, 0) != NULL)
        (void)snprintf(version, sizeof version, "version %u of ", entry->version);
    (void)thole_fail(&err, THOLE_NOT_FOUND,
                     "engine %.*s, which owned partition %u then, does not have %sorchestration '%.*s': all "
                     "engines of a namespace must have the same orchestrations",
                     THOLE_FMT(options->node), options->partition, version, THOLE_FMT(entry->orchestration));
    entry_block(entry, ENTRY_RUNS, BLOCKED_NO_CODE, thole_slice_from(err.text));
}

/* A divergence names the place in the code, as `replay` does. */
void turns_code_failed(const struct instances *p, struct entry *entry, thole_status status, const char *text,
                       const void *site)
{
    const struct code_watch *const watch = p->env->options.watch;
    char place[CODE_SITE_BYTES] = "";
    struct buf why;
    buf_init(&why, BLOCKED_TEXT_BYTES_MAX);
    buf_text(&why, text);
    if (status == THOLE_NONDETERMINISM && site != NULL && watch != NULL && watch->site != NULL)
        watch->site(watch->arg, site, place);
    if (place[0] != '\0')
        buf_printf(&why, "; asked for at %s", place);
    entry_block(entry, ENTRY_RECORDS, turns_blocked_by(status), buf_bytes(&why));
    buf_release(&why);
}

enum blocked_kind turns_blocked_by(thole_status status)
{
    switch (status) {
    case THOLE_NONDETERMINISM: return BLOCKED_NONDETERMINISM;
    case THOLE_UNSUPPORTED: return BLOCKED_TOO_NEW;
    case THOLE_LIMIT:
    case THOLE_NOMEM: return BLOCKED_LIMIT;
    case THOLE_APP: return BLOCKED_CRASHED;
    default: break;
    }
    return BLOCKED_DAMAGED;
}
