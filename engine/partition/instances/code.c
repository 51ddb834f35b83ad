/* Which code an instance has here, and what it means that there is none. */
#include "instances_state.h"

enum { BARE_MEMORY_MAX = 1024 * 1024 * 1024 }; /* of an instance without code: it holds only its history */

static uint32_t version_of(const thole_orchestration_entry *code)
{
    return code->version == 0 ? 1 : code->version;
}

const thole_orchestration_entry *turns_code(const struct instances *p, thole_slice orchestration,
                                            uint32_t version)
{
    const thole_orchestration_entry *newest = NULL;
    for (size_t i = 0; i < p->env->options.orchestrations_len; i++) {
        const thole_orchestration_entry *code = &p->env->options.orchestrations[i];
        if (!thole_slice_equal(thole_slice_from(code->name), orchestration))
            continue;
        if (version_of(code) == version)
            return code;
        if (newest == NULL || version_of(code) > version_of(newest))
            newest = code;
    }
    return version == 0 ? newest : NULL;
}

struct instance *turns_instance(const struct instances *p, const struct entry *entry,
                                const thole_orchestration_entry *code)
{
    struct instance_options const options = {.code = code == NULL ? NULL : code->run,
                                             .id = entry->id,
                                             .execution = entry->execution,
                                             .version = code == NULL ? 0 : version_of(code),
                                             .memory_max = code == NULL ? BARE_MEMORY_MAX
                                                                        : p->env->options.instance_memory_max,
                                             .payload_max = p->env->options.payload_max,
                                             .quarantine_ms = p->env->options.quarantine_ms,
                                             .stacks = p->env->options.stacks};
    return instance_create(&options);
}

void turns_no_code(const struct instances *p, struct entry *entry)
{
    thole_error err = {0};
    if (entry->version > 1 || turns_code(p, entry->orchestration, 0) != NULL)
        (void)thole_fail(&err, THOLE_NOT_FOUND, "no live engine knows version %u of orchestration '%.*s'",
                         entry->version, THOLE_FMT(entry->orchestration));
    else
        (void)thole_fail(&err, THOLE_NOT_FOUND, "no live engine knows orchestration '%.*s'",
                         THOLE_FMT(entry->orchestration));
    entry_block(entry, ENTRY_RUNS, BLOCKED_NO_CODE, thole_slice_from(err.text));
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
