/* Inside the `thole` command: the parsed command line, and what its verbs share. */
#ifndef THOLE_COMMAND_H
#define THOLE_COMMAND_H
#include "exit_codes.h"
#include "json_file.h"
#include "option_file.h"
#include "thole/client.h"

/* The form of the output. For the user there are two more: "wide" is a table with further columns, "yaml" is
 * JSON that is converted at the end. */
enum output { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_JSONL, OUTPUT_NAME, OUTPUT_WIDE, OUTPUT_YAML };

struct cli_options {
    /* for every verb */
    const char *config, *context, *nats_url, *nats_creds, *nats_ca, *nats_cert, *nats_key, *nats_server_name,
        *nats_inbox, *nats_api_prefix, *postgres, *ns, *actor, *vouched_actor;
    uint32_t output;     /* enum output; once the verb runs it is one of the first four */
    uint64_t timeout_ms; /* 0 = not given */
    bool help, version;
    /* of one verb or the other */
    const char *id, *input, *reason, *orchestration, *prefix, *dir;
    const char *queue, *instance;
    const char *event, *event_data, *traceparent, *tracestate, *request_id, *type, *parent, *custom_status,
        *after, *before, *raw, *file;
    const char *executions_before, *next;
    const char *due_after;                                               /* of timer */
    const char *subject, *stream, *bind_instance, *bind_event, *headers; /* of bind */
    const char *to;                                                      /* of export */
    const char *test;                                                    /* of export */
    const char *until;                                                   /* of replay */
    bool stop;                                                           /* of replay */
    const char *at;                                                      /* of show */
    uint32_t form;                                                       /* an enum history_form */
    uint32_t action, bind_data, bind_from;
    uint64_t in_flight, revision;
    const char *key;                         /* of audit; a list with commas */
    const char *field;                       /* of audit redact */
    uint64_t redact_event, redact_execution; /* of audit redact; 0: not given */
    const char *ended_before, *older_than, *to_command, *back_command, *sign_key; /* of archive */
    uint64_t file_size, total_size;                                               /* likewise */
    bool unsealed, executions;                                                    /* likewise */
    uint64_t every_ms;
    const char *nats_permissions, *verbs, *queries; /* of doctor; lists with commas */
    const char *exports_to, *imports_from;          /* of doctor */
    const char *accept_loss;                        /* of recover */
    bool wait, all, force, dry_run, require_known, unescaped, grants, fix, follow, watch, second_schema;
    uint32_t statuses; /* bit i for each of cli_statuses; see cli_wanted_statuses() */
    uint64_t limit, payload_max;
    uint32_t nats_port, postgres_port, partitions;
    uint32_t partition; /* UINT32_MAX: all */
    uint64_t rate;
    const char *http, *token_file, *identity_header, *trusted_proxy; /* of console */
    bool lag, source;
    bool allow_actions;
    bool with_children;    /* of delete */
    uint32_t console_port; /* of dev */
};

struct command;
/* The verbs, as they are listed, and the options of all of them. */
struct verbs {
    const struct command *commands;
    size_t commands_len;
    const struct option_row *options;
    size_t options_len;
};

struct cli {
    const struct verbs *verbs;
    struct cli_options options;
    struct option_file config; /* texts of --config, which options point to */
    bool ns_given;             /* the namespace is a word of the command line */
    const struct command *command;
    uint64_t begun_ms; /* clock_monotonic_ms() */
    char **words;      /* words after the verb that are no options */
    int words_len;
    int program_len;   /* the last of them, which followed -- */
    bool wide;         /* tables with further columns */
    bool reads_replay; /* the program's reports are read: lines of JSON, whatever the output is */
};

struct command {
    const char *name, *usage, *summary, *example;
    const struct option_row *rows;
    size_t rows_len;
    int words_min, words_max;
    int (*run)(struct cli *cli);
    /* Advice on what to try, when it is not the usual one. */
    const char *unavailable_hint, *not_found_hint, *conflict_hint, *corrupt_hint;
    int conflict;    /* exit code of THOLE_CONFLICT, when it means something else than EXIT_CONFLICT */
    bool waits;      /* --timeout is for the instance's end, not for each answer of a server */
    bool local;      /* uses no server: settings in the environment are not checked */
    bool program;    /* the words after -- are the command line of a program */
    bool names;      /* prints a list that --output name makes sense of */
    bool stays;      /* does not end by itself, so nothing can be converted at its end */
    bool early_stop; /* options end at the first word: the rest is the command line of a program */
};

extern const struct verbs cli_verbs; /* commands.c */

/* The whole program; returns its exit code. */
int cli_main(int argc, char **argv);

/* `thole gateway`, `thole binder`: the role and the options of thole_main(). */
int role_main(int argc, char **argv);

/* Verbs: each prints to stdout, talks on stderr and returns an exit code. */
int command_start(struct cli *cli);
int command_start_many(struct cli *cli);
int command_run(struct cli *cli);
int command_wait(struct cli *cli);
int command_cancel(struct cli *cli);
int command_terminate(struct cli *cli);
int command_delete(struct cli *cli);
int command_pause(struct cli *cli);
int command_resume(struct cli *cli);
int command_prune(struct cli *cli);
int command_timer(struct cli *cli);
int command_retry(struct cli *cli);
int command_signal(struct cli *cli);
int command_query(struct cli *cli);
int command_complete(struct cli *cli);
int command_fail(struct cli *cli);
int command_replay(struct cli *cli);
int command_hold(struct cli *cli);
int command_archive(struct cli *cli);
int command_audit(struct cli *cli);
int command_show(struct cli *cli);
int command_history(struct cli *cli);
int command_export(struct cli *cli);
int command_diff(struct cli *cli);
int command_list(struct cli *cli);
int command_watch(struct cli *cli);
int command_top(struct cli *cli);
int command_rejected(struct cli *cli);
int command_nodes(struct cli *cli);
int command_partitions(struct cli *cli);
int command_projections(struct cli *cli);
int command_namespaces(struct cli *cli);
int command_dev(struct cli *cli);
int command_doctor(struct cli *cli);
int command_gateway(struct cli *cli);
int command_binder(struct cli *cli);
int command_bind(struct cli *cli);
int command_migrate(struct cli *cli);
int command_recover(struct cli *cli);
int command_queue(struct cli *cli);
enum { CONSOLE_ROWS = 6 };
extern const struct option_row console_rows[CONSOLE_ROWS]; /* console_command.c */
int command_console(struct cli *cli);
int command_context(struct cli *cli);
int command_completion(struct cli *cli);
int command_man(struct cli *cli);
int command_version(struct cli *cli);

/* Results and errors are JSON. */
static inline bool cli_is_json(const struct cli *cli)
{
    return cli->options.output == OUTPUT_JSON || cli->options.output == OUTPUT_JSONL;
}
/* Rest of --timeout in ms, at least 1; UINT64_MAX when there is none. */
uint64_t cli_left_ms(const struct cli *cli);
/* How to connect, as the options say. The strings are theirs. */
void cli_client_options(const struct cli *cli, thole_client_options *ret);
/* Connects with the options given. NULL after an error was printed: *ret_code is the exit code. Verbs that
 * wait for the end of an instance retry while no server answers, for at most --timeout. */
thole_client *cli_connect(const struct cli *cli, int *ret_code);
/*
 * Errors on stderr: what happened, where, what to try. With --output json or jsonl each is one line of JSON
 * ("thole.error.v1"), and so is a note ("thole.note.v1"); stdout has only results. All return the exit code.
 */
int cli_complain(const struct cli *cli, const char *object, const thole_error *error);
/* With a code and a hint (may be NULL) of its own. */
int cli_complain_with(const struct cli *cli, const char *object, const thole_error *error, int code,
                      const char *hint);
/* Whether a connection was refused since a file of its options cannot be read. */
bool cli_lacks_file(const struct cli *cli, const thole_error *error);
/* Of a connection that was not made. */
int cli_complain_connect(const struct cli *cli, const thole_error *error);
/* Of a file that cannot be read, or be written: one exit code each, whichever option names it; @p flaw: of
 * write_flaw.h. */
int cli_unread(const struct cli *cli, const char *path, int why, const char *hint);
int cli_unwritten(const struct cli *cli, const char *path, int flaw);
/* A mistake in the command line. */
int cli_misused(const struct cli *cli, const char *fmt, ...) THOLE_PRINTF(2, 3);
int cli_misused_try(const struct cli *cli, const char *hint, const char *fmt, ...) THOLE_PRINTF(3, 4);
/* Of --reason, which is kept where others read it: UTF-8, and no longer than reasons are. False after a
 * complaint. */
bool cli_reason_is_good(const struct cli *cli);
/* A note, which is no error. Of an instance: with its id for each word ID. */
void cli_note_of(const struct cli *cli, thole_slice instance, const char *fmt, ...) THOLE_PRINTF(3, 4);
void cli_note(const struct cli *cli, const char *fmt, ...) THOLE_PRINTF(2, 3);
int cli_exit_code(thole_status status);
/* NULL: there is no such verb. */
const struct command *verbs_find(const struct verbs *verbs, const char *name);
int command_help(struct cli *cli);
/* Help for a verb, or for all. */
int help_print(const struct cli *cli, const struct command *command, FILE *to);
int no_such_verb(const struct cli *cli, const char *name);
/* Flushes stdout. Nothing is said of a reader that went away: the exit code is that of SIGPIPE then, unless
 * the verb had failed before. */
int cli_finish(const struct cli *cli, int code);
/* The exit code when a write to stdout has failed; @p flaw: of write_flaw.h. Prints the flaw to stderr,
 * except when the reader has gone: then it returns @p code, or SIGPIPE's instead of success. */
int cli_flawed(const struct cli *cli, int code, int flaw);
#endif
