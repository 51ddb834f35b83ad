/* The bounds of decoding: what is as large as it may be is taken, one byte more is not. */
#include "codec.h"
#include "messages.pb-c.h"
#include "thole_cunit.h"

static void test_the_largest_and_one_more(void)
{
    static uint8_t data[300];
    for (size_t len = 1; len <= sizeof data; len++) {
        Thole__V1__Query query = THOLE__V1__QUERY__INIT;
        struct codec_scratch scratch;
        struct buf bytes;
        ProtobufCMessage *pb = NULL;
        thole_error err = {0};
        query.name = (ProtobufCBinaryData){len, data};
        buf_init(&bytes, 1000);
        codec_init(&scratch);
        CU_ASSERT_EQUAL_FATAL(codec_pack(&query.base, &bytes), THOLE_OK);
        CU_ASSERT_EQUAL(codec_unpack(&thole__v1__query__descriptor, buf_bytes(&bytes), bytes.len, &scratch,
                                     "it", &pb, &err),
                        THOLE_OK);
        CU_ASSERT_EQUAL(codec_unpack(&thole__v1__query__descriptor, buf_bytes(&bytes), bytes.len - 1,
                                     &scratch, "it", &pb, &err),
                        THOLE_LIMIT);
        codec_release(&scratch);
        buf_release(&bytes);
    }
}

static void test_nothing_and_nonsense(void)
{
    struct codec_scratch scratch;
    ProtobufCMessage *pb = NULL;
    thole_error err = {0};
    codec_init(&scratch);
    CU_ASSERT_EQUAL(
        codec_unpack(&thole__v1__query__descriptor, (thole_slice){NULL, 0}, 100, &scratch, "it", &pb, &err),
        THOLE_CORRUPT);
    CHECK_STR("nothing", err.text, "it is empty");
    CU_ASSERT_EQUAL(
        codec_unpack(&thole__v1__query__descriptor, THOLE_STR("\xff\xff"), 100, &scratch, "it", &pb, &err),
        THOLE_CORRUPT);
    CHECK_STR("nonsense", err.text, "it does not decode");
    CU_ASSERT_PTR_NULL(pb);
    codec_release(&scratch);
}

static const struct thole_test tests[] = {
    {"the largest, and one more", test_the_largest_and_one_more},
    {"nothing, and nonsense", test_nothing_and_nonsense},
};
THOLE_TEST_MAIN("codec", tests)
