/* The options of doctor. */
#include "subject.h"
#include "verb_options.h"

#define NAMES_ROW(name, member, text)                                                                        \
    {                                                                                                        \
        .flag = name, .kind = OPTION_TEXT, .unit = "NAME,...", FIELD(member), .help = text                   \
    }
const struct option_row doctor_options[DOCTOR_ROWS] = {
    {.flag = "fix",
     .kind = OPTION_SWITCH,
     FIELD(fix),
     .help = "put right what may be changed in place, and make again what can be derived; says each"},
    TEXT_ROW("nats-permissions", "ROLE,...", nats_permissions,
             "print what a NATS user needs for engine, worker, client, auditor, console, service, gateway, "
             "binder, remote-worker, remote-client, notary, archivist"),
    {.flag = "partitions",
     .kind = OPTION_NUMBER,
     .unit = "N",
     .fallback = "8",
     .min = 1,
     .max = PARTITIONS_MAX,
     FIELD(partitions),
     .help = "of the namespace: each has streams of its own, which permissions must name"},
    NAMES_ROW("verb", verbs, "what a client may do, instead of what its role usually may"),
    NAMES_ROW("queue", queue, "whose activities a worker may do; default: default"),
    NAMES_ROW("orchestration", orchestration, "what a client may start; default: all"),
    NAMES_ROW("event", event, "what a client may raise; default: all"),
    NAMES_ROW("query", queries, "what a client may ask; default: all"),
    NAMES_ROW("stream", stream, "whose messages a binder may take, and rules of thole bind be about"),
    TEXT_ROW("exports-to", "ACCOUNT", exports_to,
             "print what the account of the streams exports for --nats-permissions: name the other one"),
    TEXT_ROW("imports-from", "ACCOUNT", imports_from,
             "print what their account imports; with -o json the key of the account of the streams"),
};
