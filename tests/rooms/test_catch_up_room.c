/* The projection of a partition that opens, over each short log: who is answered all that he asks gets on. */
#include "projection_stand.h"

enum { LOG_MAX = 4, STEPS_MAX = 60 };

enum kind { KIND_POSITION, KIND_PART, KIND_TURN, KIND_WORK, KIND_DELETED, KIND_DAMAGED, KINDS_LEN };

/* The record in that place, each of its own instance. */
static thole_slice record_of(struct stand *s, enum kind kind, uint64_t n)
{
    char name[24];
    (void)snprintf(name, sizeof name, "i%llu", (unsigned long long)n);
    struct record record = {.kind = RECORD_POSITION, .epoch = 2, .n = n};
    if (kind == KIND_DAMAGED)
        return THOLE_STR("\xff\xff");
    if (kind == KIND_DELETED) {
        record.kind = RECORD_DELETED;
        record.deletion = (struct deletion){.instance = thole_slice_from(name), .execution = 1};
    } else if (kind != KIND_POSITION) {
        record.kind = RECORD_TURN;
        record.turn = (struct turn){.instance = thole_slice_from(name),
                                    .execution = 1,
                                    .number = 1,
                                    .ran = true,
                                    .more = kind == KIND_PART,
                                    .events = start_and_work,
                                    .events_len = kind == KIND_WORK ? 2 : 1};
    }
    return encode(s, &record);
}

struct opening {
    struct stand *s;
    struct log_record log[LOG_MAX];
    struct rows_state rows;
    bool busy; /* the database, when it is looked at next */
};

static void answer(struct opening *o, const struct partition_out *out)
{
    struct projection *const p = o->s->projection;
    switch (out->kind) {
    case PARTITION_OUT_STORE_OPEN:
        projection_store_opened(p, &(struct in_store_opened){.epoch = 3, .rows = o->rows});
        break;
    case PARTITION_OUT_STORE_RESET:
        projection_store_reset(p, &(struct in_store_reset){.rows = {.batches = 1}});
        break;
    case PARTITION_OUT_READ_LOG: {
        uint64_t const from = out->read_log.from, to = out->read_log.to;
        projection_log(p, &(struct in_log){o->log + from - 1, (size_t)(to - from + 1)});
        break;
    }
    case PARTITION_OUT_READ_RESULTS:
        projection_results(p, &(struct in_results){0}, &(struct progress){0});
        break;
    case PARTITION_OUT_APPLY:
        batch_destroy(out->apply.batch);
        projection_applied(p, &(struct in_applied){0});
        break;
    case PARTITION_OUT_PUBLISH_WORK: projection_published(p, out->token, 70); break;
    case PARTITION_OUT_SEND: projection_sent(p, out->token); break;
    default: break;
    }
}

/* The host's part: a step after each answer. What waits for the database gets its step when it is free. */
static void drive(struct opening *o)
{
    struct partition_out outs[16];
    size_t n = 1;
    bool rows_wait = false;
    for (int steps = 0; (n > 0 || rows_wait) && steps < STEPS_MAX; steps++) {
        rows_wait = projection_pump(o->s->projection, !o->busy);
        o->busy = !o->busy;
        projection_check(o->s->projection);
        for (n = 0; n < ARRAY_LEN(outs) && env_poll(&o->s->env, &outs[n]); n++)
            answer(o, &outs[n]);
    }
}

static void open_over(const enum kind *kinds, size_t len, uint64_t projected, uint64_t published,
                      size_t chunk)
{
    struct opening o = {.s = begin(), .busy = published > 0};
    char text[128];
    (void)snprintf(text, sizeof text, "%zu records %d %d %d %d, rows up to %llu, chunks of %zu", len,
                   kinds[0], kinds[1], kinds[2], kinds[3], (unsigned long long)projected, chunk);
    for (size_t i = 0; i < len; i++)
        o.log[i] = (struct log_record){.sequence = i + 1, .bytes = record_of(o.s, kinds[i], i + 1)};
    if (projected > 0)
        o.rows.projected = (struct projected){projected, projected_mark(o.log[projected - 1].bytes)};
    o.s->env.options.log_chunk = chunk;
    struct projection_start const start = {
        .epoch = 3, .base = len + 1, .tail_last = len, .published = published, .inbox_from = 5};
    projection_open(o.s->projection, &start);
    drive(&o);
    CHECK_STR(text, projection_state(o.s->projection) == PROJECTION_CURRENT ? "current" : "it stands still",
              "current");
    CU_ASSERT_EQUAL(projection_projected(o.s->projection), len);
    end(o.s);
}

static void test_who_is_answered_gets_on(void)
{
    static const size_t chunks[] = {1, 2, 100};
    for (size_t len = 0; len <= 3; len++) {
        size_t logs = 1;
        for (size_t i = 0; i < len; i++)
            logs *= KINDS_LEN;
        for (size_t log = 0; log < logs; log++) {
            enum kind const kinds[LOG_MAX] = {(enum kind)(log % KINDS_LEN),
                                              (enum kind)(log / KINDS_LEN % KINDS_LEN),
                                              (enum kind)(log / KINDS_LEN / KINDS_LEN)};
            for (uint64_t projected = 0; projected <= len; projected++)
                for (size_t c = 0; c < ARRAY_LEN(chunks); c++)
                    open_over(kinds, len, projected, projected / 2, chunks[c]);
        }
    }
}

/* A batch that changes no row is full: later ones go in the same step. */
static void test_a_batch_without_rows_keeps_nothing(void)
{
    struct stand *s = begin_current();
    struct projection_turns made;
    struct record const position = {.kind = RECORD_POSITION, .epoch = 3, .n = 1};
    projection_record(s->projection, encode(s, &position), BASE + 1, NULL, &made);
    (void)project_apart(s->projection);
    (void)commit(s, 2, start_and_work, 1);
    check_said(s, "the rows behind it", "started 1, apply 1");
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "done", "");
    CU_ASSERT_EQUAL(projection_done(s->projection), BASE + 2);
    end(s);
}

static const struct thole_test tests[] = {
    {"catching up: who is answered gets on", test_who_is_answered_gets_on},
    {"catching up: a batch without rows keeps nothing", test_a_batch_without_rows_keeps_nothing},
};
THOLE_TEST_MAIN("catch up room", tests)
