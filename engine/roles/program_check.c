#include "program_check.h"
#include "handlers.h"
#include "message.h"
#include <stddef.h>
#include <string.h>

static thole_status check_name(const char *name, size_t at, const char *what, thole_error *reterr)
{
    if (name == NULL)
        return thole_fail(reterr, THOLE_INVALID, "%s %zu has no name", what, at);
    return name_check(thole_slice_from(name), what, reterr);
}

static uint32_t version_of(const thole_orchestration_entry *entry)
{
    return entry->version == 0 ? 1 : entry->version;
}

static thole_status check_orchestrations(const thole_program *program, thole_error *reterr)
{
    for (size_t i = 0; i < program->orchestrations_len; i++) {
        const thole_orchestration_entry *entry = &program->orchestrations[i];
        THOLE_TRY(check_name(entry->name, i, "orchestration", reterr));
        if (entry->run == NULL)
            return thole_fail(reterr, THOLE_INVALID, "orchestration %s has no function", entry->name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(program->orchestrations[k].name, entry->name) == 0 &&
                version_of(&program->orchestrations[k]) == version_of(entry))
                return thole_fail(reterr, THOLE_INVALID, "orchestration %s is registered twice as version %u",
                                  entry->name, version_of(entry));
    }
    return THOLE_OK;
}

/* A program that was compiled before there was `quick` has a shorter struct. */
enum { OPTIONS_SIZE_MIN = offsetof(thole_activity_options, quick) };

static thole_status check_activity_options(const thole_activity_entry *entry, thole_error *reterr)
{
    const thole_activity_options *const options = entry->options;
    if (options == NULL)
        return THOLE_OK;
    if (options->size < OPTIONS_SIZE_MIN)
        return thole_fail(reterr, THOLE_INVALID, "activity %s: thole_activity_options.size is not set",
                          entry->name);
    if (options->isolation == THOLE_ISOLATION_PROCESS && handler_is_quick(entry))
        return thole_fail(reterr, THOLE_INVALID,
                          "activity %s is declared quick and isolated in a process, it cannot be both",
                          entry->name);
    if (options->isolation == THOLE_ISOLATION_PROCESS)
        return THOLE_OK;
    if (options->isolation != THOLE_ISOLATION_THREAD)
        return thole_fail(reterr, THOLE_INVALID, "activity %s: isolation %d is not known", entry->name,
                          (int)options->isolation);
    if (options->terminate || options->keep_env || options->runs_max > 0 || options->cpu_max_s > 0 ||
        options->memory_max > 0 || options->wall_max_ms > 0)
        return thole_fail(reterr, THOLE_INVALID,
                          "activity %s: its options are for a process of its own: set isolation to "
                          "THOLE_ISOLATION_PROCESS",
                          entry->name);
    return THOLE_OK;
}

static thole_status check_activities(const thole_program *program, thole_error *reterr)
{
    for (size_t i = 0; i < program->activities_len; i++) {
        const thole_activity_entry *entry = &program->activities[i];
        THOLE_TRY(check_name(entry->name, i, "activity", reterr));
        if (entry->run == NULL)
            return thole_fail(reterr, THOLE_INVALID, "activity %s has no function", entry->name);
        THOLE_TRY(check_activity_options(entry, reterr));
        for (size_t k = 0; k < i; k++)
            if (strcmp(program->activities[k].name, entry->name) == 0)
                return thole_fail(reterr, THOLE_INVALID, "activity %s is registered twice", entry->name);
    }
    return THOLE_OK;
}

thole_status program_check(const thole_program *program, thole_error *reterr)
{
    if (program == NULL || program->size < sizeof(thole_program) || program->name == NULL)
        return thole_fail(reterr, THOLE_INVALID, "thole_program.size or .name is not set");
    if (program->orchestrations == NULL && program->orchestrations_len > 0)
        return thole_fail(reterr, THOLE_INVALID,
                          "thole_program.orchestrations is NULL, and .orchestrations_len is %zu",
                          program->orchestrations_len);
    if (program->activities == NULL && program->activities_len > 0)
        return thole_fail(reterr, THOLE_INVALID,
                          "thole_program.activities is NULL, and .activities_len is %zu",
                          program->activities_len);
    THOLE_TRY(check_orchestrations(program, reterr));
    return check_activities(program, reterr);
}

thole_status program_check_role(const thole_program *program, enum host_role role, thole_error *reterr)
{
    if ((role == HOST_ENGINE || role == HOST_REPLAY) && program->orchestrations_len == 0)
        return thole_fail(reterr, THOLE_INVALID, "role %s: %s registers no orchestration",
                          host_role_name(role), program->name);
    if (role == HOST_WORKER && program->activities_len == 0)
        return thole_fail(reterr, THOLE_INVALID, "role worker: %s registers no activity", program->name);
    return THOLE_OK;
}
