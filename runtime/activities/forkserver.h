/*
 * The forkserver: a process without threads, connections or secrets. It is forked before this process has
 * any, and forks the processes that activities run in (a fork of a process with threads copies locks that are
 * never released). Each of those has a guard:
 *
 *   worker ── forkserver ─┬─ guard ── process ── what the handler starts
 *                         └─ guard ── process …
 *
 * A guard holds one end of the `life` socket of its process. When the other end is closed (also by kill -9 of
 * the worker), or when the process itself ends, the guard kills the process, its group and all its
 * descendants (as a subreaper the guard inherits all orphans). Then it reports how the process ended, and
 * ends.
 */
#ifndef THOLE_FORKSERVER_H
#define THOLE_FORKSERVER_H
#include "thole/program.h"
#include "token.h"
#include <sys/types.h>

struct forkserver;
struct forkserver_options {
    const thole_program *program; /* both borrowed for ever */
    char **argv;                  /* NULL-terminated */
    uint64_t payload_max;         /* of outputs */
    uint64_t memory_max; /* of each process, in bytes of address space; 0 = that of its activity alone */
    const char *env; /* names of variables that processes may have beside those of environment.h; or NULL */
    void (*lost)(void); /* called once, on any thread, when the forkserver is found dead */
    /* Texts that processes must not see, for example the value of --postgres; NULLs are allowed. The
     * forkserver erases them from its argv, and where they are, if no activity keeps the environment. */
    const char *secrets[4];
};
/* Whether any activity of the program runs in a process. */
bool forkserver_is_needed(const thole_program *program);
/* Before any thread or connection. THOLE_NOMEM when the system gives no process or socket. */
THOLE_NODISCARD thole_status forkserver_start(const struct forkserver_options *options,
                                              struct forkserver **ret, thole_error *reterr);
/* All life sockets have been closed. Waits until every process is gone. NULL-safe. */
void forkserver_stop(struct forkserver *forkserver);
/* Bytes of address space of a process that runs the activity: the lower of the activity's limit and of the
 * forkserver's. 0 = none. */
uint64_t forkserver_memory_max(const struct forkserver *forkserver, const thole_activity_options *options);
/* Whether it has died and cannot create processes any more. Any thread. */
bool forkserver_is_lost(const struct forkserver *forkserver);

/* Memory shared by a process and the worker. */
struct process_page {
    struct token token;
    atomic_uint begun; /* 1 before the handler is called */
};

enum process_fd {
    PROCESS_TALK, /* stream socket for frames */
    PROCESS_LIFE, /* the guard's: seqpacket socket for life_message; closed: kill */
    PROCESS_WAKE, /* eventfd, readable once the token has fired */
    PROCESS_PAGE, /* memory of a struct process_page */
    PROCESS_FDS,
};
/* Asks for a process for the activity of this index; fds stay the caller's. Does not wait: the guard, or the
 * forkserver without one, reports the result on the life socket. THOLE_UNAVAILABLE: the forkserver has died.
 * Any thread. */
THOLE_NODISCARD thole_status forkserver_spawn(struct forkserver *forkserver, size_t entry,
                                              const int fds[PROCESS_FDS], thole_error *reterr);

enum life_kind { LIFE_STARTED = 1, LIFE_ENDED = 2 };
struct life_message {
    enum life_kind kind;
    pid_t pid;
    int error;       /* ENDED: errno of a fork that failed; nothing has run. Else 0 and: */
    int status;      /* as of waitpid() */
    unsigned others; /* processes that it left running and that were killed */
    uint64_t cpu_ms; /* of it and of what it has waited for */
};
/* The message that may be written to a life socket: SIGTERM for the process and its group. */
enum { LIFE_TERMINATE = 'T' };
#endif
