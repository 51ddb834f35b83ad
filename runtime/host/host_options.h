/* The role and its options, from a program's command line and environment. */
#ifndef THOLE_HOST_OPTIONS_H
#define THOLE_HOST_OPTIONS_H
#include "buf.h"
#include "option_file.h"
#include "options.h"

enum host_role {
    HOST_ENGINE = 1,
    HOST_WORKER = 2,
    HOST_RUN = HOST_ENGINE | HOST_WORKER,
    HOST_REPLAY = 4,
    HOST_GATEWAY = 8,
    HOST_BINDER = 16
};
enum { NODE_NAME_BYTES = THOLE_NAME_BYTES_MAX + 1 };

struct host_command {
    enum host_role role;
    bool help, version;
    struct host_options options;
    char node[NODE_NAME_BYTES]; /* options.node points here unless it was given */
    struct option_file config;  /* texts of --config, which options point to */
    /* THOLE_INVALID: there is a password in a flag. Refused where flags are words of a command line, and not
     * where a program gives them. */
    thole_error exposed;
    /* of the role replay */
    bool all;
    const char *file;
    const char *until; /* an event: 17, or 2.17 of execution 2 */
    bool stop;         /* in a debugger, there */
    uint32_t threads;  /* 0 = as many as there are processors */
    uint64_t memory_max;
    uint32_t output; /* 0 table, 1 json, 2 jsonl */
    char **words;    /* ids */
    int words_len;
};

/* "engine", "worker", "run", "gateway", "binder", "replay". */
const char *host_role_name(enum host_role role);
/* THOLE_INVALID with one sentence for people. With help or version set nothing else is checked. The options
 * borrow from argv, the environment and *ret, which must not move; host_command_free(), also after an error.
 */
THOLE_NODISCARD thole_status host_command_parse(int argc, char **argv, struct host_command *ret,
                                                thole_error *reterr);
void host_command_free(struct host_command *command);
void host_command_help(const thole_program *program, struct buf *to);
/* Of one role that needs no program of a user: @p command has it as a verb. */
void host_role_help(enum host_role role, const char *command, struct buf *to);
#endif
