/*
 * NATS and Postgres whose users have the rights of their roles and no others: the permissions that
 * `thole doctor --nats-permissions` prints, and the roles of deploy/postgres.
 */
#ifndef THOLE_RIGHTS_STAGE_H
#define THOLE_RIGHTS_STAGE_H
#include "stack.h"

enum right_user {
    USER_ENGINE,
    USER_WORKER,
    USER_CLIENT,
    USER_SERVICE,
    USER_AUDITOR,
    USER_CONSOLE,
    USER_GATEWAY,
    USER_REMOTE_WORKER,
    USER_REMOTE_CLIENT,
    USER_ARCHIVIST,
    USER_NOTARY,
    USERS
};
enum { RIGHTS_PARTITIONS = 2, RIGHTS_URL_BYTES = 400 };
extern const char *const rights_user_names[USERS];

extern struct stack rights_stack;
/* One server, or a cluster of three; the tables are made, by the role that may. */
void rights_start(bool cluster);
void rights_stop(void);

void rights_nats_url(enum right_user user, char ret[RIGHTS_URL_BYTES]);
/* The file of its NKey seed; NULL: its name and password are in the URL. */
const char *rights_creds(enum right_user user);
/* As the role owner (only by SET ROLE), migrate, engine, worker or reader. */
void rights_postgres_url(const char *role, char ret[RIGHTS_URL_BYTES]);
/* Starts a test program as engine, worker, gateway or remote worker. */
struct stack_program *rights_program(const char *file, enum right_user user, const char *name,
                                     const char *option);
/* Runs a shell command; what it printed (static), and its exit code. */
const char *rights_shell(int *ret_code, const char *fmt, ...) THOLE_PRINTF(2, 3);
/* Runs the command as a user; the check fails unless it exits with @p code and prints @p words. */
void rights_expect(enum right_user user, int code, const char *words, const char *fmt, ...)
    THOLE_PRINTF(4, 5);
/* How many times the servers say that somebody was denied something. */
size_t rights_violations(void);

/* What a user of the stack does in a day: rights_day.c. */
void rights_day(void);
/* What each role may not do, tried one by one: every attempt is refused, and nothing has changed. Engines and
 * workers must not run. */
void rights_nats_attempts(void);
void rights_postgres_attempts(void);
/* Ends the programs of rights_day(). */
void rights_programs_end(void);
#endif
