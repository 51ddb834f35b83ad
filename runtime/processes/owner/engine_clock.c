#include "engine_clock.h"
#include "clock.h"
#include "engine.h"
#include "job_thread.h"
#include "memory.h"
#include "postgres.h"
#include "reader.h"
#include "subject.h"
#include "text.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TICK_MS = 500,
    NATS_EVERY = 10,      /* ticks */
    POSTGRES_EVERY = 120, /* likewise; and when NATS's clock says otherwise */
    WARN_MS = 1000,
    WARN_EVERY_MS = 60 * 1000,
    CONNECT_MS = 5000,
    READ_MS = 1000, /* between two readings of one clock: the thread stood still, and it is read again */
};

enum { SERVER_NATS, SERVER_POSTGRES, SERVERS };
static const char *const server_names[SERVERS] = {"NATS", "Postgres"};

struct engine_clock {
    struct engine_host *engine;
    engine_clock_fn *changed;
    uint64_t limit_ms; /* 0: it is believed */
    struct metric_cells *cells;
    atomic_int_least64_t lead_ms; /* of the wall clock before the monotonic one, when it was right last */
    atomic_bool right;
    struct job_thread thread;
    bool runs, said;                      /* said: the error was logged */
    struct clock_offset offsets[SERVERS]; /* of the job's thread */
    int64_t leads_ms[SERVERS];            /* of the wall clock before the monotonic one, as it was compared */
    uint64_t warned_ms[SERVERS];
};

/* ---- judging ---- */

static uint64_t engine_clock_magnitude(int64_t ms)
{
    return ms < 0 ? (uint64_t)-ms : (uint64_t)ms;
}

bool clock_offset_beyond(const struct clock_offset *offset, uint64_t limit_ms)
{
    return offset->known && engine_clock_magnitude(offset->ahead_ms) > limit_ms + offset->error_ms;
}

bool clock_is_wrong(const struct clock_offset *nats, const struct clock_offset *postgres, uint64_t limit_ms)
{
    bool const agrees = (nats->known && !clock_offset_beyond(nats, limit_ms)) ||
                        (postgres->known && !clock_offset_beyond(postgres, limit_ms));
    return (nats->known || postgres->known) && !agrees;
}

/* ---- the time of a step ---- */

static uint64_t read_both(uint64_t *ret_monotonic_ms)
{
    for (;;) {
        uint64_t const before = clock_monotonic_ms(), wall = clock_wall_ms();
        *ret_monotonic_ms = clock_monotonic_ms();
        if (*ret_monotonic_ms - before < READ_MS)
            return wall;
    }
}

static void set_right(struct engine_clock *clock, bool right)
{
    if (atomic_exchange(&clock->right, right) != right)
        clock->changed(clock->engine);
}

uint64_t engine_clock_ms(struct engine_clock *clock)
{
    uint64_t monotonic;
    if (clock == NULL || clock->limit_ms == 0)
        return clock_wall_ms();
    uint64_t const wall = read_both(&monotonic);
    int64_t const lead = atomic_load_explicit(&clock->lead_ms, memory_order_relaxed);
    int64_t const jump = (int64_t)(wall - monotonic) - lead;
    if (lead == 0 || engine_clock_magnitude(jump) <= clock->limit_ms)
        return wall;
    if (atomic_load_explicit(&clock->right, memory_order_relaxed)) {
        log_line(LOG_LEVEL_WARN, "clock",
                 "this machine's clock has jumped by %" PRId64 " ms: the servers are asked", jump);
        set_right(clock, false);
    }
    return monotonic + (uint64_t)lead;
}

bool engine_clock_is_right(const struct engine_clock *clock)
{
    return clock == NULL || clock->limit_ms == 0 || atomic_load_explicit(&clock->right, memory_order_relaxed);
}

/* ---- comparing ---- */

static thole_status ask_nats(struct engine_clock *clock, uint64_t *ret_ms, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX];
    (void)snprintf(stream, sizeof stream, "KV_THOLE_%s_CONFIG", clock->engine->topology.ns);
    return stream_server_ms(clock->engine->connection, stream, ret_ms, reterr);
}

/* A connection for this alone: it is asked once a minute. */
static thole_status ask_postgres(struct engine_clock *clock, uint64_t *ret_before_ms, uint64_t *ret_ms,
                                 thole_error *reterr)
{
    struct postgres_options const options = {.conninfo = clock->engine->options.postgres,
                                             .ns = clock->engine->options.ns,
                                             .application = "thole-clock",
                                             .connect_timeout_ms = CONNECT_MS,
                                             .statement_timeout_ms = CONNECT_MS};
    struct postgres *pg = NULL;
    THOLE_TRY(postgres_open(&options, &pg, reterr));
    *ret_before_ms = clock_monotonic_ms();
    thole_status const status = postgres_now_ms(pg, ret_ms, reterr);
    postgres_close(pg);
    return status;
}

static void say_offset(struct engine_clock *clock, int server, uint64_t there_ms)
{
    const struct clock_offset *const offset = &clock->offsets[server];
    uint64_t const now_ms = clock_monotonic_ms();
    char here[TIME_TEXT_BYTES], there[TIME_TEXT_BYTES];
    metric_set(clock->cells, METRIC_CLOCK_OFFSET, (size_t)server, engine_clock_magnitude(offset->ahead_ms));
    if (!clock_offset_beyond(offset, WARN_MS) ||
        (clock->warned_ms[server] != 0 && now_ms - clock->warned_ms[server] < WARN_EVERY_MS))
        return;
    clock->warned_ms[server] = now_ms;
    text_time(there_ms + (uint64_t)offset->ahead_ms, here);
    text_time(there_ms, there);
    log_line(LOG_LEVEL_WARN, "clock",
             "this machine's clock says %s, that of %s %s: %" PRIu64 " ms %s; keep both with NTP", here,
             server_names[server], there, engine_clock_magnitude(offset->ahead_ms),
             offset->ahead_ms > 0 ? "ahead" : "behind");
}

/* Half of what it took is the most by which it may err. */
static void engine_clock_compare(struct engine_clock *clock, int server)
{
    thole_error error = {.status = THOLE_OK};
    uint64_t before, there_ms = 0, after;
    (void)read_both(&before);
    thole_status const status = server == SERVER_NATS ? ask_nats(clock, &there_ms, &error)
                                                      : ask_postgres(clock, &before, &there_ms, &error);
    uint64_t const wall = read_both(&after);
    uint64_t const half = (after - before) / 2 + 1;
    clock->offsets[server] = (struct clock_offset){.known = status == THOLE_OK};
    if (status != THOLE_OK) {
        log_line(LOG_LEVEL_DEBUG, "clock", "the clock of %s is not known: %s", server_names[server],
                 error.text);
        return;
    }
    clock->leads_ms[server] = (int64_t)(wall - after);
    clock->offsets[server].ahead_ms = (int64_t)(wall - half - there_ms);
    clock->offsets[server].error_ms = half;
    say_offset(clock, server, there_ms);
}

/* As it was compared: a jump since then is not taken for right. */
static void keep_lead(struct engine_clock *clock)
{
    const struct clock_offset *const nats = &clock->offsets[SERVER_NATS];
    bool const of_nats = nats->known && !clock_offset_beyond(nats, clock->limit_ms);
    atomic_store(&clock->lead_ms, clock->leads_ms[of_nats ? SERVER_NATS : SERVER_POSTGRES]);
}

/* By what is known now; what cannot be asked changes nothing. */
static void engine_clock_check(struct engine_clock *clock)
{
    const struct clock_offset *const nats = &clock->offsets[SERVER_NATS], *const postgres =
                                                                              &clock
                                                                                   ->offsets[SERVER_POSTGRES];
    if (!nats->known && !postgres->known)
        return;
    bool const wrong = clock_is_wrong(nats, postgres, clock->limit_ms);
    bool const was_right = engine_clock_is_right(clock);
    if (!wrong)
        keep_lead(clock);
    if (wrong && !clock->said)
        log_line(LOG_LEVEL_ERROR, "clock",
                 "this machine's clock is wrong by more than --clock-offset-max %" PRIu64
                 " ms: this engine owns no partition until it is right",
                 clock->limit_ms);
    else if (!wrong && !was_right && clock->runs)
        log_line(LOG_LEVEL_INFO, "clock", "this machine's clock is right again");
    clock->said = wrong;
    set_right(clock, !wrong);
}

static void look_at_clocks(struct engine_clock *clock, bool all)
{
    engine_clock_compare(clock, SERVER_NATS);
    const struct clock_offset *const nats = &clock->offsets[SERVER_NATS];
    if (all || !nats->known || clock_offset_beyond(nats, WARN_MS))
        engine_clock_compare(clock, SERVER_POSTGRES);
    else
        clock->offsets[SERVER_POSTGRES].known = false; /* of another time */
    engine_clock_check(clock);
}

static void *engine_clock_main(void *arg)
{
    struct engine_clock *const clock = arg;
    (void)pthread_setname_np(pthread_self(), "thole-clock");
    for (unsigned tick = 1; job_thread_sleep(&clock->thread, TICK_MS); tick++) {
        (void)engine_clock_ms(clock); /* also of an engine without partitions */
        if (tick % NATS_EVERY == 0 || !engine_clock_is_right(clock))
            look_at_clocks(clock, tick % POSTGRES_EVERY == 0);
    }
    return NULL;
}

struct engine_clock *engine_clock_create(struct engine_host *engine, engine_clock_fn *changed)
{
    struct engine_clock *const clock = memory_new(sizeof *clock);
    clock->engine = engine;
    clock->changed = changed;
    clock->limit_ms = engine->options.clock_offset_max_ms;
    clock->cells = metrics_cells(engine->options.metrics);
    return clock;
}

thole_status engine_clock_start(struct engine_clock *clock, thole_error *reterr)
{
    if (clock->limit_ms == 0)
        return THOLE_OK;
    look_at_clocks(clock, true);
    THOLE_TRY(job_thread_start(&clock->thread, engine_clock_main, clock, "that compares clocks", reterr));
    clock->runs = true;
    return THOLE_OK;
}

void engine_clock_stop(struct engine_clock *clock)
{
    if (clock == NULL || !clock->runs)
        return;
    job_thread_stop(&clock->thread);
    clock->runs = false;
}

void engine_clock_destroy(struct engine_clock *clock)
{
    free(clock);
}
