/* Child processes and probes, under servers.h. */
#ifndef THOLE_SERVER_PROCESS_H
#define THOLE_SERVER_PROCESS_H
#include "servers.h"

enum { PROCESS_ARGS_MAX = 40, PROCESS_TEXT_BYTES = 1152 };

/* The program to run: with its arguments, its user, and the file to which its output is appended. */
struct process {
    char text[PROCESS_ARGS_MAX][PROCESS_TEXT_BYTES];
    size_t len;
    char log[PROCESS_TEXT_BYTES];
    bool as_postgres; /* run as user postgres when the caller is root */
};

/* Appends one argument; the first is the program's path. Asserts that it fits. */
void process_arg(struct process *process, const char *fmt, ...) THOLE_PRINTF(2, 3);
/* Starts it in a process group of its own, to be killed by the kernel when the calling thread ends. */
THOLE_NODISCARD thole_status process_spawn(const struct process *process, pid_t *ret_pid,
                                           thole_error *reterr);
/* Runs it to its end. THOLE_UNAVAILABLE with the last line of its log unless it exits with 0. */
THOLE_NODISCARD thole_status process_run(const struct process *process, thole_error *reterr);
/* True when the child has ended; it is then reaped. */
bool process_ended(pid_t pid);
/* Waits at most wait_ms for a child to end. */
bool process_wait(pid_t pid, uint64_t wait_ms);
/* SIGKILL to the child, its group and its children (Postgres makes a group for each); reaps; waits for all.
 */
void process_kill9(pid_t pid);
/* Sends a signal to the child, its group and its children. */
void process_signal(pid_t pid, int number);
/* User postgres, when the caller is root; else who the caller is. False when there is no such user. */
bool process_postgres_user(uid_t *ret_uid, gid_t *ret_gid);
/* The last line of a file that is not empty, for error texts. */
void process_last_line(const char *path, char *ret, size_t cap);

/* Processes that live and have their working folder in @p dir, which is a real path: how many, the first
 * @p cap of them in @p ret. */
size_t process_within(const char *dir, pid_t *ret, size_t cap);

void process_pause_ms(unsigned ms);

/* One attempt each, some seconds at most. */
bool nats_answers(const struct server *server);
/* True when a stream of that many replicas can be made. */
bool nats_places(const struct server *server, size_t replicas);
bool postgres_answers(uint16_t port);

#endif
