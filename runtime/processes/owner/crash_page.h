/*
 * Memory that an engine and its supervisor share: which code of which orchestration each shard runs, and the
 * report that the engine writes when that code crashes, calls exit() or does not end its turn. The supervisor
 * stores the report before the process ends (supervisor.h).
 *
 * A place has one writer, its shard's thread, at the cost of a few stores for each turn. Readers are the
 * handlers of fatal signals on that thread, the watchdog, and the supervisor when the engine is dead.
 */
#ifndef THOLE_CRASH_PAGE_H
#define THOLE_CRASH_PAGE_H
#include "buf.h"
#include "partition.h"
#include <stdatomic.h>

enum {
    CRASH_PLACES_MAX = 256, /* the maximum of --engine-threads */
    CRASH_FRAMES_MAX = 32,
    CRASH_TEXT_BYTES = 512,
    CRASH_WAIT_MS = 2000, /* longest wait of a crashing engine for its report to be stored */
};

struct crash_place {
    atomic_uint_fast64_t since_ms; /* monotonic; 0: no code runs, and the members below are not valid */
    atomic_uint_fast64_t runs;     /* number of runs so far */
    enum code_kind kind;
    uint32_t partition, version, instance_len;
    uint64_t execution, event;
    thole_orchestration_fn *code;
    uint8_t instance[THOLE_ID_BYTES_MAX];
    char orchestration[THOLE_NAME_BYTES_MAX + 1];
};

enum crash_kind {
    CRASH_NONE = 0,
    CRASH_SIGNAL = 1,  /* reported by the engine: number is the signal */
    CRASH_EXIT = 2,    /* reported by the engine: exit(number) was called */
    CRASH_ENDLESS = 3, /* the turn did not end within number milliseconds */
    CRASH_CODE = 4,    /* from the kernel: it ended with exit code number, and without a report: _exit() */
    CRASH_KILLED = 5,  /* from the kernel: number is the signal */
};
enum crash_state { CRASH_UNREPORTED = 0, CRASH_BEING_REPORTED = 1, CRASH_REPORTED = 2 };
struct crash {
    atomic_int
        /* an enum crash_state: from BEING_REPORTED on all members but frames are valid as far as written */
        state;
    enum crash_kind kind;
    int number;
    /* SIGNAL: fault: raised by an access at address; overflow: the address is in a stack's guard */
    bool fault, overflow;
    uint64_t address;
    size_t stack_bytes; /* of the stack that overflowed */
    int place;          /* place of the thread; -1: not a shard's thread, or no code ran */
    size_t frames_len;
    const void
        /* return addresses, the innermost first, which is the place of the crash */
        *frames[CRASH_FRAMES_MAX];
};

struct crash_page {
    struct crash crash;
    atomic_bool returned;            /* thole_main() returns: how the process ends later is not reported */
    atomic_uint_fast64_t overdue_ms; /* not 0: SIGABRT was sent because a turn did not end within this time */
    size_t places_len;
    struct crash_place places[CRASH_PLACES_MAX];
};
/* Shared with what is forked. NULL: there is no memory. */
struct crash_page *crash_page_create(void);
void crash_page_destroy(struct crash_page *page); /* NULL-safe */
/* Resets it to its initial state. */
void crash_page_clear(struct crash_page *page);

/* --- the engine's side --- */
/* From now until crash_unlisten() a crash of this process is written to the page, and a byte is sent to @p
 * socket (-1: none), which the other side closes or answers when the report is stored. Both are borrowed. */
void crash_listen(struct crash_page *page, int socket);
void crash_unlisten(void);
/* In a copy of the process that this thread has forked: a report is written to place 0 of @p page, without
 * waiting; exit() ends the copy. */
void crash_listen_in_copy(struct crash_page *page);
/* Reports that the code in that place has not returned for @p ms milliseconds, unless its thread has reported
 * it, and tells the supervisor. Any thread. */
void crash_say_endless(struct crash_page *page, int place, uint64_t ms);
struct crash_thread { /* a thread that runs orchestration code: its place in the page, and its stacks */
    const struct crash_page *page;
    size_t index;
    const struct stack_pool *stacks;
};
/* This thread is @p thread from now on, which is borrowed with all that it names until the thread ends or
 * calls it again. NULL: it runs no such code any more. */
void crash_thread_begin(const struct crash_thread *thread);
void crash_begins(struct crash_place *place, const struct code_run *run);
void crash_ended(struct crash_place *place);
/* A copy of the place whose run began at @p since_ms, for another thread of this process. False: that run has
 * ended, and the copy is to be ignored. */
bool crash_watch_place(const struct crash_place *place, uint64_t since_ms, struct crash_place *ret);

/* --- reporting --- */
/* Copies of what the other process has written, which may have crashed while it wrote, or be hostile:
 * lengths, kinds and numbers are within their bounds, texts end, ids and names are valid. To be used instead
 * of the shared memory, which may still change. */
void crash_take(const struct crash_page *page, struct crash *ret);
/* False: no code runs there, or the contents are invalid. */
bool crash_take_place(const struct crash_place *place, struct crash_place *ret);
/* "SIGSEGV at address 0x0 in checkout (checkout.c:42)". @p place may be NULL. In the process that crashed, or
 * one with the same image: addresses are looked up. */
void crash_text(const struct crash *crash, const struct crash_place *place, struct buf *to);
/* Like crash_text(), with the kind of run: "…, in a turn of orchestration checkout, at event 7". */
void crash_report_text(const struct crash *crash, const struct crash_place *place, struct buf *to);
/* The build id of the object that holds the address, as hexadecimal digits: "0" when it has none. @p ret is
 * returned. */
enum { BUILD_ID_BYTES = 41 };
const char *build_id(const void *address, char ret[BUILD_ID_BYTES]);
#endif
