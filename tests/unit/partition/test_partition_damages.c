/*
 * One record of one instance, of each kind and with each event, is not what an owner writes: cut, with other
 * numbers, of another kind, of another instance. It was stored, and a later record says so. Its instance
 * alone may be hurt: the partition opens, another instance goes on, and the hurt one says why, is terminated
 * and deleted.
 */
#include "codec.h"
#include "partition_stage.h"
#include "samples.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>

static const thole_orchestration_entry entries[] = {{"plain", stage_calls, 0}};

/* Which record is another one. */
enum place { FIRST_TURN = 1, SECOND_TURN = 3 };
/* Records that the database has when the partition opens. */
enum projected_upto { NOTHING, ALL };

struct damage {
    const char *what;
    size_t number; /* of the variation */
    enum place place;
    enum projected_upto rows;
    thole_slice bytes;
};

static void complain(const struct damage *damage, const char *text, struct stage *s)
{
    CU_FAIL("a record hurts others, or cannot be ended");
    fprintf(stderr, "\n  %s %zu, record %d, rows %d: %s; closed: %s\n", damage->what, damage->number,
            (int)damage->place, (int)damage->rows, text, s->closed);
}

/* EpochOpened, bad's start, good's start, bad's second turn, good's second turn, which knows it to be stored.
 */
static struct stage *stage_of_two(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    stage_start(s, "bad", "plain");
    stage_start(s, "good", "plain");
    stage_tell(s, "bad", MESSAGE_EVENT, "one");
    stage_tell(s, "good", MESSAGE_EVENT, "one");
    stage_tell(s, "good", MESSAGE_EVENT, "two");
    return s;
}

static bool is_said(struct stage *s, const char *text)
{
    return strstr(stage_said(s), text) != NULL;
}

static void check_others(struct stage *s, const struct damage *damage)
{
    if (partition_state(s->p) != PARTITION_OPEN) {
        complain(damage, "the partition does not open", s);
        return;
    }
    (void)stage_said(s);
    stage_complete(s, "good", 2, THOLE_STR("done"));
    if (!is_said(s, "notice completed good"))
        complain(damage, "another instance does not go on", s);
    stage_start(s, "new", "plain");
    stage_complete(s, "new", 2, THOLE_STR("done"));
    if (!is_said(s, "notice completed new"))
        complain(damage, "a new instance does not run", s);
}

/* The damaged instance may be as before, or have ended as the record says. */
static void check_itself(struct stage *s, const struct damage *damage)
{
    stage_query(s, "bad", "where");
    if (!is_said(s, "answer "))
        complain(damage, "it does not answer", s);
    stage_tell(s, "bad", MESSAGE_TERMINATE, "give up");
    stage_query(s, "bad", "where");
    stage_message(s, &(struct message){.kind = MESSAGE_DELETE, .instance = THOLE_STR("bad"), .force = true});
    stage_settle(s);
    stage_start(s, "bad", "plain");
    stage_query(s, "bad", "where");
    if (partition_state(s->p) != PARTITION_OPEN)
        complain(damage, "its end closes the partition", s);
}

static void check_damage(const struct damage *damage)
{
    struct stage *s = stage_of_two();
    s->log[damage->place].bytes = damage->bytes;
    if (damage->rows == ALL)
        s->projected = s->applied;
    stage_again(s);
    check_others(s, damage);
    if (partition_state(s->p) == PARTITION_OPEN)
        check_itself(s, damage);
    stage_again(s); /* and so it stays */
    if (partition_state(s->p) != PARTITION_OPEN)
        complain(damage, "the partition does not open again", s);
    stage_end(s);
}

static void check_everywhere(const char *what, size_t number, enum place place, thole_slice bytes)
{
    for (int rows = NOTHING; rows <= ALL; rows++)
        check_damage(&(struct damage){what, number, place, (enum projected_upto)rows, bytes});
}

/* ---- the record as it was ---- */

struct original {
    struct arena arena;
    struct record record;
    struct buf bytes;
};

static void read_original(enum place place, struct original *ret)
{
    struct stage *s = stage_of_two();
    arena_init(&ret->arena, RECORD_BYTES_MAX);
    buf_init(&ret->bytes, RECORD_BYTES_MAX);
    buf_slice(&ret->bytes, s->log[place].bytes);
    CU_ASSERT_EQUAL_FATAL(record_decode(buf_bytes(&ret->bytes), &ret->arena, &ret->record, NULL), THOLE_OK);
    CU_ASSERT_EQUAL_FATAL(ret->record.kind, RECORD_TURN);
    stage_end(s);
}

static void release_original(struct original *of)
{
    buf_release(&of->bytes);
    arena_release(&of->arena);
}

static void check_record(const char *what, size_t number, enum place place, const struct record *record)
{
    struct buf bytes;
    buf_init(&bytes, RECORD_BYTES_MAX);
    if (record_encode(record, &bytes) == THOLE_OK)
        check_everywhere(what, number, place, buf_bytes(&bytes));
    buf_release(&bytes);
}

static const enum place places[] = {FIRST_TURN, SECOND_TURN};

/* ---- damages ---- */

static void cut_anywhere(void)
{
    for (size_t at = 0; at < ARRAY_LEN(places); at++) {
        struct original of;
        read_original(places[at], &of);
        for (size_t len = 0; len < of.bytes.len; len++)
            check_everywhere("cut at", len, places[at], (thole_slice){of.bytes.ptr, len});
        release_original(&of);
    }
}

static void one_event_of_each_kind(void)
{
    for (size_t at = 0; at < ARRAY_LEN(places); at++) {
        struct original of;
        read_original(places[at], &of);
        for (size_t i = 0; i < sample_events_len; i++) {
            struct event events[2] = {of.record.turn.events[0], sample_events[i]};
            struct record record = of.record;
            record.turn.events = events;
            for (size_t len = 1; len <= 2; len++) {
                record.turn.events_len = len;
                events[0] = len == 1 ? sample_events[i] : of.record.turn.events[0];
                events[0].id = of.record.turn.events[0].id;
                events[1].id = events[0].id + 1;
                check_record(len == 1 ? "event alone" : "event behind", i, places[at], &record);
                events[1].id = UINT64_MAX;
                check_record("event with the last id", i, places[at], &record);
            }
        }
        release_original(&of);
    }
}

/* Each number of the turn and of its events at its ends. */
static void numbers_at_their_ends(void)
{
    static const uint64_t ends[] = {0, 1, 2, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
    for (size_t at = 0; at < ARRAY_LEN(places); at++)
        for (size_t i = 0; i < ARRAY_LEN(ends); i++)
            for (int field = 0; field < 8; field++) {
                struct original of;
                read_original(places[at], &of);
                struct turn *const turn = &of.record.turn;
                struct event events[8], *const event = events;
                CU_ASSERT_TRUE_FATAL(turn->events_len >= 1 && turn->events_len <= ARRAY_LEN(events));
                memcpy(events, turn->events, turn->events_len * sizeof *events);
                if (field == 0)
                    turn->execution = ends[i];
                else if (field == 1)
                    turn->number = ends[i];
                else if (field == 2)
                    turn->time_ms = ends[i];
                else if (field == 3)
                    event->id = ends[i];
                else if (field == 4)
                    event->ref = ends[i];
                else if (field == 5)
                    event->version = (uint32_t)ends[i];
                else if (field == 6)
                    of.record.published = ends[i];
                else
                    event->due_ms = ends[i];
                turn->events = events;
                check_record("number", i * 10 + (size_t)field, places[at], &of.record);
                release_original(&of);
            }
}

static void kinds_and_names(void)
{
    for (size_t at = 0; at < ARRAY_LEN(places); at++) {
        struct original of;
        read_original(places[at], &of);
        struct record record = of.record;
        record.turn.instance = THOLE_STR("good");
        check_record("of another instance", 0, places[at], &record);
        record.turn.instance = THOLE_STR("nobody");
        check_record("of an instance that there is not", 0, places[at], &record);
        record = of.record;
        record.turn.more = true;
        check_record("a part of a turn", 0, places[at], &record);
        record = of.record;
        record.turn.ran = !record.turn.ran;
        check_record("it ran, or not", 0, places[at], &record);
        record = of.record;
        record.turn.events_len = 0;
        check_record("no event", 0, places[at], &record);
        record = of.record;
        record.kind = RECORD_POSITION;
        check_record("a position", 0, places[at], &record);
        record = of.record;
        record.kind = RECORD_DELETED;
        record.deletion = (struct deletion){.instance = THOLE_STR("bad"), .execution = 1, .time_ms = 5};
        check_record("a deletion", 0, places[at], &record);
        record.deletion.execution = UINT64_MAX;
        check_record("a deletion of the last execution", 0, places[at], &record);
        record.deletion.instance = THOLE_STR("good");
        record.deletion.execution = 0;
        check_record("a deletion of nothing of another one", 0, places[at], &record);
        release_original(&of);
    }
}

/* Tags and lengths of the encoding: what comes of it may decode or not. */
static void any_byte(void)
{
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < ARRAY_LEN(places); at++) {
        struct original of;
        read_original(places[at], &of);
        size_t const head = of.bytes.len > 24 ? 24 : 0; /* epoch and number: whose record it is */
        for (size_t i = head; i < of.bytes.len; i++)
            for (size_t k = 0; k < ARRAY_LEN(values); k++) {
                uint8_t const before = of.bytes.ptr[i];
                of.bytes.ptr[i] = values[k];
                check_everywhere("byte", i * 10 + k, places[at], buf_bytes(&of.bytes));
                of.bytes.ptr[i] = before;
            }
        release_original(&of);
    }
}

/* ---- records of the partition itself ---- */

/* The first record of that kind from @p from on. */
static size_t find_kind(const struct stage *s, enum record_kind kind, size_t from)
{
    while (from < s->log_len && s->log[from].kind != kind)
        from++;
    return from;
}

/* Two epochs, each with a position, and turns of "good" around them. */
static struct stage *stage_of_epochs(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    for (int epoch = 0; epoch < 2; epoch++) {
        if (epoch > 0)
            stage_again(s);
        stage_start(s, epoch == 0 ? "good" : "bad", "plain");
        stage_complete(s, "nobody", 2, THOLE_STR("done"));
        stage_settle(s);
        stage_tell(s, "good", MESSAGE_EVENT, "one");
        stage_tell(s, "good", MESSAGE_EVENT, "two");
    }
    return s;
}

static void check_own_record(enum record_kind kind, size_t nth, size_t cut, bool projected)
{
    struct stage *s = stage_of_epochs();
    struct damage damage = {.what = kind == RECORD_POSITION ? "position" : "epoch opened", .number = cut};
    size_t at = 0;
    for (size_t i = 0; i <= nth; i++)
        at = find_kind(s, kind, i == 0 ? 0 : at + 1);
    CU_ASSERT_FATAL(at < s->log_len);
    damage.place = (enum place)at;
    damage.rows = projected ? ALL : NOTHING;
    s->log[at].bytes.len = cut < s->log[at].bytes.len ? cut : s->log[at].bytes.len;
    if (projected)
        s->projected = s->applied;
    stage_again(s);
    check_others(s, &damage);
    if (partition_state(s->p) == PARTITION_OPEN)
        check_itself(s, &damage);
    stage_end(s);
}

static void deletions(void)
{
    for (size_t cut = 0; cut < 80; cut++)
        for (int rows = NOTHING; rows <= ALL; rows++) {
            struct stage *s = stage_of_two();
            struct damage const damage = {"deletion", cut, FIRST_TURN, (enum projected_upto)rows, {NULL, 0}};
            stage_message(
                s, &(struct message){.kind = MESSAGE_DELETE, .instance = THOLE_STR("bad"), .force = true});
            size_t const at = find_kind(s, RECORD_DELETED, 0);
            CU_ASSERT_FATAL(at < s->log_len);
            stage_tell(s, "good", MESSAGE_EVENT, "three");
            stage_tell(s, "good", MESSAGE_EVENT, "four");
            if (cut < s->log[at].bytes.len)
                s->log[at].bytes.len = cut;
            if (rows == ALL)
                s->projected = s->applied;
            stage_again(s);
            check_others(s, &damage);
            check_itself(s, &damage);
            stage_end(s);
        }
}

static void epochs_and_positions(void)
{
    for (size_t cut = 0; cut < 40; cut++)
        for (size_t nth = 0; nth < 2; nth++)
            for (int projected = 0; projected < 2; projected++) {
                check_own_record(RECORD_EPOCH_OPENED, nth, cut, projected == 1);
                check_own_record(RECORD_POSITION, nth, cut, projected == 1);
            }
}

static const struct thole_test tests[] = {
    {"cut anywhere", cut_anywhere},
    {"one event of each kind", one_event_of_each_kind},
    {"numbers at their ends", numbers_at_their_ends},
    {"kinds and names", kinds_and_names},
    {"any byte", any_byte},
    {"epochs and positions", epochs_and_positions},
    {"deletions", deletions},
};
THOLE_TEST_MAIN("partition_damages", tests)
