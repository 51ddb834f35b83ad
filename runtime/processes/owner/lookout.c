#include "lookout.h"
#include "blockers.h"
#include "crowd.h"
#include "engine.h"
#include "intruders.h"
#include "job_thread.h"
#include "log.h"
#include "memory.h"
#include "overview.h"
#include "postgres.h"
#include "schema_look.h"
#include "standing_count.h"
#include "storage_room.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_MS = 4000,
    LOOK_LEAST_MS = 1000, /* between two */
    LEAST_SHARE = 2,      /* likewise, as a multiple of the last look's time */
    LOOK_SHARE = 10,
    SAY_AGAIN_MS = 60000,
    TABLES_MS = 5000,
    TABLES_MS_MAX = 10000, /* while no activity is open */
    TABLES_TIMEOUT_MS = 5000,
    DEFECTS_MAX = 200,
    TEXT_BYTES_MAX = 2000,
    MENDED_MAX = 32, /* the last ones */
    MENDED_TOLD_MS = 10 * 60 * 1000,
    DATABASE_MS = 60 * 1000, /* between two looks at its size */
    CROWD_MS = 60 * 1000,    /* between two counts of names */
    INTRUDED_TOLD_MS = 10 * 60 * 1000,
    CROWD_SIGHTINGS_MAX = 8, /* of those that are told */
};

struct sighting {
    struct defect defect;
    uint64_t since_ms, said_ms; /* wall clock; monotonic */
};

struct lookout {
    struct engine_host *engine;
    struct metric_cells *cells;
    struct job_thread thread;
    atomic_bool running;
    bool no_queues;             /* the user may not list the consumers */
    bool no_stores;             /* the user may not see the stores that not every namespace has */
    bool cannot;                /* the last look failed, and that was logged */
    uint64_t work_created_ns;   /* 0: not known yet */
    uint64_t tables_ms;         /* when it looked at them; monotonic */
    struct postgres *pg;        /* NULL: there is no connection */
    struct sighting *of_tables; /* missing tables that could not be made again */
    size_t of_tables_len;
    struct sighting of_limits[CROWD_SIGHTINGS_MAX];
    size_t of_limits_len;
    uint64_t limits_ms;           /* when it looked at them; monotonic; 0: never */
    bool no_limits;               /* the user may not see them */
    struct sighting of_intruders; /* intruders found last */
    uint64_t intruded_ms;         /* when; monotonic; 0: never */
    uint64_t intruded;            /* how many messages, since then */
    uint64_t intruders_ms;        /* when it looked for consumers that deliver there */
    struct intruder intruder;     /* the last one that was removed */
    uint64_t intruder_ms;         /* when; 0: never */
    struct sighting *found;       /* by the look under way */
    size_t found_len;
    pthread_mutex_t lock; /* guards what has been seen, written by this thread */
    struct sighting *seen;
    size_t seen_len;
    struct mended { /* a ring */
        enum defect_object object;
        char name[DEFECT_NAME_BYTES];
        uint64_t at_ms; /* wall clock; 0: nothing */
    } mended[MENDED_MAX];
    size_t mended_next;
    struct room room;
    bool no_account; /* the user may not see how full the account is */
    uint64_t database_ms;
    struct standing_count standing;
    uint64_t waited_ms; /* of this look, which the next one is not put off by: for consumers without a leader
                           (servers wait four seconds), for locks of tables */
};

/* ---- findings of a look ---- */

static void lookout_on_defect(void *arg, const struct defect *defect)
{
    struct lookout *const lookout = arg;
    if (lookout->found_len < DEFECTS_MAX)
        lookout->found[lookout->found_len++] =
            (struct sighting){.defect = *defect, .since_ms = clock_wall_ms()};
}

/* The tables, and what does not belong into histories, were looked at before. */
static void begin_found(struct lookout *lookout)
{
    memcpy(lookout->found, lookout->of_tables, lookout->of_tables_len * sizeof *lookout->found);
    lookout->found_len = lookout->of_tables_len;
    if (lookout->intruded_ms != 0 && lookout->found_len < DEFECTS_MAX)
        lookout->found[lookout->found_len++] = lookout->of_intruders;
}

static void on_limit(void *arg, const struct defect *defect)
{
    struct lookout *const lookout = arg;
    if (lookout->of_limits_len < CROWD_SIGHTINGS_MAX)
        lookout->of_limits[lookout->of_limits_len++] =
            (struct sighting){.defect = *defect, .since_ms = clock_wall_ms()};
}

/* Not with each look: of a full account there are many names. */
static void look_at_limits(struct lookout *lookout)
{
    uint64_t const now_ms = clock_monotonic_ms();
    if (!lookout->no_limits && (lookout->limits_ms == 0 || now_ms - lookout->limits_ms >= CROWD_MS)) {
        lookout->limits_ms = now_ms;
        lookout->of_limits_len = 0;
        thole_status const status =
            crowd_look(lookout->engine->connection, &lookout->engine->topology, on_limit, lookout, NULL);
        lookout->no_limits = status == THOLE_DENIED;
        lookout->waited_ms += clock_monotonic_ms() - now_ms;
    }
    for (size_t i = 0; i < lookout->of_limits_len; i++)
        lookout_on_defect(lookout, &lookout->of_limits[i].defect);
}

static thole_status look_queues(struct lookout *lookout, thole_error *reterr)
{
    if (lookout->no_queues)
        return THOLE_OK;
    uint64_t const begun_ms = clock_monotonic_ms();
    thole_status const status = topology_look_queues(lookout->engine->connection, &lookout->engine->topology,
                                                     lookout_on_defect, lookout, reterr);
    lookout->waited_ms += clock_monotonic_ms() - begun_ms;
    lookout->no_queues = status == THOLE_DENIED;
    return status == THOLE_DENIED ? THOLE_OK : status;
}

static thole_status look_stores(struct lookout *lookout, struct topology_seen *seen, thole_error *reterr)
{
    if (lookout->no_stores)
        return THOLE_OK;
    thole_status const status = topology_look_stores(lookout->engine->connection, &lookout->engine->topology,
                                                     seen, lookout_on_defect, lookout, reterr);
    lookout->no_stores = status == THOLE_DENIED;
    if (lookout->no_stores)
        log_line(
            LOG_LEVEL_WARN, "lookout",
            "this user may not see whether legal holds and other stores are lost: give it what thole doctor "
            "--nats-permissions engine prints");
    return status == THOLE_DENIED ? THOLE_OK : status;
}

static thole_status lookout_look(struct lookout *lookout, struct topology_seen *ret, thole_error *reterr)
{
    struct engine_host *const engine = lookout->engine;
    begin_found(lookout);
    THOLE_TRY(topology_look(engine->connection, &engine->topology, ret, lookout_on_defect, lookout, reterr));
    THOLE_TRY(topology_look_keys(engine->connection, &engine->topology, lookout_on_defect, lookout, reterr));
    look_at_limits(lookout);
    THOLE_TRY(look_stores(lookout, ret, reterr));
    return look_queues(lookout, reterr);
}

/* ---- parts that were made again ---- */

static void note_mended(struct lookout *lookout, const struct defect *defect)
{
    metric_count(lookout->cells, METRIC_ENGINE_MENDED, defect->object, 1);
    (void)pthread_mutex_lock(&lookout->lock);
    struct mended *const mended = &lookout->mended[lookout->mended_next++ % MENDED_MAX];
    mended->object = defect->object;
    mended->at_ms = clock_wall_ms();
    (void)snprintf(mended->name, sizeof mended->name, "%s", defect->name);
    (void)pthread_mutex_unlock(&lookout->lock);
}

void lookout_mended_json(struct lookout *lookout, struct json *json)
{
    uint64_t const now_ms = clock_wall_ms();
    json_array(json);
    (void)pthread_mutex_lock(&lookout->lock);
    for (size_t i = 0; i < MENDED_MAX; i++) {
        const struct mended *const mended = &lookout->mended[i];
        if (mended->at_ms == 0 || now_ms - mended->at_ms > MENDED_TOLD_MS)
            continue;
        json_object(json);
        json_member_text(json, "object", defect_objects[mended->object]);
        json_member_text(json, "name", mended->name);
        json_member_number(json, "at_ms", mended->at_ms);
        json_end(json);
    }
    (void)pthread_mutex_unlock(&lookout->lock);
    json_end(json);
}

/* ---- tables ---- */

static void on_part(void *arg, const struct defect *defect)
{
    struct lookout *const lookout = arg;
    if (lookout->of_tables_len < DEFECTS_MAX)
        lookout->of_tables[lookout->of_tables_len++] =
            (struct sighting){.defect = *defect, .since_ms = clock_wall_ms()};
}

static size_t lookout_count_missing(const struct lookout *lookout)
{
    size_t n = 0;
    for (size_t i = 0; i < lookout->of_tables_len; i++)
        n += lookout->of_tables[i].defect.weight == DEFECT_REFUSED;
    return n;
}

static thole_status open_tables(struct lookout *lookout, thole_error *reterr)
{
    const struct host_options *const options = &lookout->engine->options;
    struct postgres_options const pg = {.conninfo = options->postgres,
                                        .ns = options->ns,
                                        .application = "thole-lookout",
                                        .connect_timeout_ms = TABLES_TIMEOUT_MS,
                                        .statement_timeout_ms = TABLES_TIMEOUT_MS};
    return lookout->pg != NULL ? THOLE_OK : postgres_open(&pg, &lookout->pg, reterr);
}

/* Makes again what is missing, if the role of this engine may. Postgres tells the shards. */
static void make_tables(struct lookout *lookout)
{
    thole_error err = {.status = THOLE_OK};
    char name[DEFECT_NAME_BYTES];
    (void)snprintf(name, sizeof name, "%s", lookout->of_tables[0].defect.name);
    size_t const missing = lookout_count_missing(lookout);
    if (missing == 0)
        return;
    if (postgres_migrate(lookout->pg, &err) != THOLE_OK) {
        log_line(LOG_LEVEL_WARN, "lookout", "%s is missing and cannot be made again now: %s", name, err.text);
        return;
    }
    log_line(LOG_LEVEL_WARN, "lookout",
             "%s was missing and is made again: its rows, if it had any, are filled from the histories (%zu "
             "parts of tables were missing)",
             name, missing);
    for (size_t i = 0; i < lookout->of_tables_len; i++)
        if (lookout->of_tables[i].defect.weight == DEFECT_REFUSED)
            note_mended(lookout, &lookout->of_tables[i].defect);
    lookout->of_tables_len = 0;
}

static void look_at_database(struct lookout *lookout)
{
    uint64_t const now_ms = clock_monotonic_ms();
    uint64_t bytes = 0;
    if (lookout->pg == NULL || (lookout->database_ms != 0 && now_ms - lookout->database_ms < DATABASE_MS))
        return;
    lookout->database_ms = now_ms;
    if (postgres_database_bytes(lookout->pg, &bytes, NULL) != THOLE_OK)
        return;
    (void)pthread_mutex_lock(&lookout->lock);
    room_take_database(&lookout->room, bytes, now_ms);
    (void)pthread_mutex_unlock(&lookout->lock);
}

static void on_blocker(void *arg, const struct blocker *blocker)
{
    const struct lookout *const lookout = arg;
    metric_count(lookout->cells, METRIC_ENGINE_BLOCKERS_ENDED, 0, 1);
    log_line(LOG_LEVEL_WARN, "lookout",
             "a session of role %.*s (process %" PRIu64 " of Postgres, from %.*s, application %.*s) had a "
             "transaction open for %" PRIu64 " ms that engines waited for: it was ended",
             THOLE_FMT(blocker->role), blocker->pid,
             THOLE_FMT(blocker->address.len > 0 ? blocker->address : THOLE_STR("the same machine")),
             THOLE_FMT(blocker->application.len > 0 ? blocker->application : THOLE_STR("unnamed")),
             blocker->held_ms);
}

/* ---- messages that do not belong into histories ---- */

static void on_intruder(void *arg, const struct intruder *removed)
{
    struct lookout *const lookout = arg;
    metric_count(lookout->cells, METRIC_ENGINE_INTRUDERS, 0, 1);
    log_line(LOG_LEVEL_WARN, "lookout",
             "consumer %s of stream %s delivered to %s, where no consumer may: it is removed. Who may create "
             "consumers of that stream?",
             removed->name, removed->stream, removed->deliver);
    lookout->intruder = *removed;
    lookout->intruder_ms = clock_monotonic_ms();
}

static bool is_told_still(uint64_t at_ms)
{
    return at_ms != 0 && clock_monotonic_ms() - at_ms <= INTRUDED_TOLD_MS;
}

static void say_intruder(struct lookout *lookout)
{
    struct defect *const defect = &lookout->of_intruders.defect;
    const struct intruder *const removed = &lookout->intruder;
    if (is_told_still(lookout->intruder_ms))
        (void)snprintf(
            defect->remedy, sizeof defect->remedy,
            "take the right to create consumers of stream %s from who has made %s, which delivered "
            "to %s and is removed",
            removed->stream, removed->name, removed->deliver);
    else
        (void)snprintf(
            defect->remedy, sizeof defect->remedy,
            "no consumer of the namespace's streams delivers them: who may create consumers, or ask "
            "JetStream with any reply subject, in this account? docs/operations.md, Accounts");
}

/* A text that stays the same for a while: 0, 10, 100, … */
static uint64_t more_than(uint64_t n)
{
    uint64_t most = 1;
    while (most <= n / 10)
        most *= 10;
    return most == 1 ? 0 : most;
}

static void begin_intruders(struct lookout *lookout)
{
    struct defect *const defect = &lookout->of_intruders.defect;
    lookout->of_intruders = (struct sighting){.defect = {.object = DEFECT_HIST, .weight = DEFECT_WARNS},
                                              .since_ms = clock_wall_ms()};
    (void)snprintf(defect->field, sizeof defect->field, "messages that were not published to it:");
    (void)snprintf(defect->needed, sizeof defect->needed, "none");
}

static void note_intruded(struct lookout *lookout, uint64_t more)
{
    struct defect *const defect = &lookout->of_intruders.defect;
    if (lookout->intruded_ms == 0)
        begin_intruders(lookout);
    lookout->intruded_ms = clock_monotonic_ms();
    lookout->intruded += more;
    defect->p = atomic_load(&lookout->engine->intruded_p);
    (void)snprintf(defect->name, sizeof defect->name, "stream THOLE_%s_HIST_%" PRIu32,
                   lookout->engine->topology.ns, defect->p);
    (void)snprintf(defect->found, sizeof defect->found, "more than %" PRIu64, more_than(lookout->intruded));
    metric_count(lookout->cells, METRIC_ENGINE_FOREIGN, 0, more);
}

/* When messages were found, and once a minute, by one engine: they may be delivered into another namespace.
 */
static void look_at_intruders(struct lookout *lookout, bool first)
{
    struct engine_host *const engine = lookout->engine;
    uint64_t const more = atomic_exchange(&engine->intruded, 0), now_ms = clock_monotonic_ms();
    thole_error err = {.status = THOLE_OK};
    if (more > 0)
        note_intruded(lookout, more);
    else if (!is_told_still(lookout->intruded_ms))
        lookout->intruded_ms = lookout->intruded = 0;
    if (more == 0 && (!first || (lookout->intruders_ms != 0 && now_ms - lookout->intruders_ms < CROWD_MS)))
        return;
    lookout->intruders_ms = now_ms;
    thole_status const status =
        intruders_remove(engine->connection, &engine->topology, on_intruder, lookout, &err);
    if (status != THOLE_OK && status != THOLE_UNAVAILABLE)
        log_line(LOG_LEVEL_WARN, "lookout", "cannot look who delivers into the histories: %s", err.text);
    say_intruder(lookout);
    lookout->waited_ms += clock_monotonic_ms() - now_ms;
}

static void look_at_tables(struct lookout *lookout)
{
    uint64_t const now_ms = clock_monotonic_ms();
    bool const busy = partition_states_busy(lookout->engine->states);
    thole_error err = {.status = THOLE_OK};
    if (now_ms - lookout->tables_ms < (busy || lookout->of_tables_len > 0 ? TABLES_MS : TABLES_MS_MAX))
        return;
    lookout->tables_ms = now_ms;
    lookout->of_tables_len = 0;
    if (open_tables(lookout, &err) != THOLE_OK) /* the stores say that Postgres is away */
        return;
    thole_status const ignored = blockers_end(lookout->pg, on_blocker, lookout, NULL);
    (void)ignored; /* blockers are found the next time */
    if (schema_look(lookout->pg, on_part, lookout, &err) == THOLE_OK)
        make_tables(lookout);
    look_at_database(lookout);
    lookout->waited_ms += clock_monotonic_ms() - now_ms;
}

/* Only while metrics are being read: an idle engine asks Postgres nothing. */
static void look_at_standing(struct lookout *lookout)
{
    if (standing_count_is_due(&lookout->standing, lookout->cells, clock_monotonic_ms()) &&
        open_tables(lookout, NULL) == THOLE_OK)
        standing_count_look(&lookout->standing, lookout->pg, lookout->cells);
}

/* ---- making parts again ---- */

/* Without its settings the namespace itself is lost, or the store is another one: nothing may be made. */
static bool is_whole(const struct lookout *lookout)
{
    for (size_t i = 0; i < lookout->found_len; i++)
        if (lookout->found[i].defect.object == DEFECT_CONFIG ||
            lookout->found[i].defect.object == DEFECT_SECRET)
            return false;
    return true;
}

static const char *what_follows(enum defect_object object)
{
    switch (object) {
    case DEFECT_WORK: return "the activities that wait or run are queued again from their rows";
    case DEFECT_NODES: return "the engines store their heartbeats again";
    case DEFECT_CRASHES: return "crashes of code are counted from the beginning";
    case DEFECT_REJECTED: return "the rejected messages that it kept are lost";
    case DEFECT_EVENTS: return "the CloudEvents in it that nobody had read are lost";
    default: return "what was in it is lost";
    }
}

/* True: it was made again. */
static bool make_again(struct lookout *lookout, const struct defect *defect)
{
    thole_error err = {.status = THOLE_OK};
    if (topology_mend(lookout->engine->connection, &lookout->engine->topology, defect, &err) != THOLE_OK) {
        log_line(LOG_LEVEL_WARN, "lookout", "%s is missing and cannot be made again now: %s", defect->name,
                 err.text);
        return false;
    }
    log_line(LOG_LEVEL_WARN, "lookout", "%s was missing and is made again: %s", defect->name,
             what_follows(defect->object));
    note_mended(lookout, defect);
    return true;
}

/* This engine knows the key, whatever happened to the bucket: nothing is lost while it runs. */
static bool keep_key(struct lookout *lookout)
{
    const struct defect *gone = NULL;
    thole_error err = {.status = THOLE_OK};
    for (size_t i = 0; i < lookout->found_len; i++) {
        const struct defect *const defect = &lookout->found[i].defect;
        if (defect->object == DEFECT_CONFIG)
            return false;
        if (defect->object == DEFECT_SECRET && (defect->field[0] == '\0' || defect->cure == CURE_ENGINE))
            gone = defect;
    }
    if (gone == NULL)
        return false;
    if (topology_keep_key(lookout->engine->connection, &lookout->engine->topology, &err) != THOLE_OK) {
        log_line(LOG_LEVEL_WARN, "lookout", "the key of nonces is gone and cannot be stored again now: %s",
                 err.text);
        return false;
    }
    log_line(LOG_LEVEL_WARN, "lookout",
             "the key of nonces was gone and is stored again, as this engine knows it: who has removed it?");
    note_mended(lookout, gone);
    return true;
}

static bool make_missing(struct lookout *lookout)
{
    bool made = keep_key(lookout);
    for (size_t i = 0; i < lookout->found_len && is_whole(lookout); i++)
        if (lookout->found[i].defect.cure == CURE_ENGINE)
            made |= make_again(lookout, &lookout->found[i].defect);
    return made;
}

/* Messages of the former stream are queued again from the rows. */
static void take_work(struct lookout *lookout, uint64_t created_ns)
{
    struct engine_host *const engine = lookout->engine;
    bool const anew =
        created_ns != 0 && lookout->work_created_ns != 0 && created_ns != lookout->work_created_ns;
    if (created_ns != 0)
        lookout->work_created_ns = created_ns;
    for (size_t i = 0; anew && i < engine->shards_len; i++)
        shard_send(&engine->shards[i], shard_mail_create(SHARD_WORK_ANEW, 0, sizeof(struct shard_mail)));
}

/* ---- log lines ---- */

static void say_defect(const struct defect *defect)
{
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    defect_text(defect, &text);
    log_line(defect->weight == DEFECT_WARNS ? LOG_LEVEL_WARN : LOG_LEVEL_ERROR, "lookout", "%s; try: %s",
             buf_cstr(&text), defect->remedy);
    buf_release(&text);
}

static struct sighting *find_seen(struct sighting *all, size_t n, const struct defect *defect)
{
    for (size_t i = 0; i < n; i++)
        if (defect_equal(&all[i].defect, defect))
            return &all[i];
    return NULL;
}

/* Each difference when it is new, and again while it lasts. */
static void say_found(struct lookout *lookout)
{
    uint64_t const now_ms = clock_monotonic_ms();
    for (size_t i = 0; i < lookout->found_len; i++) {
        struct sighting *const found = &lookout->found[i];
        const struct sighting *const before = find_seen(lookout->seen, lookout->seen_len, &found->defect);
        found->said_ms = now_ms;
        if (before != NULL)
            found->since_ms = before->since_ms;
        if (before != NULL && now_ms - before->said_ms < SAY_AGAIN_MS)
            found->said_ms = before->said_ms;
        else
            say_defect(&found->defect);
    }
    for (size_t i = 0; i < lookout->seen_len; i++)
        if (find_seen(lookout->found, lookout->found_len, &lookout->seen[i].defect) == NULL)
            log_line(LOG_LEVEL_INFO, "lookout", "%s is as it must be again%s%s", lookout->seen[i].defect.name,
                     lookout->seen[i].defect.field[0] == '\0' ? "" : ": ", lookout->seen[i].defect.field);
}

static void keep_found(struct lookout *lookout)
{
    uint64_t counts[DEFECT_OBJECTS] = {0};
    (void)pthread_mutex_lock(&lookout->lock);
    struct sighting *const before = lookout->seen;
    lookout->seen = lookout->found;
    lookout->seen_len = lookout->found_len;
    lookout->found = before;
    lookout->found_len = 0;
    (void)pthread_mutex_unlock(&lookout->lock);
    for (size_t i = 0; i < lookout->seen_len; i++)
        counts[lookout->seen[i].defect.object]++;
    for (size_t object = 0; object < DEFECT_OBJECTS; object++)
        metric_set(lookout->cells, METRIC_ENGINE_DEFECTS, object, counts[object]);
}

void lookout_json(struct lookout *lookout, struct json *json)
{
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    json_array(json);
    (void)pthread_mutex_lock(&lookout->lock);
    for (size_t i = 0; i < lookout->seen_len; i++) {
        const struct defect *const defect = &lookout->seen[i].defect;
        buf_clear(&text);
        defect_text(defect, &text);
        json_object(json);
        json_member_text(json, "object", defect_objects[defect->object]);
        json_member_text(json, "text", buf_cstr(&text));
        json_member_text(json, "remedy", defect->remedy);
        json_member_bool(json, "warns", defect->weight == DEFECT_WARNS);
        json_member_number(json, "since_ms", lookout->seen[i].since_ms);
        json_end(json);
    }
    (void)pthread_mutex_unlock(&lookout->lock);
    json_end(json);
    buf_release(&text);
}

/* ---- room ---- */

static void look_at_room(struct lookout *lookout, const struct topology_seen *seen)
{
    uint64_t const now_ms = clock_monotonic_ms();
    struct overview_room account = {.file_bytes = 0};
    thole_status const status = lookout->no_account
                                    ? THOLE_DENIED
                                    : overview_account(lookout->engine->connection,
                                                       lookout->engine->topology.replicas, &account, NULL);
    lookout->no_account = status == THOLE_DENIED;
    (void)pthread_mutex_lock(&lookout->lock);
    room_take_streams(&lookout->room, seen, now_ms);
    if (status == THOLE_OK)
        room_take_account(&lookout->room, account.file_bytes, account.file_bytes_max, now_ms);
    (void)pthread_mutex_unlock(&lookout->lock);
    room_count(&lookout->room, lookout->cells);
}

/* Another engine looks: what this one knew is old. */
static void leave_room(struct lookout *lookout)
{
    (void)pthread_mutex_lock(&lookout->lock);
    lookout->room = (struct room){.limits_len = 0};
    (void)pthread_mutex_unlock(&lookout->lock);
    room_count(&lookout->room, lookout->cells);
}

void lookout_room_json(struct lookout *lookout, struct json *json)
{
    (void)pthread_mutex_lock(&lookout->lock);
    room_json(&lookout->room, json);
    (void)pthread_mutex_unlock(&lookout->lock);
}

/* ---- the thread ---- */

/* NATS being away has lines of its own. */
static void say_cannot(struct lookout *lookout, thole_status status, const thole_error *err)
{
    bool const cannot = status != THOLE_OK && status != THOLE_UNAVAILABLE;
    if (cannot && !lookout->cannot)
        log_line(LOG_LEVEL_WARN, "lookout", "cannot look at the streams: %s", err->text);
    lookout->cannot = cannot;
}

/* False: it was not answered; what was seen before stays. */
static bool look_at_all(struct lookout *lookout)
{
    struct topology_seen seen = {.looked = 0};
    thole_error err = {.status = THOLE_OK};
    thole_status status = lookout_look(lookout, &seen, &err);
    if (status == THOLE_OK && make_missing(lookout))
        status = lookout_look(lookout, &seen, &err);
    say_cannot(lookout, status, &err);
    if (status != THOLE_OK)
        return false;
    say_found(lookout);
    keep_found(lookout);
    take_work(lookout, seen.work_created_ns);
    look_at_room(lookout, &seen);
    return true;
}

static bool look_once(struct lookout *lookout)
{
    struct engine_host *const engine = lookout->engine;
    uint64_t created_ns = 0;
    look_at_tables(lookout);
    bool const first = partition_states_wanted(engine->states, 0);
    look_at_intruders(lookout, first);
    if (first)
        look_at_standing(lookout);
    else
        standing_count_leave(&lookout->standing, lookout->cells);
    if (!atomic_load(&engine->joined) || first)
        return look_at_all(lookout);
    leave_room(lookout);
    begin_found(lookout); /* another engine looks at the streams, and says it */
    say_found(lookout);
    keep_found(lookout);
    if (topology_work_created(engine->connection, engine->topology.ns, &created_ns, NULL) == THOLE_OK)
        take_work(lookout, created_ns);
    return true;
}

static uint64_t longer_ms(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Of many partitions a look takes long: then there are fewer looks. One that was not answered does not count,
 * nor does the waiting for consumers. */
static void *lookout_main(void *arg)
{
    struct lookout *const lookout = arg;
    uint64_t took_ms;
    do {
        uint64_t const begun_ms = clock_monotonic_ms();
        lookout->waited_ms = 0;
        took_ms = look_once(lookout) ? clock_monotonic_ms() - begun_ms : 0;
        took_ms -= took_ms < lookout->waited_ms ? took_ms : lookout->waited_ms;
    } while (job_thread_sleep(&lookout->thread, longer_ms(LOOK_LEAST_MS, took_ms * LEAST_SHARE)) &&
             job_thread_doze(&lookout->thread, longer_ms(LOOK_MS - LOOK_LEAST_MS, took_ms * LOOK_SHARE)));
    return NULL;
}

void lookout_hurry(struct lookout *lookout)
{
    if (lookout != NULL && atomic_load(&lookout->running))
        job_thread_hurry(&lookout->thread);
}

struct lookout *lookout_create(struct engine_host *engine)
{
    struct lookout *const lookout = memory_new(sizeof *lookout);
    lookout->engine = engine;
    lookout->cells = metrics_cells(engine->options.metrics);
    lookout->seen = memory_array(DEFECTS_MAX, sizeof *lookout->seen);
    lookout->found = memory_array(DEFECTS_MAX, sizeof *lookout->found);
    lookout->of_tables = memory_array(DEFECTS_MAX, sizeof *lookout->of_tables);
    lookout->tables_ms = clock_monotonic_ms();
    atomic_init(&lookout->running, false);
    (void)pthread_mutex_init(&lookout->lock, NULL);
    return lookout;
}

thole_status lookout_start(struct lookout *lookout, thole_error *reterr)
{
    THOLE_TRY(job_thread_start(&lookout->thread, lookout_main, lookout, "that looks at the streams", reterr));
    atomic_store(&lookout->running, true);
    return THOLE_OK;
}

void lookout_end(struct lookout *lookout)
{
    if (lookout == NULL || !atomic_load(&lookout->running))
        return;
    atomic_store(&lookout->running, false);
    job_thread_stop(&lookout->thread);
}

void lookout_release(struct lookout *lookout)
{
    if (lookout == NULL)
        return;
    metrics_return_cells(lookout->cells);
    (void)pthread_mutex_destroy(&lookout->lock);
    if (lookout->pg != NULL)
        postgres_close(lookout->pg);
    free(lookout->of_tables);
    free(lookout->seen);
    free(lookout->found);
    free(lookout);
}
