/**
 * A user's program: registers orchestrations and activities and gets the roles `engine`, `worker`, `run`
 * (both) and `replay`, options, signals and logging from thole_main().
 */
#ifndef THOLE_PROGRAM_H
#define THOLE_PROGRAM_H
#include "thole/activity.h"
#include "thole/orchestration.h"
#ifdef __cplusplus
extern "C" {
#endif

/** A registered orchestration. @c name is a NUL-terminated static string, [A-Za-z0-9_-]{1,64}. */
typedef struct thole_orchestration_entry {
    const char *name;
    thole_orchestration_fn *run;
    /** Several entries of one name may differ in this. 0 is read as 1. An instance keeps the version it began
     * with (until it continues as new); a start that names none gets the highest. */
    uint32_t version;
} thole_orchestration_entry;

/** A registered activity. */
typedef struct thole_activity_entry {
    const char *name;
    thole_activity_fn *run;
} thole_activity_entry;

/** What a program can run. All pointers are borrowed for the duration of thole_main(). */
typedef struct thole_program {
    size_t size;      /**< sizeof(thole_program), so that the struct can grow */
    const char *name; /**< shown in --help and in logs */
    const thole_orchestration_entry *orchestrations;
    size_t orchestrations_len;
    const thole_activity_entry *activities;
    size_t activities_len;
} thole_program;

/**
 * Runs the role named in @p argv until SIGTERM or SIGINT, then stops gracefully.
 * `PROGRAM engine|worker|run [options]`; `PROGRAM replay ID...|--all|--file FILE [options]` instead runs the
 * orchestrations over recorded histories, says where they decide differently, and ends. `PROGRAM --help`
 * lists every option with its default and its environment variable. Logs go to stderr.
 * @return Exit code: 0 stopped as asked, 1 failed, 2 wrong usage, 6 cannot connect or configuration refused,
 *         130 on a second SIGINT; replay: 0 the same, 1 a history cannot be read, 3 no such instance,
 *         5 diverged. Call once, from the main thread.
 */
THOLE_API int thole_main(int argc, char **argv, const thole_program *program);

/** The library's version, "0.1.0". Static text. */
THOLE_API const char *thole_version(void);

#ifdef __cplusplus
}
#endif
#endif
