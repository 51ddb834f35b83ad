/*
 * Golden files: bytes that a released thole has written, which every later one must read and replay.
 *
 *   vN/events/KIND      a record whose turn has one event of that kind
 *   vN/messages/KIND    an inbox message; "results": several in one; "heartbeat", …: an engine's
 *   vN/records/NAME     a record
 *   vN/histories/NAME   all records of one execution, each preceded by its length (4 bytes, little-endian)
 *
 * each as NAME.bin, with its contents as text in NAME.txt. program_golden_write writes each file once, and
 * leaves existing ones alone. Where a later thole decides otherwise it writes a folder of its own.
 */
#ifndef THOLE_GOLDEN_H
#define THOLE_GOLDEN_H
#include "instance.h"
#include "samples.h"

enum { GOLDEN_BYTES_MAX = 1024 * 1024, GOLDEN_RECORDS_MAX = 64 };

/* ---- files ---- */

struct golden {
    const char *group; /* "events", … */
    const char *name;
};
/* tests/golden/v<version>/<group>/<name><ending> as a path; static memory, until the next call. */
const char *golden_path(int version, struct golden golden, const char *ending);
/* False when there is no such file. */
bool golden_read(const char *path, struct buf *to);
/* Ends the process when that does not work. */
void golden_write(const char *path, thole_slice bytes);

/* ---- contents of the files ---- */

/* Calls @p each with every golden thing but histories: the bytes that are written now, and their text. */
typedef void golden_fn(void *arg, struct golden golden, thole_slice bytes, thole_slice text);
void golden_samples(golden_fn *each, void *arg);
/* The text of bytes that were written some time. Says so when they do not decode. */
void golden_show(struct golden golden, thole_slice bytes, struct buf *to);

/* ---- histories ---- */

struct golden_turn {
    uint64_t time_ms;
    bool held; /* recorded only: by an engine that has no such code */
    const struct event *received;
    size_t received_len;
};
struct golden_story {
    const char *name;
    thole_orchestration_fn *code; /* replays it */
    const struct golden_turn *turns;
    size_t turns_len;
    thole_orchestration_fn *written_by; /* NULL = code */
    const char *follows; /* the story whose execution this one continues: turn 0 receives what that carries */
    uint32_t version;    /* of the code; 0 = it had none, as before there were versions */
    size_t part;         /* events in a record; 0 = all of the turn */
};
extern const struct golden_story golden_stories[];
extern const size_t golden_stories_len;

extern const thole_slice golden_instance; /* all stories are of one instance */

/* A new instance for the story. Ends the process when there is no memory. */
struct instance *golden_begin(const struct golden_story *story, struct stack_pool *stacks,
                              thole_orchestration_fn *code);
/* The input of turn @p i of the story. What continues another story is in memory of @p arena. */
struct turn_in golden_input(const struct golden_story *story, size_t i, struct stack_pool *stacks,
                            struct arena *arena);

struct golden_history {
    struct arena arena;
    struct turn turns[GOLDEN_RECORDS_MAX];
    size_t turns_len;
};
/* The turns of a history in a file, parts joined; none when it is damaged. */
void golden_turns(thole_slice bytes, struct golden_history *ret, thole_error *reterr);
void golden_release(struct golden_history *history);
/* Replays the first @p n turns. */
THOLE_NODISCARD thole_status golden_replay(struct instance *instance, const struct golden_history *history,
                                           size_t n, thole_error *reterr);
/* Runs the story and appends its history. Each turn has an engine of its own, which replays what was before.
 */
void golden_run(const struct golden_story *story, struct stack_pool *stacks, struct buf *to);
/* The records of a history. Their number; 0: it is damaged. */
size_t golden_records(thole_slice bytes, struct arena *arena, struct record *ret, thole_error *reterr);
#endif
