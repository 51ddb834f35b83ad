/* The table of verbs. */
#include "shared_options.h"
#include "subject.h"
#include "verb_options.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROWS(a) .rows = a, .rows_len = COUNT(a)

enum { PORT_MAX = 65535 };
#define ID_ROW                                                                                               \
    {                                                                                                        \
        .flag = "id", .kind = OPTION_TEXT, .unit = "ID", .shown = "made up and printed", FIELD(id),          \
        .help = "instance id, unique in the namespace"                                                       \
    }
#define REQUIRE_KNOWN_ROW                                                                                    \
    {                                                                                                        \
        .flag = "require-known", .kind = OPTION_SWITCH, FIELD(require_known),                                \
        .help = "fail when no live engine has the code, instead of a note"                                   \
    }
#define RAW_ROW                                                                                              \
    {                                                                                                        \
        .flag = "raw", .kind = OPTION_SWITCH, FIELD(unescaped),                                              \
        .help = "write the bytes alone: without a line end, and as they are to a terminal, too"              \
    }
#define EVENT_ROW                                                                                            \
    {                                                                                                        \
        .flag = "event", .kind = OPTION_NAME, .unit = "NAME", FIELD(event),                                  \
        .help = "deliver this event too, also to an instance that runs already"                              \
    }
#define EVENT_DATA_ROW                                                                                       \
    {                                                                                                        \
        .flag = "event-data", .kind = OPTION_TEXT, .unit = "TEXT|@FILE|-", .shown = "empty",                 \
        FIELD(event_data), .help = "what the event carries"                                                  \
    }

#define TRACEPARENT_ROW                                                                                      \
    {                                                                                                        \
        .flag = "traceparent", .kind = OPTION_TEXT, .unit = "TEXT", .shown = "none", FIELD(traceparent),     \
        .help = "W3C Trace Context, for activities, live events and logs"                                    \
    }
#define TRACESTATE_ROW                                                                                       \
    {                                                                                                        \
        .flag = "tracestate", .kind = OPTION_TEXT, .unit = "TEXT", .shown = "none", FIELD(tracestate),       \
        .help = "what belongs to --traceparent"                                                              \
    }
static const struct option_row start_rows[] = {
    ID_ROW,
    INPUT_ROW,
    EVENT_ROW,
    EVENT_DATA_ROW,
    PAYLOAD_ROW,
    RAW_ROW,
    REQUIRE_KNOWN_ROW,
    TRACEPARENT_ROW,
    TRACESTATE_ROW,
    {.flag = "wait", .kind = OPTION_SWITCH, FIELD(wait), .help = "the same as thole run"},
};
static const struct option_row start_many_rows[] = {REQUIRE_KNOWN_ROW};
static const struct option_row run_rows[] = {ID_ROW,        INPUT_ROW, EVENT_ROW,         EVENT_DATA_ROW,
                                             PAYLOAD_ROW,   RAW_ROW,   REQUIRE_KNOWN_ROW, TRACEPARENT_ROW,
                                             TRACESTATE_ROW};
static const struct option_row wait_rows[] = {RAW_ROW};
static const struct option_row query_rows[] = {PAYLOAD_ROW, RAW_ROW};
static const struct option_row payload_rows[] = {PAYLOAD_ROW};
static const struct option_row signal_rows[] = {
    {.flag = "request-id",
     .kind = OPTION_TEXT,
     .unit = "ID",
     .shown = "a new one",
     FIELD(request_id),
     .help = "the same for every repetition: the event is delivered once"},
    PAYLOAD_ROW,
    {.flag = "wait",
     .kind = OPTION_SWITCH,
     FIELD(wait),
     .help = "until an engine has taken the event, or has rejected it"},
};
static const struct option_row fail_rows[] = {
    {.flag = "type",
     .kind = OPTION_TEXT,
     .unit = "TYPE",
     .shown = "none",
     FIELD(type),
     .help = "error type, for the orchestration and its retry policy"},
    PAYLOAD_ROW,
};
#define FILE_ROW(text) TEXT_ROW("file", "FILE|-", file, text)
static const struct option_row show_rows[] = {
    {.flag = "at",
     .kind = OPTION_TEXT,
     .unit = "EVENT|TIME",
     .shown = "now",
     FIELD(at),
     .help = "as the history had it then: 17, 2.17 (of execution 2), 2026-11-21T09:30:00Z, or 2h (ago)"},
    FILE_ROW("from a file that thole export wrote; needs no server"),
    {.flag = "source",
     .kind = OPTION_SWITCH,
     FIELD(source),
     .help = "also where in the source its code waits: asks the engine that has it"},
};
static const struct option_row history_rows[] = {
    TEXT_ROW("raw", "FILE|-", raw,
             "write the records as they are stored to FILE, for replay and archives: as thole export ID"),
    FILE_ROW("read a file that thole export wrote; without ID: all of its histories. Needs no server"),
    {.flag = "follow",
     .letter = 'f',
     .kind = OPTION_SWITCH,
     FIELD(follow),
     .help = "print what is recorded from now on too, until the instance has ended"},
};
static const struct option_row diff_rows[] = {
    TEXT_ROW("instance", "ID", instance, "which one of a @FILE with several histories"),
};
static const struct option_row replay_rows[] = {
    OPTION_ROW_ALL_HISTORIES(FIELD(all)),
    OPTION_ROW_HISTORY_FILE(FIELD(file)),
    OPTION_ROW_UNTIL(FIELD(until)),
    OPTION_ROW_BREAK(FIELD(stop)),
};
static const struct option_row reason_rows[] = {
    TEXT_ROW("reason", "TEXT", reason, "kept in the history and told to running activities"),
};
static const struct option_row delete_rows[] = {
    {.flag = "force", .kind = OPTION_SWITCH, FIELD(force), .help = "terminate it first, if it has not ended"},
    {.flag = "with-children",
     .kind = OPTION_SWITCH,
     FIELD(with_children),
     .help = "and all that it has started, by their rows in Postgres"},
    TEXT_ROW("reason", "TEXT", reason, "kept with the id and the time; told to activities that run"),
};
static const struct option_row prune_rows[] = {
    TEXT_ROW("executions-before", "N|TIME", executions_before,
             "those with a lower number, or that ended before then"),
    {.flag = "all",
     .kind = OPTION_SWITCH,
     FIELD(all),
     .help = "instead of an ID: of all instances that continue as new"},
    TEXT_ROW("prefix", "TEXT", prefix, "instead of an ID: of those whose ids begin with it"),
    {.flag = "orchestration",
     .kind = OPTION_NAME,
     .unit = "NAME",
     FIELD(orchestration),
     .help = "instead of an ID: of those of it"},
    {.flag = "dry-run",
     .kind = OPTION_SWITCH,
     FIELD(dry_run),
     .help = "list what would be removed, and change nothing"},
    TEXT_ROW("reason", "TEXT", reason, "kept in the history"),
};
static const struct option_row timer_rows[] = {
    TEXT_ROW("due-after", "TIME", due_after, "only those that are due later; 30d: than 30 days from now"),
    {.flag = "all", .kind = OPTION_SWITCH, FIELD(all), .help = "fire: of all instances"},
    TEXT_ROW("prefix", "TEXT", prefix, "of instances whose ids begin with it"),
    {.flag = "orchestration",
     .kind = OPTION_NAME,
     .unit = "NAME",
     FIELD(orchestration),
     .help = "of instances of it"},
    {.flag = "dry-run",
     .kind = OPTION_SWITCH,
     FIELD(dry_run),
     .help = "fire: list what would fire, and change nothing"},
};
/* Options that select instances. */
#define FILTER_ROWS                                                                                          \
    {.flag = "status",                                                                                       \
     .kind = OPTION_CHOICES,                                                                                 \
     .choices = cli_statuses,                                                                                \
     .shown = "any",                                                                                         \
     FIELD(statuses),                                                                                        \
     .help = "only those; open: all that have not ended"},                                                   \
        {.flag = "orchestration",                                                                            \
         .kind = OPTION_NAME,                                                                                \
         .unit = "NAME",                                                                                     \
         FIELD(orchestration),                                                                               \
         .help = "only those"},                                                                              \
        TEXT_ROW("prefix", "TEXT", prefix, "only ids that begin with it"),                                   \
        TEXT_ROW("parent", "ID", parent, "only its children"),                                               \
        TEXT_ROW("custom-status", "TEXT", custom_status, "only those whose code has set it"),                \
        TEXT_ROW("after", "TIME", after,                                                                     \
                 "only those created then or later: 2026-11-21T09:30:00Z, 2026-11-21, or 2h (ago)"),         \
    {                                                                                                        \
        .flag = "before", .kind = OPTION_TEXT, .unit = "TIME", FIELD(before),                                \
        .help = "only those created before then"                                                             \
    }
static const char *const file_forms[] = {"binary", "jsonl", NULL};
static const struct option_row list_rows[] = {
    FILTER_ROWS,
    LIMIT_ROW("100", 100000, "rows at most, newest first"),
    NEXT_ROW,
    {.flag = "watch",
     .letter = 'w',
     .kind = OPTION_SWITCH,
     FIELD(watch),
     .help = "stay, and print what changes; on a terminal: draw the list anew"},
};
static const struct option_row export_rows[] = {
    {.flag = "to",
     .kind = OPTION_TEXT,
     .unit = "FILE|-",
     .shown = "stdout",
     FIELD(to),
     .help = "where to; FILE.part until it is complete, and the same command goes on with a FILE.part"},
    {.flag = "form",
     .kind = OPTION_CHOICE,
     .choices = file_forms,
     .fallback = "binary",
     FIELD(form),
     .help = "of the file; both are read by history --file, diff, show --file and replay --file"},
    TEXT_ROW("key", "KEY,...", key,
             "public keys of checkpoints, files or as they are: the file shows that its records are in "
             "signed ones"),
    TEXT_ROW("test", "FILE.c", test,
             "of one ID: a unit test that begins from its history, which goes to FILE.thole"),
    {.flag = "all",
     .kind = OPTION_SWITCH,
     FIELD(all),
     .help = "all that the streams hold; needs no Postgres"},
    FILTER_ROWS,
};
static const struct option_row watch_rows[] = {
    FILTER_ROWS,
    LIMIT_ROW("100", 100000, "rows at most, newest first"),
};
static const struct option_row partitions_rows[] = {
    {.flag = "lag", .kind = OPTION_SWITCH, FIELD(lag), .help = "what each is behind by; needs Postgres"},
};
static const struct option_row rejected_rows[] = {
    LIMIT_ROW("50", 10000, "rows at most, newest first"),
    NEXT_ROW,
};
static const struct option_row projections_rows[] = {
    {.flag = "partition",
     .kind = OPTION_NUMBER,
     .unit = "N",
     .shown = "all",
     .fallback = "4294967295",
     .max = UINT32_MAX,
     FIELD(partition),
     .help = "only this one"},
    {.flag = "rate",
     .kind = OPTION_NUMBER,
     .unit = "N",
     .fallback = "1000",
     .max = 1000000,
     FIELD(rate),
     .help = "most instances in a second, so that the servers have room for their work; 0: no limit"},
    LIMIT_ROW("100", 1000000, "differences shown at most; all are counted"),
    {.flag = "second-schema",
     .kind = OPTION_SWITCH,
     FIELD(second_schema),
     .help = "rebuild: make all rows anew in a second schema, which then takes the first one's place"},
};
#define PORT_ROW(name, normally, member, text)                                                               \
    {                                                                                                        \
        .flag = name, .kind = OPTION_NUMBER, .unit = "PORT", .shown = normally, .min = 1, .max = PORT_MAX,   \
        FIELD(member), .help = text                                                                          \
    }
static const struct option_row dev_rows[] = {
    {.flag = "dir",
     .kind = OPTION_TEXT,
     .unit = "DIR",
     .shown = "a temporary one, removed at the end",
     FIELD(dir),
     .help = "folder for the data, kept"},
    PORT_ROW("nats-port", "a free one", nats_port, "port of nats-server"),
    PORT_ROW("postgres-port", "a free one", postgres_port, "port of Postgres"),
    PORT_ROW("console-port", "8233, or else a free one", console_port, "port of the web console"),
};

static const struct option_row migrate_rows[] = {
    {.flag = "grants",
     .kind = OPTION_SWITCH,
     FIELD(grants),
     .help = "and give the roles of deploy/postgres/roles.sql their rights, as grants.sql does"},
};

static const struct option_row recover_rows[] = {
    TEXT_ROW("accept-loss", "ID", accept_loss,
             "gives up what the namespace of this identity, or none, has lost"),
    TEXT_ROW("reason", "TEXT", reason, "why; kept in NATS and in Postgres, with --actor"),
};

static const struct option_row man_rows[] = {
    {.flag = "dir",
     .kind = OPTION_TEXT,
     .unit = "DIR",
     .shown = "one page to stdout",
     FIELD(dir),
     .help = "write the pages of all verbs into this folder"},
};

static const struct command commands[] = {
    {.name = "start",
     .usage = "ORCHESTRATION[@VERSION]",
     .summary = "start an instance",
     .example = "thole start checkout --id order-17 --input 'order=17;pay_ms=50'",
     ROWS(start_rows),
     .words_min = 1,
     .words_max = 1,
     .run = command_start},
    {.name = "start-many",
     .usage = "[FILE|-]",
     .summary = "start an instance for each line of JSON",
     .example = "thole start-many orders.jsonl   # each with id, orchestration, input",
     ROWS(start_many_rows),
     .words_max = 1,
     .unavailable_hint = "the same lines may be given again: what is stored is not started twice",
     .run = command_start_many},
    {.name = "run",
     .usage = "ORCHESTRATION[@VERSION]",
     .summary = "start an instance, wait for its end, print the result",
     .example = "thole run checkout --input 'order=18;pay_ms=50' --timeout 30s",
     ROWS(run_rows),
     .words_min = 1,
     .words_max = 1,
     .run = command_run,
     .waits = true},
    {.name = "wait",
     .usage = "ID",
     .summary =
         "wait for the end of an instance, print the result; one that is not there yet is waited for, with "
         "a note after 5 s",
     .example = "thole wait order-17 --timeout 1m",
     ROWS(wait_rows),
     .words_min = 1,
     .words_max = 1,
     .run = command_wait,
     .waits = true},
    {.name = "show",
     .usage = "[ID]",
     .summary = "show where an instance stands (from Postgres), or stood (from its history)",
     .example = "thole show order-17 -o json\n  thole show order-17 --at 2026-11-21T09:30:00Z\n"
                "  thole show --file order-17.thole --at 7",
     ROWS(show_rows),
     .words_max = 1,
     .run = command_show},
    {.name = "history",
     .usage = "[ID]",
     .summary = "print an instance's history (from the stream, or a file)",
     .example = "thole history order-17 --follow\n  thole history --file orders.thole order-17",
     ROWS(history_rows),
     .words_max = 1,
     .run = command_history},
    {.name = "export",
     .usage = "[ID]...",
     .summary = "write histories to a file, without loss: of IDs, of what a filter selects, or of all",
     .example = "thole export order-17 --to order-17.thole\n"
                "  thole export --all --to 2026-11.thole --key audit.pub\n"
                "  thole export --status failed --after 1d --form jsonl | jq -r .events[]?.kind",
     ROWS(export_rows),
     .words_max = INT32_MAX,
     .run = command_export},
    {.name = "diff",
     .usage = "A [B] [-- PROGRAM [ARGUMENT]...]",
     .summary = "compare two histories, or one with what PROGRAM decides; A and B: ID or @FILE",
     .example = "thole diff order-17 order-18\n  thole diff order-17 @order-17.thole\n"
                "  thole diff order-17 -- ./checkout",
     ROWS(diff_rows),
     .words_min = 1,
     .words_max = INT32_MAX,
     .run = command_diff,
     .program = true},
    {.name = "list",
     .usage = "",
     .summary = "list instances (from Postgres)",
     .example = "thole list --status open --orchestration checkout --after 2h --limit 20",
     ROWS(list_rows),
     .run = command_list,
     .names = true},
    {.name = "watch",
     .usage = "",
     .summary = "list instances and stay: the same as list --watch",
     .example = "thole watch --status open",
     ROWS(watch_rows),
     .run = command_watch},
    {.name = "top",
     .usage = "",
     .summary = "queues, workers, engines at a glance, every 2 s; without a terminal: once",
     .example = "thole top",
     .run = command_top},
    {.name = "rejected",
     .usage = "",
     .summary = "list the newest messages that no engine could take, and why",
     .example = "thole rejected --limit 20",
     ROWS(rejected_rows),
     .run = command_rejected},
    {.name = "signal",
     .usage = "ID NAME [DATA]",
     .summary = "raise an event in an instance, also before it is started; DATA: TEXT, @FILE or -",
     .example = "thole signal order-17 paid 'amount=99'",
     ROWS(signal_rows),
     .words_min = 2,
     .words_max = 3,
     .run = command_signal,
     .conflict = EXIT_ENDED},
    {.name = "query",
     .usage = "ID NAME [INPUT]",
     .summary = "query an instance, also one that has ended; INPUT: TEXT, @FILE or -",
     .example = "thole query order-17 progress",
     ROWS(query_rows),
     .words_min = 2,
     .words_max = 3,
     .run = command_query,
     .unavailable_hint =
         "an engine must run for this namespace (PROGRAM run); a moment later it may have one",
     .not_found_hint = "thole show ID: is it there, and does its code answer this query?"},
    {.name = "cancel",
     .usage = "ID",
     .summary = "ask an instance to end; it may compensate first",
     .example = "thole cancel order-17 --reason 'customer changed their mind'",
     ROWS(reason_rows),
     .words_min = 1,
     .words_max = 1,
     .run = command_cancel,
     .conflict = EXIT_ENDED},
    {.name = "terminate",
     .usage = "ID",
     .summary = "end an instance at once, without its code",
     .example = "thole terminate order-17 --reason 'its card provider is gone'",
     ROWS(reason_rows),
     .words_min = 1,
     .words_max = 1,
     .run = command_terminate,
     .conflict = EXIT_ENDED},
    {.name = "delete",
     .usage = "ID",
     .summary = "remove an instance that has ended: its rows and its history; the id is free again",
     .example = "thole delete order-17 --force --reason 'erasure request 4711'",
     ROWS(delete_rows),
     .words_min = 1,
     .words_max = 1,
     .run = command_delete,
     .conflict_hint = "thole delete ID --force, which terminates it first"},
    {.name = "prune",
     .usage = "[ID]",
     .summary = "remove histories of old executions of instances that continue as new",
     .example = "thole prune hourly-report --executions-before 30d --dry-run\n"
                "  thole prune --all --executions-before 90d   # each night",
     ROWS(prune_rows),
     .words_max = 1,
     .run = command_prune,
     .conflict = EXIT_ENDED},
    {.name = "timer",
     .usage = "list|fire [ID [TIMER]]",
     .summary = "list timers and next tries that wait; have those fire now that a wrong clock has set",
     .example = "thole timer list --due-after 365d\n  thole timer fire order-17 4\n"
                "  thole timer fire --all --due-after 365d --dry-run",
     ROWS(timer_rows),
     .words_min = 1,
     .words_max = 3,
     .run = command_timer,
     .conflict = EXIT_ENDED},
    {.name = "pause",
     .usage = "ID",
     .summary = "keep an instance's code from running until it is resumed",
     .example = "thole pause order-17 --reason 'under investigation'",
     ROWS(reason_rows),
     .words_min = 1,
     .words_max = 1,
     .run = command_pause,
     .conflict = EXIT_ENDED},
    {.name = "resume",
     .usage = "ID",
     .summary = "end a pause",
     .example = "thole resume order-17",
     ROWS(reason_rows),
     .words_min = 1,
     .words_max = 1,
     .run = command_resume,
     .conflict = EXIT_ENDED},
    {.name = "retry",
     .usage = "ID",
     .summary = "try a Stuck instance again: its crash count is cleared, its history is replayed",
     .example = "thole retry order-17",
     ROWS(reason_rows),
     .words_min = 1,
     .words_max = 1,
     .run = command_retry,
     .conflict = EXIT_ENDED},
    {.name = "complete",
     .usage = "TOKEN [OUTPUT]",
     .summary = "complete an activity from outside, with its token; OUTPUT: TEXT, @FILE or -",
     .example = "thole complete 3.1.5.1.order-17 approved",
     ROWS(payload_rows),
     .words_min = 1,
     .words_max = 2,
     .run = command_complete},
    {.name = "fail",
     .usage = "TOKEN [MESSAGE]",
     .summary = "fail an activity from outside, with its token; its retry policy decides what follows",
     .example = "thole fail 3.1.5.1.order-17 'not approved' --type refused",
     ROWS(fail_rows),
     .words_min = 1,
     .words_max = 2,
     .run = command_fail},
    {.name = "queue",
     .usage = "list|poisoned|retry|fail|limit|lease [WORD]...",
     .summary = "list queues and activities in quarantine; run those again or let them fail; limit a queue, "
                "or change its lease",
     .example =
         "thole queue list\n  thole queue poisoned --queue gpu -o json\n  thole queue retry order-17 4\n"
         "  thole queue retry --all --queue gpu\n  thole queue fail order-17 4\n"
         "  thole queue limit gpu 10\n  thole queue limit gpu none\n  thole queue lease gpu 2m",
     ROWS(queue_rows),
     .words_min = 1,
     .words_max = 3,
     .run = command_queue,
     .names = true,
     .conflict_hint = "stop its workers first, or --force",
     .not_found_hint = "thole queue poisoned; thole nodes, which shows who serves what"},
    {.name = "nodes",
     .usage = "",
     .summary = "list the engines and workers that are there, and what each serves",
     .example = "thole nodes -o json",
     .run = command_nodes,
     .names = true},
    {.name = "partitions",
     .usage = "",
     .summary = "list the partitions, and who owns each",
     .example = "thole partitions -o jsonl\n  thole partitions --lag",
     ROWS(partitions_rows),
     .run = command_partitions,
     .names = true},
    {.name = "projections",
     .usage = "verify|rebuild",
     .summary = "compare the rows in Postgres with the histories; write those that are wrong",
     .example = "thole projections verify --rate 500 -o json\n  thole projections rebuild --partition 3\n"
                "  thole projections rebuild --second-schema",
     ROWS(projections_rows),
     .words_min = 1,
     .words_max = 1,
     .run = command_projections,
     .unavailable_hint = "an engine must run, so that the rows are complete; the command may be repeated"},
    {.name = "namespaces",
     .usage = "",
     .summary = "list the namespaces that this NATS account has",
     .example = "thole namespaces",
     .run = command_namespaces,
     .names = true},
    {.name = "replay",
     .usage = "[ID]... -- PROGRAM [ARGUMENT]...",
     .summary = "run PROGRAM's code over recorded histories and print where it decides differently",
     .example = "thole replay --all -- ./checkout\n"
                "  thole replay order-17 --until 7 --break -- gdb --args ./checkout",
     ROWS(replay_rows),
     .words_max = INT32_MAX,
     .run = command_replay,
     .program = true},
    {.name = "audit",
     .usage = "verify|checkpoint|keep|keygen|redact [WORD]...",
     .summary = "check that histories are what was written; sign checkpoints; erase payloads from exports",
     .example =
         "thole audit keygen audit.example.com --key audit.key >audit.pub\n  thole audit checkpoint "
         "--key audit.key --every 1m\n"
         "  thole audit keep --key audit.pub --dir kept\n  thole audit verify --all --key audit.pub --dir "
         "kept\n"
         "  thole audit verify --all --key audit.pub\n  thole audit verify order-17 -o json\n"
         "  thole audit redact order-17 --file order-17.thole --event 4 --reason 'erasure request 4711'",
     .rows = audit_rows,
     .rows_len = AUDIT_ROWS,
     .words_min = 1,
     .words_max = INT32_MAX,
     .run = command_audit},
    {.name = "archive",
     .usage = "run|verify|list|restore [FILE|FOLDER]... [ID]...",
     .summary = "move ended instances to files that prove what they were, and purge them; put them back",
     .example =
         "thole archive run --older-than 30d --dir /var/lib/thole/archive --key audit.pub\n"
         "  thole archive run --older-than 30d --dir spool --key audit.pub --dry-run\n"
         "  thole archive run --older-than 90d --status completed --dir spool --key audit.pub \\\n"
         "    --to-command 'aws s3 cp \"$1\" s3://bucket/' --every 1h\n"
         "  thole archive verify /var/lib/thole/archive --key audit.pub\n"
         "  thole archive list archive/default-20261124T101500Z-1.thole\n"
         "  thole archive restore /var/lib/thole/archive order-17 --key audit.pub --reason 'case 4711'\n"
         "  thole archive list   # what is restored",
     .rows = archive_rows,
     .rows_len = ARCHIVE_ROWS,
     .words_min = 1,
     .words_max = INT32_MAX,
     .run = command_archive,
     .names = true,
     .unavailable_hint = "the same command, which goes on where this one stopped"},
    {.name = "hold",
     .usage = "set|release|list [ID]...",
     .summary = "put instances under legal hold: they are not deleted, pruned or archived",
     .example = "thole hold set order-17 --reason 'case 4711' --actor legal@example.com\n"
                "  thole hold list\n  thole hold list order-17   # what was said of it\n"
                "  thole hold release order-17 --reason 'case 4711 is closed'",
     .rows = hold_rows,
     .rows_len = HOLD_ROWS,
     .words_min = 1,
     .words_max = INT32_MAX,
     .run = command_hold,
     .names = true,
     .conflict_hint = "thole hold list"},
    {.name = "dev",
     .usage = "[-- PROGRAM [ARGUMENT]...]",
     .summary = "private nats-server and Postgres for as long as it (or PROGRAM) runs",
     .example = "thole dev -- ./checkout run",
     ROWS(dev_rows),
     .words_max = INT32_MAX,
     .run = command_dev,
     .local = true,
     .early_stop = true},
    {.name = "console",
     .usage = "",
     .summary = "a web console: instances, histories, queues, engines, live",
     .example = "thole console\n  thole console --http 127.0.0.1:9000 --allow-actions\n"
                "  thole console --http 0.0.0.0:8233 --token-file console.token",
     ROWS(console_rows),
     .run = command_console,
     .stays = true},
    {.name = "gateway",
     .usage = "[OPTION]...",
     .summary = "lets workers and clients without a database take part; thole gateway --help",
     .example = "thole gateway --nats nats://nats:4222 --postgres 'host=db dbname=thole'",
     .words_max = INT32_MAX,
     .run = command_gateway,
     .local = true,
     .early_stop = true},
    {.name = "bind",
     .usage = "set|list|show|delete|test [NAME]",
     .summary = "rules by which messages of streams start or signal instances; thole binder serves them",
     .example =
         "thole bind set new-orders --subject 'orders.*.created' --action start --orchestration checkout "
         "--to 'order-{json.id}'\n"
         "  thole bind set payments --subject 'payments.>' --action signal --to 'order-{ce.subject}' "
         "--event-name '{ce.type|name}'\n"
         "  thole bind test new-orders --subject orders.eu.created --input @order.json\n"
         "  thole bind list -o json\n  thole bind delete new-orders",
     .rows = bind_rows,
     .rows_len = BIND_ROWS,
     .words_min = 1,
     .words_max = 2,
     .run = command_bind,
     .names = true,
     .not_found_hint = "thole bind list",
     .corrupt_hint = "thole bind set ID, or thole bind delete ID",
     .conflict_hint = "thole bind show ID"},
    {.name = "binder",
     .usage = "[OPTION]...",
     .summary = "serves the rules of thole bind; thole binder --help",
     .example = "thole binder --nats nats://nats:4222",
     .words_max = INT32_MAX,
     .run = command_binder,
     .local = true,
     .early_stop = true},
    {.name = "migrate",
     .usage = "",
     .summary = "create the tables of a namespace in Postgres, or bring them up to date",
     .example = "thole migrate --postgres 'host=db dbname=thole user=thole_default_migrate' --grants",
     ROWS(migrate_rows),
     .unavailable_hint = "Postgres must run, and --postgres or THOLE_POSTGRES say where",
     .not_found_hint =
         "deploy/postgres/roles.sql makes the roles of a namespace; without them leave --grants away",
     .run = command_migrate},
    {.name = "recover",
     .usage = "",
     .summary = "say what NATS has lost of a namespace; and give it up, so that engines serve what is left",
     .example =
         "thole recover\n  thole recover --accept-loss 6f1d3c1e-0d7b-4c55-9a55-3b6a1c1f0b2e --reason gone",
     ROWS(recover_rows),
     .unavailable_hint = "NATS and Postgres must run: --nats, --postgres",
     .not_found_hint = "thole namespaces",
     .conflict_hint = "docs/operations.md, When NATS has lost something",
     .run = command_recover},
    {.name = "doctor",
     .usage = "",
     .summary = "check servers, namespace, engines and workers; or print the NATS permissions of a role",
     .example = "thole doctor --postgres 'host=db dbname=thole'\n"
                "  thole doctor --nats-permissions worker --queue gpu --partitions 8\n"
                "  thole doctor --nats-permissions client --verb start,wait --orchestration checkout -o json",
     ROWS(doctor_options),
     .run = command_doctor},
    {.name = "context",
     .usage = "list|show|use|save|delete [NAME]",
     .summary = "keep where the servers are under a name: save one, use it from now on",
     .example = "thole context save prod --nats tls://nats.example:4222 --nats-creds ~/prod.creds -n shop\n"
                "  thole context use prod\n  thole list --context staging\n  thole context use none",
     .words_min = 1,
     .words_max = 2,
     ROWS(context_rows),
     .run = command_context,
     .not_found_hint = "thole context list",
     .conflict_hint = "thole context show ID; another name, or --force",
     .names = true,
     .local = true},
    {.name = "completion",
     .usage = "bash|zsh|fish",
     .summary = "print a script that completes verbs, options and ids in a shell",
     .example =
         "source <(thole completion bash)\n  thole completion fish > ~/.config/fish/completions/thole.fish",
     .words_min = 1,
     .words_max = 1,
     .run = command_completion,
     .local = true},
    {.name = "man",
     .usage = "[VERB]",
     .summary = "print a manual page",
     .example = "thole man start | man -l -",
     ROWS(man_rows),
     .words_max = 1,
     .run = command_man,
     .local = true},
    {.name = "version",
     .usage = "",
     .summary = "print the version",
     .example = "thole version -o json",
     .run = command_version,
     .local = true},
    {.name = "help",
     .usage = "[VERB]",
     .summary = "show help",
     .example = "thole help start",
     .words_max = 1,
     .run = command_help,
     .local = true},
};

const struct verbs cli_verbs = {commands, COUNT(commands), global_rows, GLOBAL_ROWS};
