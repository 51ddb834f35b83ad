/* Checkpoints of a log while it grows: what the room publishes verifies, whoever else publishes, and wherever
 * it begins again; and it signs nothing that is not what was written. */
#include "audit_log.h"
#include "sealer.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <string.h>

enum { MESSAGE_BYTES = 64 * 1024, MESSAGES_MAX = 64 };

struct message {
    bool leaves;
    struct buf bytes;
};
static struct message stream[MESSAGES_MAX]; /* the audit stream */
static size_t stream_len;
static struct note_key key, other;
static size_t wrong;
static thole_error error;

static void want_ok(thole_status status)
{
    if (status != THOLE_OK)
        (void)printf("\n  %s\n", error.text);
    CU_ASSERT_EQUAL(status, THOLE_OK);
}

static void on_wrong(void *arg, uint64_t sequence, const char *text)
{
    (void)arg, (void)sequence;
    (void)printf("\n  %s\n", text);
    wrong++;
}

static void begin(void)
{
    uint8_t const seed[NOTE_KEY_BYTES] = {7}, seed2[NOTE_KEY_BYTES] = {8};
    CU_ASSERT_EQUAL(note_key_make(THOLE_STR("engine"), seed, &key, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(note_key_make(THOLE_STR("other"), seed2, &other, NULL), THOLE_OK);
    stream_len = wrong = 0;
}

static void end(struct log *log)
{
    for (size_t i = 0; i < stream_len; i++)
        buf_release(&stream[i].bytes);
    story_end(log);
}

static void store(bool leaves, thole_slice bytes)
{
    struct message *message = &stream[stream_len++];
    CU_ASSERT_FATAL(stream_len <= MESSAGES_MAX);
    message->leaves = leaves;
    buf_init(&message->bytes, MESSAGE_BYTES);
    buf_slice(&message->bytes, bytes);
}

static struct sealer *sealer_of(const struct note_key *by)
{
    return sealer_create(
        &(struct sealer_options){.ns = THOLE_STR("ns"), .partition = 3, .keys = by, .keys_len = 1});
}

/* With all that is published. */
static struct sealer *opened(const struct note_key *by)
{
    struct sealer *sealer = sealer_of(by);
    for (size_t i = 0; i < stream_len; i++)
        if (!stream[i].leaves)
            sealer_take_checkpoint(sealer, buf_bytes(&stream[i].bytes));
    for (size_t i = 0; i < stream_len; i++)
        if (stream[i].leaves)
            want_ok(sealer_take_leaves(sealer, buf_bytes(&stream[i].bytes), &error));
    return sealer;
}

static thole_status give(struct sealer *sealer, const struct log *log, size_t until)
{
    for (size_t i = 0; i < until; i++) {
        const struct audit_record *record = &log->records[i];
        if (record->sequence > sealer_place(sealer)->sequence)
            THOLE_TRY(sealer_take(sealer, record->sequence, record->bytes, &error));
    }
    return THOLE_OK;
}

static void publish_leaves(struct sealer *sealer)
{
    struct buf message;
    buf_init(&message, MESSAGE_BYTES);
    while (sealer_leaves_message(sealer, &message)) {
        store(true, buf_bytes(&message));
        sealer_published(sealer);
        buf_clear(&message);
    }
    buf_release(&message);
}

static bool publish(struct sealer *sealer)
{
    struct buf message;
    bool any;
    publish_leaves(sealer);
    buf_init(&message, MESSAGE_BYTES);
    want_ok(sealer_checkpoint_message(sealer, &message, &any, &error));
    if (any) {
        store(false, buf_bytes(&message));
        sealer_signed(sealer);
    }
    buf_release(&message);
    return any;
}

/* As `thole audit verify` does; returns the records of the last checkpoint. */
static uint64_t verify(struct log *log, const struct note_key *by)
{
    log->seal = seal_create(&(struct seal_options){
        .ns = THOLE_STR("ns"), .partition = 3, .keys = by, .keys_len = 1, .found = on_wrong});
    for (size_t i = 0; i < stream_len; i++)
        if (stream[i].leaves)
            seal_take_leaves(log->seal, i + 1, buf_bytes(&stream[i].bytes));
        else
            seal_take_checkpoint(log->seal, i + 1, buf_bytes(&stream[i].bytes));
    seal_end(log->seal);
    (void)story_check(log);
    CU_ASSERT_STRING_EQUAL(log->said, "");
    CU_ASSERT_EQUAL(wrong, 0);
    uint64_t const records = seal_signed(log->seal);
    seal_destroy(log->seal);
    log->seal = NULL;
    return records;
}

/* Begun again after each record, and after each step of publishing. */
static void test_goes_on(void)
{
    struct log *log = story_written();
    begin();
    for (size_t i = 1; i <= log->len; i++) {
        struct sealer *sealer = opened(&key);
        CU_ASSERT_EQUAL(sealer_size(sealer), i - 1);
        want_ok(give(sealer, log, i));
        CU_ASSERT_TRUE(publish(sealer));
        CU_ASSERT_FALSE(publish(sealer));
        CU_ASSERT_EQUAL(sealer_held(sealer), 0);
        sealer_destroy(sealer);
        CU_ASSERT_EQUAL(verify(log, &key), i);
    }
    end(log);
    log = story_written();
    begin();
    struct sealer *died = opened(&key); /* between leaves and checkpoint */
    want_ok(give(died, log, 5));
    publish_leaves(died);
    sealer_destroy(died);
    struct sealer *next = opened(&key);
    want_ok(give(next, log, log->len));
    CU_ASSERT_TRUE(publish(next));
    CU_ASSERT_EQUAL(verify(log, &key), log->len);
    sealer_destroy(next);
    end(log);
}

/* Two at once, with keys of their own: the stream takes one message at each place. */
static void test_two(void)
{
    struct log *log = story_written();
    begin();
    struct sealer *a = opened(&key), *b = opened(&other);
    want_ok(give(a, log, 4));
    want_ok(give(b, log, 7));
    CU_ASSERT_TRUE(publish(a));
    want_ok(sealer_take_leaves(b, buf_bytes(&stream[0].bytes), &error)); /* b's were refused */
    CU_ASSERT_TRUE(publish(b));
    CU_ASSERT_EQUAL(verify(log, &key), 4);
    CU_ASSERT_EQUAL(verify(log, &other), 7);
    want_ok(sealer_take_leaves(a, buf_bytes(&stream[2].bytes), &error));
    want_ok(give(a, log, 6)); /* after the other one */
    CU_ASSERT_TRUE(publish(a));
    CU_ASSERT_EQUAL(verify(log, &key), 6);
    sealer_destroy(a);
    a = opened(&key);
    want_ok(give(a, log, log->len));
    CU_ASSERT_TRUE(publish(a));
    CU_ASSERT_EQUAL(verify(log, &key), log->len);
    sealer_destroy(a);
    sealer_destroy(b);
    end(log);
}

static void take_out(struct log *log, size_t i)
{
    memmove(&log->records[i], &log->records[i + 1], (log->len - i - 1) * sizeof log->records[0]);
    log->len--;
}

/* A deletion removes a's records before one sealer has seen them and after another has, whichever publishes
 * first. */
static void test_removed(void)
{
    for (int late = 0; late < 2; late++) {
        struct log *log = story_written();
        begin();
        story_delete_instance(log, 0);
        story_turn(log, 1);
        struct sealer *saw = opened(&key), *came_late = opened(&other);
        want_ok(give(saw, log, log->len));
        take_out(log, 11), take_out(log, 8), take_out(log, 3), take_out(log, 1);
        want_ok(give(came_late, log, 8)); /* up to before the deletion */
        CU_ASSERT_TRUE(sealer_lacks(came_late));
        CU_ASSERT_FALSE(sealer_accounts(log->records[7].bytes));
        CU_ASSERT_TRUE(sealer_accounts(log->records[log->len - 2].bytes));
        want_ok(give(came_late, log, log->len));
        CU_ASSERT_FALSE(sealer_lacks(came_late));
        struct sealer *first = late ? came_late : saw, *second = late ? saw : came_late;
        CU_ASSERT_TRUE(publish(first));
        want_ok(sealer_take_leaves(second, buf_bytes(&stream[0].bytes), &error));
        CU_ASSERT_TRUE(publish(second));
        CU_ASSERT_EQUAL(verify(log, &key), 14);
        CU_ASSERT_EQUAL(verify(log, &other), 14);
        sealer_destroy(saw);
        sealer_destroy(came_late);
        end(log);
    }
}

/* Each bit of each record but the last, of which nothing is known yet. */
static void test_refuses(void)
{
    struct log *log = story_written();
    begin();
    for (size_t i = 0; i + 1 < log->len; i++)
        for (size_t bit = 0; bit < 8 * log->records[i].bytes.len; bit++) {
            uint8_t *byte = (uint8_t *)(uintptr_t)log->records[i].bytes.ptr + bit / 8;
            struct sealer *sealer = sealer_of(&key);
            *byte ^= (uint8_t)(1u << bit % 8);
            CU_ASSERT_EQUAL(give(sealer, log, log->len), THOLE_CORRUPT);
            *byte ^= (uint8_t)(1u << bit % 8);
            sealer_destroy(sealer);
        }
    for (size_t i = 0; i + 1 < log->len; i++) { /* two have changed places */
        struct sealer *sealer = sealer_of(&key);
        thole_slice const first = log->records[i].bytes;
        log->records[i].bytes = log->records[i + 1].bytes;
        log->records[i + 1].bytes = first;
        CU_ASSERT_EQUAL(give(sealer, log, log->len), THOLE_CORRUPT);
        log->records[i + 1].bytes = log->records[i].bytes;
        log->records[i].bytes = first;
        sealer_destroy(sealer);
    }
    struct sealer *sealer = sealer_of(&key); /* the beginning is not there */
    CU_ASSERT_EQUAL(sealer_take(sealer, 2, log->records[1].bytes, &error), THOLE_CORRUPT);
    sealer_destroy(sealer);
    end(log);
}

/* Leaves that others have published hold: a record that differs is not signed. */
static void test_published_holds(void)
{
    struct log *log = story_written();
    begin();
    struct sealer *sealer = opened(&key);
    want_ok(give(sealer, log, log->len));
    publish_leaves(sealer);
    sealer_destroy(sealer);
    for (size_t bit = 8 * 9; bit < 8 * stream[0].bytes.len; bit += 7) {
        if (bit / 8 % 64 >= 9 + 32) /* of the instance: the deletion's, too */
            continue;
        stream[0].bytes.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
        sealer = opened(&other);
        CU_ASSERT_EQUAL(give(sealer, log, log->len), THOLE_CORRUPT);
        sealer_destroy(sealer);
        stream[0].bytes.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    sealer = opened(&key); /* a server's answer is left out */
    want_ok(sealer_take_leaves(sealer, THOLE_STR("{\"stream\":\"THOLE_ns_AUDIT\",\"seq\":3}"), &error));
    sealer_destroy(sealer);
    static const uint8_t none[] = {1, 0, 0, 0, 0, 0, 0, 0, 9, 1};
    uint8_t gap[9 + 64] = {1, 0, 0, 0, 0, 0, 0, 0, 99};
    sealer = opened(&key);
    CU_ASSERT_EQUAL(sealer_take_leaves(sealer, (thole_slice){none, sizeof none}, &error), THOLE_CORRUPT);
    CU_ASSERT_EQUAL(sealer_take_leaves(sealer, (thole_slice){gap, sizeof gap}, &error), THOLE_CORRUPT);
    gap[8] = 1;
    CU_ASSERT_EQUAL(sealer_take_leaves(sealer, (thole_slice){gap, sizeof gap}, &error), THOLE_CORRUPT);
    sealer_destroy(sealer);
    end(log);
}

/* Nobody goes on from a checkpoint of another key, or one that was changed. */
static void test_checkpoints(void)
{
    struct log *log = story_written();
    begin();
    struct sealer *sealer = opened(&key);
    want_ok(give(sealer, log, log->len));
    CU_ASSERT_TRUE(publish(sealer));
    sealer_destroy(sealer);
    sealer = sealer_of(&other);
    sealer_take_checkpoint(sealer, buf_bytes(&stream[1].bytes));
    CU_ASSERT_EQUAL(sealer_size(sealer), 0);
    sealer_destroy(sealer);
    thole_slice const note = buf_bytes(&stream[1].bytes);
    for (size_t i = 0; i < note.len; i++) {
        sealer = sealer_of(&key);
        stream[1].bytes.ptr[i] ^= 1;
        sealer_take_checkpoint(sealer, note);
        CU_ASSERT_EQUAL(sealer_size(sealer), 0);
        stream[1].bytes.ptr[i] ^= 1;
        sealer_destroy(sealer);
    }
    sealer = sealer_of(&key);
    sealer_take_checkpoint(sealer, note);
    CU_ASSERT_EQUAL(sealer_size(sealer), log->len);
    sealer_destroy(sealer);
    end(log);
}

static const struct thole_test tests[] = {
    {"it goes on where it stopped", test_goes_on},     {"two at once", test_two},
    {"records that are removed", test_removed},        {"what was not written is not signed", test_refuses},
    {"what is published holds", test_published_holds}, {"checkpoints it goes on from", test_checkpoints},
};

int main(void)
{
    return thole_run_suite("sealer", tests, ARRAY_LEN(tests));
}
