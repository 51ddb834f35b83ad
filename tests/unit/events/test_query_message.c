/* The codec of queries and their answers. */
#include "message.h"
#include "query_message.h"
#include "torture.h"

#define S(literal)                                                                                           \
    {                                                                                                        \
        (const uint8_t *)("" literal), sizeof(literal) - 1                                                   \
    }

static const struct query question = {
    .instance = S("order-\xe2\x82\xac"), .name = S("status"), .input = S("in\0put")};
static const struct query_answer answers[] = {
    {.status = THOLE_OK, .data = S("out\0put")},
    {.status = THOLE_NOT_FOUND, .data = S("no such query")},
    {.status = THOLE_OK},
    {.status = UINT32_MAX, .data = S("of a newer engine")},
};

static void encode_question(const struct query *query, struct buf *to)
{
    buf_init(to, MESSAGE_BYTES_MAX);
    CU_ASSERT_EQUAL(query_encode(query, to), THOLE_OK);
}

static void round_trip(void)
{
    struct buf bytes;
    struct arena arena;
    struct query to;
    arena_init(&arena, 1000);
    encode_question(&question, &bytes);
    CU_ASSERT_EQUAL(query_decode(buf_bytes(&bytes), &arena, &to, NULL), THOLE_OK);
    buf_release(&bytes);
    CU_ASSERT(thole_slice_equal(to.instance, question.instance) &&
              thole_slice_equal(to.name, question.name) && thole_slice_equal(to.input, question.input));
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct query_answer answer;
        buf_init(&bytes, 1000);
        CU_ASSERT_EQUAL(query_answer_encode(&answers[i], &bytes), THOLE_OK);
        CU_ASSERT_EQUAL(query_answer_decode(buf_bytes(&bytes), &arena, &answer, NULL), THOLE_OK);
        buf_release(&bytes);
        CU_ASSERT(answer.status == answers[i].status && thole_slice_equal(answer.data, answers[i].data));
    }
    arena_release(&arena);
    buf_init(&bytes, 10);
    CU_ASSERT_EQUAL(query_encode(&question, &bytes), THOLE_LIMIT);
    buf_clear(&bytes);
    CU_ASSERT_EQUAL(query_answer_encode(&answers[0], &bytes), THOLE_LIMIT);
    buf_release(&bytes);
}

static void refused(void)
{
    struct {
        const char *text;
        struct query query;
    } rows[] = {
        {"instance id is empty", question},
        {"query name is empty", question},
        {"query name has byte 0x2e, allowed is [A-Za-z0-9_-]", question},
    };
    rows[0].query.instance.len = 0;
    rows[1].query.name.len = 0;
    rows[2].query.name = THOLE_STR("a.b");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf bytes;
        struct arena arena;
        struct query to;
        thole_error err = {.text = "ok"};
        encode_question(&rows[i].query, &bytes);
        arena_init(&arena, 1000);
        CU_ASSERT_EQUAL(query_decode(buf_bytes(&bytes), &arena, &to, &err), THOLE_CORRUPT);
        CHECK_STR("refused", err.text, rows[i].text);
        buf_release(&bytes);
        arena_release(&arena);
    }
}

static void other_bytes(void)
{
    static const struct {
        thole_slice bytes;
        thole_status query, answer;
    } rows[] = {
        {S(""), THOLE_CORRUPT, THOLE_CORRUPT},
        {S("{\"query\":1}"), THOLE_CORRUPT, THOLE_CORRUPT},
        {S("\x08\x02"), THOLE_UNSUPPORTED, THOLE_UNSUPPORTED},
        {S("\x12\x01i"), THOLE_CORRUPT, THOLE_CORRUPT},
        {S("\x08\x01\x12\x01i\x1a\x01n"), THOLE_OK, THOLE_CORRUPT},
        {S("\x08\x01\x10\x0a"), THOLE_CORRUPT, THOLE_OK},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena arena;
        struct query query;
        struct query_answer answer;
        arena_init(&arena, 1000);
        CU_ASSERT_EQUAL(query_decode(rows[i].bytes, &arena, &query, NULL), rows[i].query);
        CU_ASSERT_EQUAL(query_answer_decode(rows[i].bytes, &arena, &answer, NULL), rows[i].answer);
        arena_release(&arena);
    }
}

static thole_status touch_question(thole_slice bytes, struct arena *arena, thole_error *reterr)
{
    struct query query;
    THOLE_TRY(query_decode(bytes, arena, &query, reterr));
    torture_touch(query.instance);
    torture_touch(query.name);
    torture_touch(query.input);
    if (id_check(query.instance, NULL) != THOLE_OK || name_check(query.name, "x", NULL) != THOLE_OK)
        CU_FAIL("an id or a name that is none");
    return THOLE_OK;
}

static thole_status touch_answer(thole_slice bytes, struct arena *arena, thole_error *reterr)
{
    struct query_answer answer;
    THOLE_TRY(query_answer_decode(bytes, arena, &answer, reterr));
    torture_touch(answer.data);
    return THOLE_OK;
}

static void damaged_bytes(void)
{
    struct buf bytes;
    encode_question(&question, &bytes);
    torture_bytes(touch_question, buf_bytes(&bytes));
    torture_arena(touch_question, buf_bytes(&bytes));
    buf_clear(&bytes);
    CU_ASSERT_EQUAL(query_answer_encode(&answers[1], &bytes), THOLE_OK);
    torture_bytes(touch_answer, buf_bytes(&bytes));
    torture_arena(touch_answer, buf_bytes(&bytes));
    buf_release(&bytes);
    torture_garbage(touch_question, 20000);
    torture_garbage(touch_answer, 20000);
}

static const struct thole_test tests[] = {
    {"there and back", round_trip},
    {"refused", refused},
    {"other bytes", other_bytes},
    {"damaged bytes", damaged_bytes},
};
THOLE_TEST_MAIN("query_message", tests)
