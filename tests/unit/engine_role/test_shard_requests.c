/* The contents of a shard's requests, and the treatment of their answers: nothing is sent. */
#include "batch.h"
#include "thole_cunit.h"
#include "wrap_shard_world.h"
#include "wrap_submitted.h"

enum { PATIENCE_MS = 3000, AWAY_MS = 30000 };

static struct {
    char again[64], published[128];
    char given[64];
    unsigned batches;
} play;

/* ---- the world ---- */

void __wrap_request_again(struct request *request, uint64_t delay_ms)
{
    CU_ASSERT_PTR_EQUAL(request, submitted_last(REQ_REJECT));
    (void)snprintf(play.again, sizeof play.again, "in %llu ms", (unsigned long long)delay_ms);
}

thole_status __wrap_requests_publish(struct requests *requests, const struct publish *publish, uint64_t token,
                                     thole_error *reterr)
{
    (void)requests;
    (void)reterr;
    CU_ASSERT_EQUAL(token, request_token(submitted_last(REQ_APPEND)));
    (void)snprintf(play.published, sizeof play.published, "%s behind %llu: %.*s", publish->subject,
                   (unsigned long long)(publish->expect_last ? publish->expected_last : 0),
                   THOLE_FMT(publish->body));
    return THOLE_OK;
}

void __wrap_shard_input(struct owned *owned, const struct partition_in *in)
{
    CU_ASSERT_PTR_EQUAL(owned, &world.owned);
    CU_ASSERT_EQUAL(in->generation, WORLD_GENERATION);
    (void)snprintf(play.given, sizeof play.given, "%s",
                   in->kind == PARTITION_IN_REJECTED ? "rejected" : "something else");
}

void __real_batch_destroy(struct batch *batch);
void __wrap_batch_destroy(struct batch *batch)
{
    play.batches++;
    __real_batch_destroy(batch);
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    shard_world_begin(request_rules);
    (void)snprintf(world.engine.topology.ns, sizeof world.engine.topology.ns, "shop");
    world.engine.topology.partitions = 8;
    world.owned.p = 3;
    buf_init(&world.shard.subject, 1024);
}

static void end(void)
{
    submitted_clear();
    buf_release(&world.shard.subject);
}

/* ---- appends ---- */

static void test_subjects_of_records(void)
{
    static const struct {
        enum record_kind kind;
        const char *published;
    } rows[] = {{RECORD_TURN, "thole.shop.hist.3.order.2 behind 12: bytes"},
                {RECORD_DELETED, "thole.shop.hist.3.order.deleted behind 12: bytes"},
                {RECORD_EPOCH_OPENED, "thole.shop.ctl.3.epoch behind 12: bytes"},
                {RECORD_POSITION, "thole.shop.ctl.3.position behind 12: bytes"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        struct partition_out const out = {.kind = PARTITION_OUT_APPEND,
                                          .generation = WORLD_GENERATION,
                                          .token = 11,
                                          .append = {.kind = rows[i].kind,
                                                     .instance = THOLE_STR("order"),
                                                     .execution = 2,
                                                     .expected_last = 12,
                                                     .bytes = THOLE_STR("bytes")}};
        log_append(&world.shard, &world.owned, &out);
        struct request *const request = submitted_last(REQ_APPEND);
        CU_ASSERT_EQUAL(append_send(request, NULL), THOLE_OK);
        CHECK_STR("a record", play.published, rows[i].published);
        CU_ASSERT_EQUAL(request->in.token, 11);
        CU_ASSERT_EQUAL(request->mail.generation, WORLD_GENERATION);
        end();
    }
}

/* A record without a subject is not stored under that of the record before. */
static void test_a_record_without_a_subject(void)
{
    struct out_append const wrong[] = {
        {.kind = RECORD_UNKNOWN, .bytes = THOLE_STR("bytes")},
        {.kind = RECORD_TURN, .instance = THOLE_STR(""), .execution = 2, .bytes = THOLE_STR("bytes")}};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        thole_error error = {.status = THOLE_OK};
        begin();
        buf_text(&world.shard.subject, "thole.shop.hist.3.another.1");
        struct partition_out const out = {
            .kind = PARTITION_OUT_APPEND, .generation = WORLD_GENERATION, .append = wrong[i]};
        log_append(&world.shard, &world.owned, &out);
        CU_ASSERT_NOT_EQUAL(append_send(submitted_last(REQ_APPEND), &error), THOLE_OK);
        CHECK_STR("nothing is sent", play.published, "");
        CU_ASSERT_TRUE(error.text[0] != '\0');
        end();
    }
}

/* ---- rejections ---- */

static struct request *reject(void)
{
    begin();
    struct partition_out const out = {.kind = PARTITION_OUT_REJECT,
                                      .generation = WORLD_GENERATION,
                                      .reject = {.code = REJECT_SUBJECT,
                                                 .sequence = 21,
                                                 .stored_ns = 22,
                                                 .message_bytes = 23,
                                                 .subject = THOLE_STR("a.b"),
                                                 .bytes = THOLE_STR("xyz"),
                                                 .text = "why"}};
    shard_reject(&world.shard, &world.owned, &out);
    return submitted_last(REQ_REJECT);
}

static void test_a_rejection(void)
{
    const struct rejected_item *const item = &reject()->rejection.item;
    CU_ASSERT_EQUAL(item->partition, 3);
    CU_ASSERT_EQUAL(item->sequence, 21);
    CU_ASSERT_EQUAL(item->stored_ns, 22);
    CU_ASSERT_EQUAL(item->bytes, 23);
    CU_ASSERT_TRUE(thole_slice_equal(item->reason, THOLE_STR("why")));
    CU_ASSERT_TRUE(thole_slice_equal(item->subject, THOLE_STR("a.b")));
    CU_ASSERT_TRUE(thole_slice_equal(item->payload, THOLE_STR("xyz")));
    end();
}

/* Kept, or given up at last: the partition goes on. In between it is tried again, and not at once. */
static void test_a_rejection_that_is_not_kept(void)
{
    static const struct {
        const char *name;
        thole_status status;
        uint64_t after_ms, life;
        const char *again, *given;
    } rows[] = {{"kept", THOLE_OK, 0, WORLD_GENERATION, "", "rejected"},
                {"not yet", THOLE_UNAVAILABLE, 0, WORLD_GENERATION, "in 200 ms", ""},
                {"still not", THOLE_UNAVAILABLE, PATIENCE_MS - 1, WORLD_GENERATION, "in 200 ms", ""},
                {"given up", THOLE_UNAVAILABLE, PATIENCE_MS, WORLD_GENERATION, "", "rejected"},
                {"of an earlier life", THOLE_UNAVAILABLE, 0, WORLD_GENERATION + 1, "", ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request *const request = reject();
        world.now_ms += rows[i].after_ms;
        world.generation = rows[i].life;
        request->status = rows[i].status;
        rejection_answered(&world.owned, request);
        CHECK_STR(rows[i].name, play.again, rows[i].again);
        CHECK_STR(rows[i].name, play.given, rows[i].given);
        end();
    }
}

/* While the stream takes nothing each gets one try; as soon as it takes one, each is patient again. */
static void test_a_stream_that_takes_nothing(void)
{
    static const struct {
        const char *name;
        thole_status status;
        uint64_t away_ms, now_away_ms; /* from now; 0: it is not taken for away */
        const char *again, *given;
    } rows[] = {{"one try", THOLE_UNAVAILABLE, 10000, AWAY_MS, "", "rejected"},
                {"it takes one", THOLE_OK, 10000, 0, "", "rejected"},
                {"it was long ago", THOLE_UNAVAILABLE, 0, 0, "in 200 ms", ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request *const request = reject();
        world.shard.rejects_away_ms = rows[i].away_ms == 0 ? 0 : world.now_ms + rows[i].away_ms;
        request->status = rows[i].status;
        rejection_answered(&world.owned, request);
        CHECK_STR(rows[i].name, play.again, rows[i].again);
        CHECK_STR(rows[i].name, play.given, rows[i].given);
        CU_ASSERT_EQUAL(world.shard.rejects_away_ms,
                        rows[i].now_away_ms == 0 ? 0 : world.now_ms + rows[i].now_away_ms);
        end();
    }
}

/* ---- their end ---- */

static void test_what_a_request_holds(void)
{
    static enum request_kind const kinds[] = {REQ_APPEND, REQ_STORE_APPLY, REQ_PUBLISH_WORK};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        begin();
        request_submit(request_create(kinds[i], &world.shard, &world.owned));
        if (kinds[i] == REQ_STORE_APPLY)
            submitted_last(REQ_STORE_APPLY)->store.batch = batch_create(3, 1);
        end();
        CU_ASSERT_EQUAL(play.batches, kinds[i] == REQ_STORE_APPLY);
    }
}

static const struct thole_test tests[] = {
    {"subjects of records", test_subjects_of_records},
    {"a record without a subject", test_a_record_without_a_subject},
    {"a rejection", test_a_rejection},
    {"a rejection that is not kept", test_a_rejection_that_is_not_kept},
    {"a stream that takes nothing", test_a_stream_that_takes_nothing},
    {"what a request holds", test_what_a_request_holds},
};
THOLE_TEST_MAIN("shard_requests", tests)
