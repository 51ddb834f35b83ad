/* Records with salted hashes of their payloads: the vectors, what a redaction leaves, and that neither it nor
 * anything else can pass for a record with another payload. */
#include "audit_log.h"
#include "json.h"
#include "payload_hash.h"
#include "record_hash.h"
#include "redaction.h"
#include "samples.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct salt_key key = {.bytes = {9, 8}};
static const struct salt_source salts = {&key, 3};

static struct record_hash hash_of(thole_slice record)
{
    return record_hash_make(THOLE_STR("ns"), 3, record);
}

static void encode_as(bool refers, const struct event *events, size_t n, struct buf *to)
{
    struct record const record = {.kind = RECORD_TURN,
                                  .epoch = 2,
                                  .n = 5,
                                  .salts = &salts,
                                  .refers = refers,
                                  .turn = {.instance = THOLE_STR("i"),
                                           .execution = 1,
                                           .number = 1,
                                           .ran = true,
                                           .events = events,
                                           .events_len = n}};
    buf_init(to, 1 << 20);
    CU_ASSERT_EQUAL(record_encode(&record, to), THOLE_OK);
}

static void encode(const struct event *events, size_t n, struct buf *to)
{
    encode_as(false, events, n, to);
}

static thole_status redact(thole_slice record, uint64_t event, const char *field, struct buf *to)
{
    buf_init(to, 1 << 20);
    return record_redact(record, &(struct redaction){event, thole_slice_from(field)}, to, NULL);
}

static bool has(const struct buf *in, const char *text)
{
    return memmem(in->ptr, in->len, text, strlen(text)) != NULL;
}

/* ---- every kind of event ---- */

static void check_redacted(const struct event *from, thole_slice bytes)
{
    struct record_hash const before = hash_of(bytes);
    struct arena arena;
    struct record record;
    struct buf redacted, again;
    arena_init(&arena, 1 << 24);
    bool const any = redact(bytes, from->id, "", &redacted) == THOLE_OK;
    CU_ASSERT_EQUAL_FATAL(record_decode(any ? buf_bytes(&redacted) : bytes, &arena, &record, NULL), THOLE_OK);
    const struct event *const to = &record.turn.events[0];
    if (any) {
        struct record_hash const after = hash_of(buf_bytes(&redacted));
        CU_ASSERT_TRUE(record_hash_equal(&before, &after));
        CU_ASSERT_EQUAL(redact(buf_bytes(&redacted), from->id, "", &again), THOLE_CONFLICT);
        buf_release(&again);
    }
    bool const hashes = from->kind == EVENT_ORIGINS_CARRIED;
    CU_ASSERT_EQUAL(to->data_erased, from->data.len > 0 && !hashes);
    CU_ASSERT_EQUAL(to->data.len, hashes ? from->data.len : 0);
    CU_ASSERT_EQUAL(to->details.len, 0);
    CU_ASSERT_EQUAL(to->details_erased, from->details.len > 0);
    CU_ASSERT_EQUAL(to->input_erased, from->kind == EVENT_ACTIVITY_QUARANTINED && from->input.len > 0);
    CU_ASSERT_TRUE(event_equal(to, from) || any);
    CU_ASSERT_TRUE(to->id == from->id && to->ref == from->ref && to->kind == from->kind);
    buf_release(&redacted);
    arena_release(&arena);
}

static void test_every_kind(void)
{
    for (size_t i = 0; i < sample_events_len; i++) {
        struct event event = sample_events[i];
        struct buf bytes;
        event.id = 3;
        encode(&event, 1, &bytes);
        check_redacted(&event, buf_bytes(&bytes));
        buf_release(&bytes);
    }
}

/* ---- one of several ---- */

static void test_one_field(void)
{
    struct event const events[] = {
        {.id = 1, .kind = EVENT_EVENT_RECEIVED, .name = THOLE_STR("e"), .data = THOLE_STR("first secret")},
        {.id = 2,
         .kind = EVENT_ACTIVITY_TRY_FAILED,
         .ref = 1,
         .code = THOLE_APP,
         .try_number = 1,
         .data = THOLE_STR("second secret"),
         .details = THOLE_STR("third secret")}};
    struct buf bytes, one, two;
    encode(events, 2, &bytes);
    struct record_hash const before = hash_of(buf_bytes(&bytes));
    CU_ASSERT_EQUAL(redact(buf_bytes(&bytes), 2, "details", &one), THOLE_OK);
    CU_ASSERT_TRUE(has(&one, "first secret") && has(&one, "second secret") && !has(&one, "third secret"));
    CU_ASSERT_EQUAL(redact(buf_bytes(&one), 1, "data", &two), THOLE_OK);
    CU_ASSERT_TRUE(!has(&two, "first secret") && has(&two, "second secret"));
    struct record_hash const after = hash_of(buf_bytes(&two));
    CU_ASSERT_TRUE(record_hash_equal(&before, &after));
    buf_release(&two);
    CU_ASSERT_EQUAL(redact(buf_bytes(&bytes), 2, "output", &two), THOLE_INVALID);
    buf_release(&two);
    CU_ASSERT_EQUAL(redact(buf_bytes(&bytes), 7, "", &two), THOLE_NOT_FOUND);
    buf_release(&two);
    CU_ASSERT(redact((thole_slice){bytes.ptr, bytes.len - 1}, 2, "", &two) != THOLE_OK);
    buf_release(&two);
    buf_release(&one);
    buf_release(&bytes);
}

/* ---- a payload that several events have ---- */

enum { LONG = 300 };
static char one_secret[LONG + 1], two_secret[LONG + 1];

/* Started, and two activities with its input; the second one was tried before, and has details. Then what the
 * last one returned, and an end with that. */
static void encode_references(struct buf *to)
{
    thole_slice const one = {(const uint8_t *)one_secret, LONG}, two = {(const uint8_t *)two_secret, LONG};
    memset(one_secret, '1', LONG);
    memset(two_secret, '2', LONG);
    struct event const events[] = {
        {.id = 1, .kind = EVENT_STARTED, .code = 1, .name = THOLE_STR("o"), .data = one},
        {.id = 2,
         .kind = EVENT_ACTIVITY_COMPLETED,
         .ref = 9,
         .try_number = 1,
         .data = two,
         .source = &(struct event_source){.place.worker = THOLE_STR("w")}},
        {.id = 3,
         .kind = EVENT_ACTIVITY_TRY_STARTED,
         .ref = 9,
         .try_number = 2,
         .name = THOLE_STR("a"),
         .queue = THOLE_STR("q"),
         .data = one,
         .details = THOLE_STR("some details")},
        {.id = 4, .kind = EVENT_CUSTOM_STATUS_SET, .data = THOLE_STR("a status")},
        {.id = 5, .kind = EVENT_COMPLETED, .data = two}};
    encode_as(true, events, 5, to);
    CU_ASSERT_TRUE(to->len < 3 * LONG);
}

/* Checks the rest of each event of the record: its payload, or (erased); then its details. */
static void check_left(const char *name, const struct buf *bytes, const char *want)
{
    struct arena arena;
    struct record record;
    char text[200] = "";
    arena_init(&arena, 1 << 20);
    CU_ASSERT_EQUAL_FATAL(record_decode(buf_bytes(bytes), &arena, &record, NULL), THOLE_OK);
    for (size_t i = 0, at = 0; i < record.turn.events_len; i++) {
        const struct event *const e = &record.turn.events[i];
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%c%s", i == 0 ? "" : " ",
                               e->data_erased ? '-' : e->data.ptr[0], e->details_erased ? "-" : "");
        CU_ASSERT_EQUAL(e->data_erased, e->data.len == 0);
    }
    CHECK_STR(name, text, want);
    arena_release(&arena);
}

static void test_references(void)
{
    struct {
        uint64_t event;
        const char *field;
        thole_status status;
        const char *left;
    } const rows[] = {
        {1, "input", THOLE_OK, "- 2 - a 2"},    {3, "input", THOLE_OK, "- 2 - a 2"},
        {3, "details", THOLE_OK, "1 2 1- a 2"}, {3, "", THOLE_OK, "- 2 -- a 2"},
        {2, "output", THOLE_OK, "1 - 1 a -"},   {2, "", THOLE_OK, "1 - 1 a -"},
        {5, "output", THOLE_OK, "1 - 1 a -"},   {4, "", THOLE_OK, "1 2 1 - 2"},
        {0, "input", THOLE_OK, "- 2 - a 2"},    {0, "", THOLE_OK, "- - -- - -"},
        {2, "input", THOLE_INVALID, NULL},      {6, "", THOLE_NOT_FOUND, NULL},
    };
    struct buf bytes;
    encode_references(&bytes);
    struct record_hash const before = hash_of(buf_bytes(&bytes));
    check_left("as it was written", &bytes, "1 2 1 a 2");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf redacted, again;
        CU_ASSERT_EQUAL(redact(buf_bytes(&bytes), rows[i].event, rows[i].field, &redacted), rows[i].status);
        if (rows[i].status == THOLE_OK) {
            struct record_hash const after = hash_of(buf_bytes(&redacted));
            CU_ASSERT_TRUE(record_hash_equal(&before, &after));
            check_left(rows[i].field, &redacted, rows[i].left);
            CU_ASSERT_EQUAL(redact(buf_bytes(&redacted), rows[i].event, rows[i].field, &again),
                            rows[i].event == 0 ? THOLE_NOT_FOUND : THOLE_CONFLICT);
            buf_release(&again);
        }
        buf_release(&redacted);
    }
    buf_release(&bytes);
}

/* Equal payloads have another salt, and so another hash, in each place. */
static void test_salts(void)
{
    struct event const events[] = {{.id = 1, .kind = EVENT_CUSTOM_STATUS_SET, .data = THOLE_STR("yes")},
                                   {.id = 2, .kind = EVENT_CUSTOM_STATUS_SET, .data = THOLE_STR("yes")},
                                   {.id = 3, .kind = EVENT_CUSTOM_STATUS_SET, .data = THOLE_STR("yes")}};
    uint8_t all[5][SALT_BYTES];
    struct record_salts first = {.source = &salts, .epoch = 2, .n = 5},
                        next = {.source = &salts, .epoch = 2, .n = 6};
    for (size_t i = 0; i < 3; i++)
        (void)record_salts_next(&first, all[i]);
    for (size_t i = 3; i < 5; i++)
        (void)record_salts_next(&next, all[i]);
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < i; k++)
            CU_ASSERT(memcmp(all[i], all[k], SALT_BYTES) != 0);
    struct buf bytes;
    encode(events, 3, &bytes);
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_PTR_NOT_NULL(memmem(bytes.ptr, bytes.len, all[i], SALT_BYTES));
    buf_release(&bytes);
}

/* Without salts a record is as it always was. */
static void test_without_salts(void)
{
    struct event const event = {.id = 1, .kind = EVENT_COMPLETED, .data = THOLE_STR("secret")};
    struct record record = {
        .kind = RECORD_TURN,
        .epoch = 2,
        .n = 5,
        .turn = {.instance = THOLE_STR("i"), .execution = 1, .number = 1, .events = &event, .events_len = 1}};
    struct buf bytes, to;
    buf_init(&bytes, 1 << 16);
    CU_ASSERT_EQUAL(record_encode(&record, &bytes), THOLE_OK);
    CU_ASSERT_EQUAL(redact(buf_bytes(&bytes), 1, "", &to), THOLE_UNSUPPORTED);
    buf_release(&to);
    buf_release(&bytes);
}

/* ---- forgeries ---- */

/* Each bit, of the record and of the redacted one. */
static void flip_all(thole_slice record)
{
    struct record_hash const before = hash_of(record);
    uint8_t *const copy = malloc(record.len);
    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    memcpy(copy, record.ptr, record.len);
    size_t found = 0;
    for (size_t bit = 0; bit < record.len * 8; bit++) {
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        struct record_hash const after = hash_of((thole_slice){copy, record.len});
        found += !record_hash_equal(&before, &after);
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    CU_ASSERT_EQUAL(found, record.len * 8);
    free(copy);
}

static void test_flipped_bits(void)
{
    struct event const events[] = {
        {.id = 1, .kind = EVENT_EVENT_RECEIVED, .name = THOLE_STR("e"), .data = THOLE_STR("yes")},
        {.id = 2,
         .kind = EVENT_ACTIVITY_SCHEDULED,
         .name = THOLE_STR("a"),
         .queue = THOLE_STR("q"),
         .data = THOLE_STR("no")},
        {.id = 3, .kind = EVENT_EVENT_AWAITED, .name = THOLE_STR("e")}};
    struct buf bytes, redacted;
    encode(events, 3, &bytes);
    flip_all(buf_bytes(&bytes));
    CU_ASSERT_EQUAL(redact(buf_bytes(&bytes), 2, "", &redacted), THOLE_OK);
    flip_all(buf_bytes(&redacted));
    buf_release(&redacted);
    buf_release(&bytes);
    encode_references(&bytes);
    flip_all(buf_bytes(&bytes));
    buf_release(&bytes);
}

/* Bytes of a turn with one event, of which the body and the notes are given. */
static struct record_hash forged(const char *body, size_t body_len, const char *notes, size_t notes_len)
{
    uint8_t bytes[256] = {0x08, 1, 0x10, 2, 0x18, 5}, *at = bytes + 6;
    *at++ = 0x3a;
    *at++ = (uint8_t)(3 + 2 + 2 + 2 + body_len + notes_len);
    memcpy(at, "\x0a\x01i", 3), at += 3;
    *at++ = 0x42;
    *at++ = (uint8_t)(2 + 2 + body_len + notes_len);
    *at++ = 0x08, *at++ = 1;
    *at++ = 0x62, *at++ = (uint8_t)body_len; /* Completed */
    memcpy(at, body, body_len), at += body_len;
    memcpy(at, notes, notes_len), at += notes_len;
    memcpy(at, "\x90\x01\x02", 3), at += 3;
    return hash_of((thole_slice){bytes, (size_t)(at - bytes)});
}

#define FORGED(body, notes) forged(body, sizeof body - 1, notes, sizeof notes - 1)
#define SALT                                                                                                 \
    "\xd2\x3e\x14\x08\x01\x12\x10"                                                                           \
    "0123456789abcdef"

static void test_forged_notes(void)
{
    char erased[] = "\xd2\x3e\x24\x08\x01\x1a\x20"
                    "0123456789abcdef0123456789abcdef";
    struct record_hash const payload = payload_hash_make(THOLE_STR("0123456789abcdef"), THOLE_STR("ok"));
    memcpy(erased + 7, payload.bytes, sizeof payload.bytes);
    struct record_hash const right = FORGED("\x0a\x02ok", SALT), redacted = FORGED("", erased);
    CU_ASSERT_TRUE(record_hash_equal(&right, &redacted));
    struct record_hash const wrong[] = {
        FORGED("\x0a\x02no", SALT),
        FORGED("\x0a\x02ok", erased), /* a payload put back where one was erased */
        FORGED("\x0a\x02no", erased),
        FORGED("\x0a\x02ok\x0a\x02ok", SALT), /* readers take the last */
        FORGED("\x0a\x02no\x0a\x02ok", SALT),
        FORGED("\x0a\x82\x00ok", SALT), /* a length that is longer than need be */
        FORGED("\x0a\x02ok", SALT SALT),
        FORGED("\x0a\x02ok", ""),
        FORGED("", SALT),
        FORGED("\x0a\x02ok", "\xd2\x3e\x16\x08\x01\x12\x10"
                             "0123456789abcdef"
                             "\x20\x01"),
        FORGED("\x0a\x02ok", "\xd2\x3e\x14\x08\x02\x12\x10"
                             "0123456789abcdef"),
        FORGED("\x12\x02ok", "\xd2\x3e\x14\x08\x02\x12\x10"
                             "0123456789abcdef"),
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        CU_ASSERT_FALSE(record_hash_equal(&wrong[i], &right));
}

/* ---- a log ---- */

static void test_log(void)
{
    struct log *log = story_written();
    struct buf to;
    for (size_t i = 1; i <= 5; i += 2) {
        CU_ASSERT_EQUAL(redact(log->records[i].bytes, 1, "", &to), THOLE_OK);
        CU_ASSERT_EQUAL(arena_dup(&log->arena, buf_bytes(&to), &log->records[i].bytes), THOLE_OK);
        buf_release(&to);
    }
    struct audit_summary summary = story_check(log);
    CU_ASSERT_STRING_EQUAL(log->said, "");
    CU_ASSERT_EQUAL(summary.redacted, 3);
    CU_ASSERT_EQUAL(story_check_instance(log, 0).redacted, 2);
    CU_ASSERT_STRING_EQUAL(log->said, "");
    /* as if another payload had been erased */
    uint8_t *const hash = memmem(log->records[3].bytes.ptr, log->records[3].bytes.len, "\x1a\x20", 2);
    CU_ASSERT_PTR_NOT_NULL_FATAL(hash);
    hash[2] ^= 1;
    summary = story_check(log);
    CU_ASSERT_STRING_EQUAL(log->said, "changed 4");
    story_end(log);
}

static const struct thole_test tests[] = {
    {"every kind of event", test_every_kind},
    {"one field of several", test_one_field},
    {"a payload of several events", test_references},
    {"salts", test_salts},
    {"without salts", test_without_salts},
    {"flipped bits", test_flipped_bits},
    {"forged notes", test_forged_notes},
    {"a log", test_log},
};
THOLE_TEST_MAIN("redaction", tests)
