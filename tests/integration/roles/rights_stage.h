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
    USER_WORKER_GPU, /* a worker of another queue */
    USERS
};
enum { RIGHTS_PARTITIONS = 2, RIGHTS_URL_BYTES = 400, RIGHTS_PATH_BYTES = SERVER_PATH_BYTES + 64 };
extern const char *const rights_user_names[USERS];
const char *rights_role(enum right_user user);
/* The prefix of its inboxes; of workers that of their queue. */
const char *rights_inbox(enum right_user user);
/* In another account than the streams, when there are two. */
bool rights_is_apart(enum right_user user);
/* Where it asks JetStream; NULL: $JS.API. */
const char *rights_api_prefix(enum right_user user);
/* Calls @p each for every subject that the user may publish to, with 0 in place of wildcards. */
typedef void rights_subject_fn(void *arg, char *subject);
void rights_each_publish(enum right_user user, rights_subject_fn *each, void *arg);
/* Calls @p each for every stream of the account, with what the server says of it. */
typedef void rights_stream_fn(void *arg, thole_slice name, thole_slice info);
void rights_each_stream(struct connection *hand, rights_stream_fn *each, void *arg);
/* The file of its permissions. */
void rights_permissions_path(enum right_user user, char ret[RIGHTS_PATH_BYTES]);

extern struct stack rights_stack;
enum rights_stage {
    RIGHTS_ONE_SERVER,
    RIGHTS_CLUSTER,  /* of three */
    RIGHTS_ACCOUNTS, /* one server, with the streams in another account than clients and workers */
};
/* The tables are made, by the role that may. */
void rights_start(enum rights_stage stage);
void rights_stop(void);

void rights_nats_url(enum right_user user, char ret[RIGHTS_URL_BYTES]);
/* The file of its NKey seed; NULL: its name and password are in the URL. */
const char *rights_creds(enum right_user user);
/* A connection with all that the user has. Ends the test when it is refused. */
struct connection *rights_connect(enum right_user user, const char *name);
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
/* How many times the servers have logged a denial. */
size_t rights_violations(void);

/* A day of each user of the stack: rights_day.c. */
void rights_day(void);
/* Nobody but an engine makes or changes a stream, whatever is asked for in a name of the API that is
 * permitted. Before anything else has made one. */
void rights_hostile(void);
/* No two users hear what arrives for one of them. */
void rights_inboxes_apart(void);
/* The worker of another queue listens to all that it may below _INBOX, and hears nothing until the end. */
void rights_listen_begin(void);
void rights_listen_end(void);
/* A program whose user may not hear its answers is told so when it connects. One violation. */
void rights_deaf(void);
/* Forbidden actions of each role, tried one by one: every attempt is refused, and nothing has changed.
 * Engines and workers must not run. */
void rights_nats_attempts(void);
void rights_postgres_attempts(void);
/* Users of the account of clients and workers ask, with replies to what engines alone write: nothing of it is
 * stored, when the streams are in an account @p apart; in one account it is. Engines must not run. */
void rights_replies(bool apart);
/* A worker's role locks what engines need: they go on. */
void rights_postgres_locks(void);
/* Ends the programs of rights_day(). */
void rights_programs_end(void);
#endif
