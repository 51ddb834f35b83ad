/*
 * Plays of the replay core, written and shown as text.
 *
 * A script or a history is turns separated by " / "; a turn is events separated by " | ", each as
 * event_render() shows it. In a script "#N " before an event is left out, as the instance numbers events
 * itself. Before the first event of a turn there may be "@5000 " (logical time; else the turn's number times
 * 1000) and "~" (the code does not run). Example, a history of two turns:
 *
 *   #1 Started t(in) | #2 ActivityScheduled charge(card) / #3 ActivityCompleted #2 (ok) | #4 Completed (ok)
 *
 * Fields that event_render() does not show follow the event in brackets, unless they have their usual value:
 *
 *   [timed] [final] [id=request] [queue=name] [details=bytes] [close=2]
 *   [tries=5 delay=100 factor=2000 max=900 jitter=500 finals=a,b try_ms=10 total_ms=99 poison=1]
 *   [lost=5 worker=name input=bytes]
 *
 * A play that ends with ContinuedAsNew also shows the beginning of the next execution, after " => ".
 */
#ifndef THOLE_PLAY_H
#define THOLE_PLAY_H
#include "coro.h"
#include "instance.h"
#include "thole_cunit.h"

enum { PLAY_TURNS_MAX = 40, PLAY_TEXT_MAX = 64 * 1024 };

struct play_turns {
    struct arena arena;
    struct turn turns[PLAY_TURNS_MAX];
    size_t len;
};

struct play {
    thole_orchestration_fn *code;
    const char *id;
    uint32_t version;
    size_t memory_max, payload_max;
    uint64_t quarantine_ms; /* 5000, unless a test says otherwise */
    bool bare;              /* without the checks that need more memory than the play itself */
    struct stack_pool *stacks;
};
struct play play_of(thole_orchestration_fn *code);
void play_release(struct play *play);
struct instance *play_instance(const struct play *play);
/* One that has no code. */
struct instance *play_codeless(const struct play *play);

/* The text as turns; aborts on what it does not understand. */
void play_parse(const char *text, struct play_turns *ret);
void play_turns_release(struct play_turns *turns);
/* One event, as in a history. */
void play_render(const struct event *event, struct buf *to);

/* A live run, turn by turn, through encoded records. */
struct played {
    const struct play *play;
    struct turn_in fed[PLAY_TURNS_MAX];
    struct buf records[PLAY_TURNS_MAX];
    size_t len;
    bool ended;
    void (*before_turn)(size_t i); /* before each live turn, also when going on after a prefix; may be NULL */
    void (*before_replay)(void);
};
/* Feeds the next turn and records it; the error is the turn's. */
thole_status play_feed(struct played *p, struct instance *instance, struct turn_in in, struct turn_out *ret,
                       thole_error *reterr);
void played_release(struct played *p);
/*
 * Checks after each prefix of a recorded history:
 *   - it can be replayed, and going on live from there gives the same bytes;
 *   - without code, the next turn is recorded with the same bytes;
 *   - without code, the instance can be terminated there, and the code accepts that history.
 */
void play_check_prefix(const struct played *p, size_t prefix);
/* Checks that continue-as-new takes along the same events live, replayed and without code; shows them as
 * " => ...". */
void play_check_carried(const struct played *p, const struct instance *live, struct buf *to);

/* Runs the script live and appends the history to @p to; a turn that fails is shown as "LIMIT: text". Then
 * checks all of the above. */
void play_live(const struct play *play, const char *script, struct buf *to);
/* Replays a history: "ok", "ok, ended", or "NONDETERMINISM: text". */
void play_replay(const struct play *play, const char *history, struct buf *to);

/* For a status that a play does not care about: gcc does not take a cast to void for that. */
static inline void play_ignore(thole_status status)
{
    (void)status;
}

/* Rows of a table: a situation in text, and the text that shows what came of it. */
struct play_row {
    const char *name;
    thole_orchestration_fn *code;
    const char *text, *expected;
};
void play_check_live(const struct play_row *rows, size_t n);
void play_check_replay(const struct play_row *rows, size_t n);
#endif
