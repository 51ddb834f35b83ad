/*
 * Rows that engine, worker, replay and the command have in common. Each takes where its value goes
 * (OPTION_FIELD) and what differs there, such as the default or the help.
 */
#ifndef THOLE_SHARED_OPTIONS_H
#define THOLE_SHARED_OPTIONS_H
#include "inbox_prefix.h"
#include "nats_url.h"
#include "option_table.h"
#include "postgres.h"

#define OPTION_ROW_CONFIG(...)                                                                               \
    {                                                                                                        \
        .flag = "config", .kind = OPTION_TEXT, .env = "THOLE_CONFIG", .unit = "FILE",                        \
        .help = "YAML file of options: name: value; flags and environment win over it", __VA_ARGS__          \
    }
#define OPTION_ROW_NATS(...)                                                                                 \
    {                                                                                                        \
        .flag = "nats", .kind = OPTION_TEXT, .env = "THOLE_NATS_URL", .unit = "URL",                         \
        .fallback = "nats://127.0.0.1:4222", .help = "NATS servers, separated by commas",                    \
        .is_secret = nats_urls_have_secret,                                                                  \
        .instead = "a file for --nats-creds, $THOLE_NATS_URL or a --config file", __VA_ARGS__                \
    }
#define OPTION_ROW_NATS_CREDS(...)                                                                           \
    {                                                                                                        \
        .flag = "nats-creds", .kind = OPTION_TEXT, .env = "THOLE_NATS_CREDS", .unit = "FILE",                \
        .help = "NATS credentials: nsc's file, an NKey seed, or user and password or token", __VA_ARGS__     \
    }
#define OPTION_ROW_NATS_CA(...)                                                                              \
    {                                                                                                        \
        .flag = "nats-ca", .kind = OPTION_TEXT, .env = "THOLE_NATS_CA", .unit = "FILE",                      \
        .help = "PEM file of the authorities that NATS's certificate may be from", __VA_ARGS__               \
    }
#define OPTION_ROW_NATS_CERT(...)                                                                            \
    {                                                                                                        \
        .flag = "nats-cert", .kind = OPTION_TEXT, .env = "THOLE_NATS_CERT", .unit = "FILE",                  \
        .help = "PEM file of the own certificate and its chain", __VA_ARGS__                                 \
    }
#define OPTION_ROW_NATS_KEY(...)                                                                             \
    {                                                                                                        \
        .flag = "nats-key", .kind = OPTION_TEXT, .env = "THOLE_NATS_KEY", .unit = "FILE",                    \
        .help = "PEM file of the key to --nats-cert", __VA_ARGS__                                            \
    }
#define OPTION_ROW_NATS_SERVER_NAME(...)                                                                     \
    {                                                                                                        \
        .flag = "nats-server-name", .kind = OPTION_TEXT, .env = "THOLE_NATS_SERVER_NAME", .unit = "NAME",    \
        .help = "what NATS's certificate must be for, if not the URL's host", __VA_ARGS__                    \
    }
#define OPTION_ROW_NATS_INBOX(...)                                                                           \
    {                                                                                                        \
        .flag = "nats-inbox", .kind = OPTION_TEXT, .env = "THOLE_NATS_INBOX", .unit = "PREFIX",              \
        .shown = "_INBOX_NAMESPACE_ROLE; of a worker or gateway _INBOX_NAMESPACE_ROLE_QUEUE",                \
        .help = "where answers from NATS arrive: below PREFIX", __VA_ARGS__                                  \
    }
#define OPTION_ROW_NATS_API_PREFIX(...)                                                                      \
    {                                                                                                        \
        .flag = "nats-api-prefix", .kind = OPTION_TEXT, .env = "THOLE_NATS_API_PREFIX", .unit = "PREFIX",    \
        .shown = "$JS.API", .help = "where JetStream is asked: of an account that imports it from another",  \
        __VA_ARGS__                                                                                          \
    }
#define OPTION_ROW_POSTGRES(...)                                                                             \
    {                                                                                                        \
        .flag = "postgres", .kind = OPTION_TEXT, .env = "THOLE_POSTGRES", .unit = "CONNINFO",                \
        .is_secret = postgres_has_secret,                                                                    \
        .instead = "a password file (passfile=FILE, ~/.pgpass), $THOLE_POSTGRES or a --config file",         \
        __VA_ARGS__                                                                                          \
    }
#define OPTION_ROW_NAMESPACE(...)                                                                            \
    {                                                                                                        \
        .flag = "namespace", .letter = 'n', .kind = OPTION_NAME, .env = "THOLE_NAMESPACE", .unit = "NAME",   \
        .fallback = "default", __VA_ARGS__                                                                   \
    }
#define OPTION_ROW_PAYLOAD_MAX(...)                                                                          \
    {                                                                                                        \
        .flag = "payload-max", .kind = OPTION_SIZE, .env = "THOLE_PAYLOAD_MAX", .unit = "SIZE", .min = 1024, \
        .max = 4 * 1024 * 1024, __VA_ARGS__                                                                  \
    }
#define OPTION_ROW_OUTPUT(...)                                                                               \
    {                                                                                                        \
        .flag = "output", .letter = 'o', .kind = OPTION_CHOICE,                                              \
        .help = "form of what is printed, errors included", __VA_ARGS__                                      \
    }
/* of replay: as PROGRAM replay, and as thole replay */
#define OPTION_ROW_UNTIL(...)                                                                                \
    {                                                                                                        \
        .flag = "until", .kind = OPTION_TEXT, .unit = "EVENT",                                               \
        .help = "only as far as this event: 17, or 2.17 (of execution 2); says where the code is then",      \
        __VA_ARGS__                                                                                          \
    }
#define OPTION_ROW_BREAK(...)                                                                                \
    {                                                                                                        \
        .flag = "break", .kind = OPTION_SWITCH,                                                              \
        .help = "with --until: stop there in the debugger that the program runs in", __VA_ARGS__             \
    }
#define OPTION_ROW_ALL_HISTORIES(...)                                                                        \
    {                                                                                                        \
        .flag = "all", .kind = OPTION_SWITCH, .help = "every history of the namespace", __VA_ARGS__          \
    }
#define OPTION_ROW_HISTORY_FILE(...)                                                                         \
    {                                                                                                        \
        .flag = "file", .kind = OPTION_TEXT, .unit = "FILE|-",                                               \
        .help = "what thole export wrote; needs no server", __VA_ARGS__                                      \
    }
#endif
