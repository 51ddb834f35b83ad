/* The whole system as a user runs it: servers, engines, workers as processes; for tests that kill them. */
#ifndef THOLE_STACK_H
#define THOLE_STACK_H
#include "clock.h"
#include "integration.h"
#include "server_process.h"
#include "thole/client.h"

enum { STACK_PROGRAMS_MAX = 32 };

struct stack_program {
    pid_t pid; /* 0 while it does not run */
    unsigned lives;
    char name[32];
    char log[PROCESS_TEXT_BYTES];
};

struct stack {
    char dir[SERVER_PATH_BYTES];
    struct server nats, postgres;
    struct server others[2]; /* of a cluster of three */
    char effects[128], tokens[128];
    struct stack_program programs[STACK_PROGRAMS_MAX];
    size_t programs_len;
    thole_error err;
};

/* Starts NATS and Postgres (no_fsync: nothing here cuts the power) and sets the environment. Exits the test
 * program with a message when that fails. */
void stack_start(struct stack *stack);
/* Like stack_start(), with more lines in the configuration of nats-server: see nats_server_options. */
void stack_start_configured(struct stack *stack, const char *nats_config);
/* Like stack_start(), with three NATS servers as a cluster. */
void stack_start_cluster(struct stack *stack);
void stack_start_cluster_configured(struct stack *stack, const char *nats_config);
/* Stops everything that runs and removes the folder, unless $THOLE_TEST_KEEP is set. Exits the test program
 * with 1 when a sanitizer has reported an error in a program's log, and prints the report. */
void stack_stop(struct stack *stack);

/* Starts another test program of this folder, for example "program_verbs". */
struct stack_program *stack_program_of(struct stack *stack, const char *file, const char *name,
                                       const char *role);
/* Like stack_program_of(), with options (NULL-terminated). */
struct stack_program *stack_program_with(struct stack *stack, const char *file, const char *name,
                                         const char *role, ...);
/* Starts the orders program: role engine, worker or run, with options (NULL-terminated). The same name again
 * appends to the same log. */
struct stack_program *stack_program(struct stack *stack, const char *name, const char *role, ...);
void stack_kill9(struct stack_program *program);
/* The process that serves: the child of the supervisor that an engine and a run have; of a worker, itself. */
pid_t stack_serving(const struct stack_program *program);
/* SIGSTOP to the one that serves; returns when all of it has stopped. And SIGCONT. */
bool stack_freeze(const struct stack_program *program);
void stack_thaw(const struct stack_program *program);
/* SIGTERM; returns the exit code, or -1 when it took longer than wait_ms (then it is killed). */
int stack_terminate(struct stack_program *program, uint64_t wait_ms);
/* The exit code of a program that has ended by itself; -1: it still runs. */
int stack_ended(struct stack_program *program);
/* A child of its main thread that goes by this name, waited for as long as needed (30 s); 0: there is none.
 */
pid_t stack_child(const struct stack_program *program, const char *name);
/* True when at least @p times lines of the program's log had @p text within wait_ms; a '*' in it stands for
 * anything. */
bool stack_logged(const struct stack_program *program, const char *text, size_t times, uint64_t wait_ms);
/* How many lines of a file have it. */
size_t stack_count(const char *path, const char *pattern);
/* The first cell of the answer, empty without a row; until the next call. The database's own view, over a
 * connection of its own. */
const char *stack_sql(const struct stack *stack, const char *statement);
/* Value of "NAME=VALUE" after the last occurrence of NAME= in the log; UINT64_MAX: not there. */
uint64_t stack_log_number(const struct stack_program *program, const char *name);

/* A client of the stack; tries until an engine has set the namespace up (30 s). Exits when that fails. */
thole_client *stack_client(struct stack *stack);

/* A connection to the stack's nats-server. Exits when that fails. */
struct connection *stack_connect(struct stack *stack);
/* "EXECUTION:KIND ..." of all events of the instance; a status's name on failure. Static buffer. */
const char *stack_history(thole_client *client, const char *id);
/* The result of an ended instance; "" on failure. Static buffer. */
const char *stack_outcome(thole_client *client, const char *id, uint64_t wait_ms,
                          thole_instance_status *ret_status);
/* Runs `n` instances of orchestration "steps", PREFIX-0 and on, and waits until each has ended. */
void stack_run_many(struct stack *stack, thole_client *client, const char *prefix, int n, uint64_t wait_ms);
/* "CODE: OUTPUT" of a shell's command line. Static buffer of 256 KiB: what is more is left out. */
const char *stack_shell(const char *line);
uint64_t now_us(void); /* monotonic */
void pause_ms(unsigned ms);
#endif
