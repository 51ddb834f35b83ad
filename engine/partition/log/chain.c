/*
 * The fenced append pipeline. Record n of an epoch is stored at base + n or not at all: it expects the last
 * sequence to be base + n - 1. A record is committed when 1..n are all acknowledged (prefix rule).
 */
#include "log_state.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void chain_link_release(struct link *link)
{
    buf_release(&link->bytes);
    arena_release(&link->arena);
    *link = (struct link){0};
}

struct link *log_link(const struct partition_log *log, size_t i)
{
    assert(i < log->facts.in_flight && log->facts.in_flight <= log->cap);
    return &log->links[(log->head + i) % log->cap];
}

struct partition_log *log_create(struct env *env)
{
    struct partition_log *log = memory_new(sizeof *log);
    log->env = env;
    log->salts = (struct salt_source){env->options.salt_key, env->options.partition};
    return log;
}

void log_reset(struct partition_log *log)
{
    for (size_t i = 0; i < log->facts.in_flight; i++)
        chain_link_release(log_link(log, i));
    chain_link_release(&log->taken);
    free(log->links);
    arena_release(&log->found_arena);
    log_become(log, LOG_CLOSED);
    *log = (struct partition_log){.env = log->env, .salts = log->salts};
}

void log_destroy(struct partition_log *log)
{
    if (log == NULL)
        return;
    log_reset(log);
    free(log);
}

/* --- states -------------------------------------------------------------------------------------- */

enum log_state log_state(const struct partition_log *log)
{
    return log->state;
}

bool log_is_open(const struct partition_log *log)
{
    return log->state == LOG_OPEN;
}

const char *log_why(const struct partition_log *log)
{
    assert(log->state == LOG_LOST);
    return log->why;
}

static void keep_why(struct partition_log *log, const char *why)
{
    size_t len = strlen(why);
    if (len >= sizeof log->why)
        len = sizeof log->why - 1;
    memcpy(log->why, why, len);
    log->why[len] = '\0';
}

void log_lose(struct partition_log *log, const char *why)
{
    keep_why(log, why);
    log_become(log, LOG_LOST);
}

const struct log_facts *log_facts(const struct partition_log *log)
{
    return &log->facts;
}

struct log_rule log_view(const struct partition_log *log)
{
    return (struct log_rule){
        .epoch = log->facts.epoch, .opened = log->facts.base, .known = log->facts.committed_n};
}

void log_check(const struct partition_log *log)
{
    const struct log_facts *facts = &log->facts;
    bool const appends = log->state >= LOG_OPENING;
    assert(facts->in_flight <= log->cap && (appends || facts->in_flight == 0));
    assert(appends || (facts->epoch == 0 && facts->next_n == 0));
    assert(log->state != LOG_OPENING || (facts->base == 0 && facts->next_n == 1));
    assert(log->state != LOG_OPEN || (facts->base > 0 && facts->next_n > facts->committed_n));
    assert(log->state != LOG_OPEN || facts->in_flight == facts->next_n - facts->committed_n - 1);
    assert(log->state != LOG_FAILING || (facts->in_flight > 0 && log_link(log, 0)->n < log->failed_n));
    assert(log->state == LOG_FAILING || log->state == LOG_LOST ||
           (log->failed_n == 0 && log->why[0] == '\0'));
    assert(!log->read_again || log->state == LOG_REMOVING);
    assert(facts->confirmed_seq <= facts->base + facts->committed_n);
    size_t bytes = 0;
    for (size_t i = 0; i < facts->in_flight; i++) {
        const struct link *link = log_link(log, i);
        bytes += link->bytes.len;
        assert(link->n == log_link(log, 0)->n + i && link->committed <= facts->committed_n);
        assert(buf_bytes(&link->bytes).len > 0);
        assert(i > 0 || !link->acked || log->env->nomem);
    }
    assert(bytes == facts->in_flight_bytes || log->env->nomem);
}

/* --- appending ----------------------------------------------------------------------------------- */

static struct link *chain_push(struct partition_log *log)
{
    size_t const len = log->facts.in_flight;
    if (len == log->cap) {
        size_t const cap = log->cap == 0 ? 64 : log->cap * 2;
        struct link *links = memory_array(cap, sizeof *links);
        for (size_t i = 0; i < len; i++)
            links[i] = *log_link(log, i);
        free(log->links);
        log->links = links;
        log->cap = cap;
        log->head = 0;
    }
    log->facts.in_flight++;
    struct link *link = log_link(log, len);
    *link = (struct link){0};
    return link;
}

/* The links to the records before it, which later ones have to it. */
static void link_to_previous(struct partition_log *log, struct record *record,
                             const struct log_saying *saying)
{
    record->previous = log->newest;
    if (saying->newest != NULL)
        record->previous_of_instance = *saying->newest;
}

static void note_newest(struct partition_log *log, thole_slice bytes, uint64_t n,
                        const struct log_saying *saying)
{
    const struct partition_options *options = &log->env->options;
    log->newest = record_hash_make(options->ns, options->partition, bytes);
    if (saying->newest != NULL)
        *saying->newest = (struct record_link){log->newest, log->facts.base + n};
}

/* Encodes the record, enters it into the pipeline and asks the host to append it. NULL: no memory for its
 * bytes. */
static struct link *chain_append(struct partition_log *log, struct record *record,
                                 const struct log_saying *saying, bool moves_position, void *tag)
{
    struct log_facts *facts = &log->facts;
    assert(log->state == (record->kind == RECORD_EPOCH_OPENED ? LOG_OPENING : LOG_OPEN));
    struct link *link = chain_push(log);
    if (moves_position) {
        record->position = saying->position;
        facts->ranges = saying->position.ranges_len > 0 && !saying->position.listed;
    }
    record->epoch = facts->epoch;
    record->n = facts->next_n++;
    record->committed = facts->committed_n;
    record->published = facts->published = saying->published;
    record->refers = saying->refers;
    record->salts = log->salts.key != NULL ? &log->salts : NULL;
    link_to_previous(log, record, saying);
    link->n = record->n;
    link->tag = tag;
    link->instance = record->kind == RECORD_DELETED ? record->deletion.instance : record->turn.instance;
    link->execution = record->turn.execution;
    link->committed = record->committed;
    link->floor = moves_position ? saying->position.floor : facts->floor;
    buf_init(&link->bytes, RECORD_BYTES_MAX);
    if (record_encode(record, &link->bytes) != THOLE_OK) {
        env_no_memory(log->env);
        return NULL;
    }
    note_newest(log, buf_bytes(&link->bytes), record->n, saying);
    facts->in_flight_bytes += link->bytes.len;
    struct partition_out *out = env_emit(log->env, PARTITION_OUT_APPEND);
    out->token = record->n;
    out->append =
        (struct out_append){.kind = record->kind,
                            .lists = record->folded.len > 0,
                            .instance = link->instance,
                            .execution = link->execution,
                            .expected_last = record->n == 0 ? log->found.last : facts->base + record->n - 1,
                            .bytes = buf_bytes(&link->bytes)};
    return link;
}

/* Keeps the orchestration's log lines until the record is committed: before that nothing of the turn is
 * visible outside. Without memory they are lost, as any line is. */
static void keep_lines(struct link *link, const struct turn_log *lines, size_t n)
{
    arena_init(&link->arena, SIZE_MAX / 2);
    link->lines = arena_array(&link->arena, n, sizeof *link->lines);
    for (size_t i = 0; i < n && link->lines != NULL; i++) {
        link->lines[i].level = lines[i].level;
        if (arena_dup(&link->arena, lines[i].text, &link->lines[i].text) != THOLE_OK)
            link->lines = NULL;
    }
    link->lines_len = link->lines == NULL ? 0 : n;
}

/* Number of the turn's events, from @p first on, that one record holds; at least one, if there are any. */
static size_t events_of_a_record(const struct turn *turn, size_t first, size_t room)
{
    size_t bytes = 0, n = 0;
    while (first + n < turn->events_len) {
        size_t const more = event_room_bytes(&turn->events[first + n]);
        if (n > 0 && (bytes + more > room || n == RECORD_EVENTS_MAX))
            break;
        bytes += more;
        n++;
    }
    return n;
}

size_t log_append_turn(struct partition_log *log, const struct turn *turn, const struct turn_log *lines,
                       size_t lines_len, const struct log_saying *saying, void *tag)
{
    size_t const record_max = log->env->options.record_max;
    size_t const overhead = RECORD_OVERHEAD + turn->instance.len + turn->blocked_text.len +
                            turn->trace.parent.len + turn->trace.list.len + turn->orchestration.len +
                            position_bytes_max(&saying->position);
    size_t const room = overhead < record_max ? record_max - overhead : 0;
    size_t first = 0, records = 0;
    assert(turn->instance.len > 0 && !turn->more);
    do {
        size_t const n = events_of_a_record(turn, first, room);
        bool const last = first + n == turn->events_len;
        struct record record = {.kind = RECORD_TURN, .turn = *turn};
        record.turn.events = turn->events + first;
        record.turn.events_len = n;
        record.turn.more = !last;
        struct link *link = chain_append(log, &record, saying, last, tag);
        records += link != NULL;
        if (link != NULL && last && lines_len > 0)
            keep_lines(link, lines, lines_len);
        first += n;
    } while (first < turn->events_len && !log->env->nomem);
    return records;
}

void log_append_deletion(struct partition_log *log, const struct deletion *deletion,
                         const struct log_saying *saying, void *tag)
{
    struct record record = {.kind = RECORD_DELETED, .deletion = *deletion};
    assert(deletion->instance.len > 0);
    (void)chain_append(log, &record, saying, true, tag);
}

void log_append_position(struct partition_log *log, const struct log_saying *saying)
{
    struct record record = {.kind = RECORD_POSITION};
    (void)chain_append(log, &record, saying, true, NULL);
}

uint64_t log_append_folded(struct partition_log *log, const struct folded *folded,
                           const struct log_saying *saying)
{
    struct record record = {.kind = RECORD_POSITION, .folded = *folded};
    uint64_t const sequence = log->facts.base + log->facts.next_n;
    assert(folded->len > 0);
    (void)chain_append(log, &record, saying, true, NULL);
    return sequence;
}

/* The database may know epochs that the log has lost: their numbers must not be used again. */
void log_begin(struct partition_log *log, uint64_t epoch_above, const struct log_saying *saying)
{
    struct record record = {.kind = RECORD_EPOCH_OPENED,
                            .node = log->env->options.node,
                            .time_ms = log->env->now_ms,
                            .previous_epoch = log->found_epoch,
                            .previous_n = log->found_n,
                            .counted = log->found_counted};
    log_become(log, LOG_OPENING);
    log->facts.epoch = (log->found_epoch > epoch_above ? log->found_epoch : epoch_above) + 1;
    (void)chain_append(log, &record, saying, true, NULL);
    arena_release(&log->found_arena);
    log->found.position = (struct position){0};
}

/* --- answers ------------------------------------------------------------------------------------- */

/* Which records are committed is known only when all records before the failed one are answered. */
static void settle_failure(struct partition_log *log)
{
    if (log->facts.in_flight == 0 || log_link(log, 0)->n == log->failed_n)
        log_become(log, LOG_LOST);
}

void log_append_failed(struct partition_log *log, uint64_t n, const char *why)
{
    bool const failing = log->state == LOG_FAILING;
    if (log->facts.in_flight == 0 || log->state == LOG_LOST || n < log_link(log, 0)->n ||
        (failing && n >= log->failed_n))
        return;
    keep_why(log, why != NULL ? why : "an append was refused or not answered");
    if (!failing)
        log_become(log, LOG_FAILING);
    log->failed_n = n;
    settle_failure(log);
}

void log_appended(struct partition_log *log, uint64_t n, uint64_t sequence)
{
    if (log->facts.in_flight == 0 || log->state == LOG_LOST)
        return;
    uint64_t const first = log_link(log, 0)->n;
    if (n < first || n - first >= log->facts.in_flight)
        return;
    if (n == 0)
        log->facts.base = sequence;
    if (sequence != log->facts.base + n) {
        log_lose(log, "a record was stored at an unexpected sequence");
        return;
    }
    if (log->state == LOG_FAILING && n >= log->failed_n)
        return; /* stored after a gap: void */
    log_link(log, (size_t)(n - first))->acked = true;
    if (n == 0 && log->state == LOG_OPENING)
        log_become(log, LOG_OPEN);
}

/* The prefix rule: takes from the front what is acknowledged without a gap. */
bool log_take_committed(struct partition_log *log, struct log_committed *ret)
{
    struct log_facts *facts = &log->facts;
    chain_link_release(&log->taken);
    if (facts->in_flight == 0 || !log_link(log, 0)->acked || log->state == LOG_LOST || log->env->nomem) {
        if (log->state == LOG_FAILING)
            settle_failure(log);
        return false;
    }
    log->taken = *log_link(log, 0);
    *log_link(log, 0) = (struct link){0};
    log->head = (log->head + 1) % log->cap;
    facts->in_flight--;
    struct link *link = &log->taken;
    assert(facts->in_flight_bytes >= link->bytes.len);
    facts->in_flight_bytes -= link->bytes.len;
    assert(log->state != LOG_FAILING || link->n < log->failed_n);
    assert(link->n == 0 || link->n == facts->committed_n + 1);
    facts->committed_n = link->n;
    facts->floor = link->floor;
    facts->confirmed_seq = facts->base + link->committed;
    *ret = (struct log_committed){.n = link->n,
                                  .sequence = facts->base + link->n,
                                  .bytes = buf_bytes(&link->bytes),
                                  .tag = link->tag,
                                  .instance = link->instance,
                                  .execution = link->execution,
                                  .lines = link->lines,
                                  .lines_len = link->lines_len};
    return true;
}
