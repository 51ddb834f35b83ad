#include "program_check.h"
#include "coro.h"
#include "handlers.h"
#include "instance.h"
#include "message.h"
#include "range.h"
#include <stddef.h>
#include <string.h>

static thole_status program_check_check_name(const char *name, size_t at, const char *what,
                                             thole_error *reterr)
{
    if (name == NULL)
        return thole_fail(reterr, THOLE_INVALID, "%s %zu has no name", what, at);
    return name_check(thole_slice_from(name), what, reterr);
}

static thole_status check_orchestrations(const thole_program *program, thole_error *reterr)
{
    for (size_t i = 0; i < program->orchestrations_len; i++) {
        const thole_orchestration_entry *entry = &program->orchestrations[i];
        THOLE_TRY(program_check_check_name(entry->name, i, "orchestration", reterr));
        if (entry->run == NULL)
            return thole_fail(reterr, THOLE_INVALID, "orchestration %s has no function", entry->name);
        if (entry->version > RANGE_INT4)
            return thole_fail(reterr, THOLE_INVALID, "orchestration %s: version %u is more than %d",
                              entry->name, entry->version, RANGE_INT4);
        if (entry->stack_bytes != 0 &&
            (entry->stack_bytes < CORO_STACK_BYTES || entry->stack_bytes > CORO_STACK_BYTES_MAX))
            return thole_fail(reterr, THOLE_INVALID,
                              "orchestration %s: stack_bytes is %zu, which is not in %d to %d (0: %d)",
                              entry->name, entry->stack_bytes, CORO_STACK_BYTES, CORO_STACK_BYTES_MAX,
                              CORO_STACK_BYTES);
        if (entry->call_options != NULL && entry->call_options->size < sizeof(thole_call_options))
            return thole_fail(reterr, THOLE_INVALID,
                              "orchestration %s: call_options: thole_call_options.size is not set",
                              entry->name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(program->orchestrations[k].name, entry->name) == 0 &&
                entry_version(&program->orchestrations[k]) == entry_version(entry))
                return thole_fail(reterr, THOLE_INVALID, "orchestration %s is registered twice as version %u",
                                  entry->name, entry_version(entry));
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
        THOLE_TRY(program_check_check_name(entry->name, i, "activity", reterr));
        if (entry->run == NULL)
            return thole_fail(reterr, THOLE_INVALID, "activity %s has no function", entry->name);
        THOLE_TRY(check_activity_options(entry, reterr));
        for (size_t k = 0; k < i; k++)
            if (strcmp(program->activities[k].name, entry->name) == 0)
                return thole_fail(reterr, THOLE_INVALID, "activity %s is registered twice", entry->name);
    }
    return THOLE_OK;
}

/* A number that was forgotten registers nothing. */
static thole_status program_check_check_counted(const thole_program *program, thole_error *reterr)
{
    if (program->orchestrations != NULL && program->orchestrations_len == 0)
        return thole_fail(reterr, THOLE_INVALID,
                          "thole_program.orchestrations is set, and .orchestrations_len is 0: "
                          "THOLE_ORCHESTRATIONS() sets both");
    if (program->activities != NULL && program->activities_len == 0)
        return thole_fail(
            reterr, THOLE_INVALID,
            "thole_program.activities is set, and .activities_len is 0: THOLE_ACTIVITIES() sets "
            "both");
    return THOLE_OK;
}

thole_status program_check_entries(const thole_program *program, thole_error *reterr)
{
    THOLE_TRY(check_orchestrations(program, reterr));
    return check_activities(program, reterr);
}

thole_status program_check(const thole_program *program, thole_error *reterr)
{
    if (program == NULL)
        return thole_fail(reterr, THOLE_INVALID, "there is no thole_program: it is NULL");
    if (program->size < sizeof(thole_program))
        return thole_fail(reterr, THOLE_INVALID,
                          "thole_program.size is not set: .size = sizeof(thole_program)");
    if (program->name == NULL)
        return thole_fail(reterr, THOLE_INVALID, "thole_program.name is not set");
    if (program->orchestrations == NULL && program->orchestrations_len > 0)
        return thole_fail(reterr, THOLE_INVALID,
                          "thole_program.orchestrations is NULL, and .orchestrations_len is %zu",
                          program->orchestrations_len);
    if (program->activities == NULL && program->activities_len > 0)
        return thole_fail(reterr, THOLE_INVALID,
                          "thole_program.activities is NULL, and .activities_len is %zu",
                          program->activities_len);
    THOLE_TRY(program_check_entries(program, reterr));
    return program_check_check_counted(program, reterr);
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
