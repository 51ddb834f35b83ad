/* S7: how fast histories are replayed: bench/replay_speed says it, on servers of its own. */
#include "scenarios.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HISTORIES = 20000, HISTORIES_SHORT = 500 };

/* The output of replay_speed with these arguments; what stands before "events/s". */
static bool run_program(const char *arguments, double *ret_per_s, bool *ret_said)
{
    char command[BENCH_PATH_BYTES + 128], line[512];
    const char *const self = bench_self();
    (void)snprintf(command, sizeof command, "'%.*s/replay_speed' %s", (int)(strrchr(self, '/') - self), self,
                   arguments);
    FILE *const out = popen(command, "re");
    if (out == NULL)
        return bench_fail("replay_speed", "cannot be started");
    while (fgets(line, sizeof line, out) != NULL) {
        const char *const unit = strstr(line, " events/s");
        const char *number = unit;
        if (unit == NULL)
            continue;
        while (number > line && strchr("0123456789.", number[-1]) != NULL)
            number--;
        *ret_per_s = strtod(number, NULL);
        *ret_said = true;
        if (strstr(line, " 0 diverged, 0 unreadable, 0 without code") == NULL && strstr(line, "core") == NULL)
            return (void)pclose(out), bench_fail("replay_speed", line);
    }
    return pclose(out) == 0 ? true : bench_fail("replay_speed", arguments);
}

static bool measure(struct bench *bench, const char *at, const char *arguments)
{
    double per_s = 0;
    bool said = false;
    fprintf(stderr, "scenarios: S7, %s …\n", at);
    if (!run_program(arguments, &per_s, &said) || !said)
        return bench_fail("S7", "replay_speed did not say how fast it was");
    return bench_note(bench, "S7", at, "events_per_s", per_s) &&
           bench_note(bench, "S7", at, "machine_load", bench_load_average());
}

static bool run_both(struct bench *bench)
{
    unsigned const n = bench->options.short_run ? HISTORIES_SHORT : HISTORIES;
    char write[32], core[32];
    double per_s;
    bool said;
    (void)snprintf(write, sizeof write, "write %u", n);
    (void)snprintf(core, sizeof core, "core %u", n);
    return run_program(write, &per_s, &said) && measure(bench, "stream", "replay --all") &&
           measure(bench, "core", core);
}

bool replay_run(struct bench *bench)
{
    struct stand_options const options = {.sync_always = false}; /* reading does not depend on it */
    if (!bench_wants(bench, "S7"))
        return true;
    bench_end(bench);
    bool const good = stand_open(&bench->stand, &options) && run_both(bench);
    stand_close(&bench->stand);
    return good;
}
