/* The replay role: histories of a namespace, or of a file, executed again with the program's code. */
#ifndef THOLE_REPLAY_HOST_H
#define THOLE_REPLAY_HOST_H
#include "host_options.h"

enum {
    EXIT_REPLAY_SAME = 0,
    EXIT_REPLAY_FAILED = 1,
    EXIT_REPLAY_NOT_FOUND = 3,
    EXIT_REPLAY_DIVERGED = 5,
    EXIT_REPLAY_NO_CODE = 11, /* code is missing for an instance that runs, or for all histories */
};

/* Prints to stdout. THOLE_OK: *ret_code is the program's exit code. Otherwise the error. */
THOLE_NODISCARD thole_status replay_host_run(const struct host_command *command, const thole_program *program,
                                             int *ret_code, thole_error *reterr);
/* Prints the error on stderr, in the form of --output. */
void replay_host_complain(const struct host_command *command, const thole_program *program, int code,
                          const thole_error *error);
#endif
