/* Leaves and checkpoints: what they show of a log that its records alone do not, and forgeries of themselves.
 */
#include "audit_log.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES = 64 * 1024 };

struct published { /* the messages of the audit stream */
    struct note_key key, other;
    struct buf leaves, checkpoint;
    size_t wrong;
    char text[256];
};

static void wrong(void *arg, uint64_t sequence, const char *text)
{
    struct published *published = arg;
    (void)sequence;
    published->wrong++;
    (void)snprintf(published->text, sizeof published->text, "%s", text);
}

static struct seal *seal_of(struct published *published, const struct note_key *key)
{
    return seal_create(&(struct seal_options){
        .ns = THOLE_STR("ns"), .partition = 3, .keys = key, .keys_len = 1, .found = wrong, .arg = published});
}

/* A checkpoint over all that the log has. */
static void publish(struct published *published, struct log *log)
{
    uint8_t const seed[NOTE_KEY_BYTES] = {7}, other[NOTE_KEY_BYTES] = {8};
    CU_ASSERT_EQUAL(note_key_make(THOLE_STR("notary"), seed, &published->key, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(note_key_make(THOLE_STR("notary"), other, &published->other, NULL), THOLE_OK);
    buf_init(&published->leaves, MESSAGE_BYTES);
    buf_init(&published->checkpoint, MESSAGE_BYTES);
    published->wrong = 0;
    log->seal = seal_of(published, &published->key);
    log->extends = true;
    (void)story_check(log);
    CU_ASSERT_STRING_EQUAL(log->said, "");
    struct log_place const place = {log->len, log->epoch, log->n - 1, log->newest};
    seal_leaves_message(log->seal, 0, seal_leaves(log->seal), &published->leaves);
    CU_ASSERT_EQUAL(
        seal_checkpoint_message(log->seal, &place, &published->key, 1, &published->checkpoint, NULL),
        THOLE_OK);
    seal_destroy(log->seal);
    log->seal = NULL;
    log->extends = false;
}

static void release(struct published *published)
{
    buf_release(&published->leaves);
    buf_release(&published->checkpoint);
}

/* Checks with what was published. */
static void check(struct published *published, struct log *log, size_t instance)
{
    log->seal = seal_of(published, &published->key);
    seal_take_leaves(log->seal, 1, buf_bytes(&published->leaves));
    seal_take_checkpoint(log->seal, 2, buf_bytes(&published->checkpoint));
    seal_end(log->seal);
    if (instance < LOG_INSTANCES)
        (void)story_check_instance(log, instance);
    else
        (void)story_check(log);
    seal_destroy(log->seal);
    log->seal = NULL;
}

static void want(const struct log *log, const char *what, const char *text)
{
    size_t const len = strlen(text);
    bool const fits = len == 0 ? log->said[0] == '\0' : strncmp(log->said, text, len) == 0;
    if (!fits)
        (void)printf("\n  %s: got \"%s\", want \"%s\"\n", what, log->said, text);
    CU_ASSERT_TRUE(fits);
}

static void test_right(void)
{
    struct published published;
    struct log *log = story_written();
    publish(&published, log);
    check(&published, log, SIZE_MAX);
    want(log, "as it was", "");
    for (size_t i = 0; i < LOG_INSTANCES; i++) {
        check(&published, log, i);
        want(log, story_ids[i], "");
    }
    story_turn(log, 1);
    story_open_epoch(log);
    story_turn(log, 2);
    check(&published, log, SIZE_MAX);
    want(log, "and more", "");
    check(&published, log, 1);
    want(log, "and more of an instance", "");
    CU_ASSERT_EQUAL(published.wrong, 0);
    release(&published);
    story_end(log);
}

/* The end is known, too: each bit of the last record, and whether it exists. */
static void test_the_end(void)
{
    struct published published;
    struct log *log = story_written();
    publish(&published, log);
    thole_slice const last = log->records[log->len - 1].bytes;
    for (size_t bit = 0; bit < 8 * last.len; bit++) {
        uint8_t *byte = (uint8_t *)(uintptr_t)last.ptr + bit / 8;
        *byte ^= (uint8_t)(1u << bit % 8);
        check(&published, log, SIZE_MAX);
        CU_ASSERT(log->findings > 0);
        check(&published, log, 0);
        CU_ASSERT(log->findings > 0);
        *byte ^= (uint8_t)(1u << bit % 8);
    }
    log->records[11].sequence = 0;
    check(&published, log, SIZE_MAX);
    want(log, "cut", "truncated 11");
    check(&published, log, 0);
    want(log, "cut, of the instance", "truncated 9");
    log->records[10].sequence = log->records[9].sequence = 0;
    check(&published, log, SIZE_MAX);
    want(log, "cut more", "truncated 9");
    release(&published);
    story_end(log);
}

/* Records that a deletion removed are told from records removed under its cover. */
static void test_cover(void)
{
    struct published published;
    struct log *log = story_written();
    story_delete_instance(log, 1);
    publish(&published, log);
    log->records[2].sequence = log->records[5].sequence = log->records[9].sequence = 0;
    check(&published, log, SIZE_MAX);
    want(log, "deleted", "");
    check(&published, log, 1);
    want(log, "the instance", "");
    log->records[4].sequence = log->records[10].sequence = 0; /* all of c, which nothing names */
    (void)story_check(log);
    want(log, "without leaves it is not seen", "");
    check(&published, log, SIZE_MAX);
    want(log, "with them it is", "missing 0, missing 0");
    log->records[6].sequence = 0; /* the position */
    check(&published, log, SIZE_MAX);
    want(log, "a position", "missing 0, missing 0, missing 0");
    release(&published);
    story_end(log);
}

/* A log written from scratch, with hashes that fit each other, has other leaves. */
static void test_written_anew(void)
{
    struct published published;
    struct log *log = story_written(), *again = story_written();
    publish(&published, log);
    again->len = 8;
    again->sequence = 8;
    again->n = 1;
    again->newest = record_hash_make(THOLE_STR("ns"), 3, again->records[7].bytes);
    story_turn(again, 2), story_turn(again, 1), story_turn(again, 0), story_turn(again, 0);
    again->records[8].bytes.len -= 0;
    check(&published, again, SIZE_MAX);
    want(again, "another order", "changed 9");
    release(&published);
    story_end(again);
    story_end(log);
}

static void test_forged_seals(void)
{
    struct published published;
    struct log *log = story_written();
    publish(&published, log);
    for (size_t at = 0; at < published.leaves.len; at += 7) {
        published.wrong = 0;
        published.leaves.ptr[at] ^= 1;
        check(&published, log, SIZE_MAX);
        CU_ASSERT(published.wrong > 0);
        published.leaves.ptr[at] ^= 1;
    }
    for (size_t at = 0; at < published.checkpoint.len; at++) {
        published.wrong = 0;
        published.checkpoint.ptr[at] ^= 2;
        struct seal *seal = seal_of(&published, &published.key);
        seal_take_leaves(seal, 1, buf_bytes(&published.leaves));
        seal_take_checkpoint(seal, 2, buf_bytes(&published.checkpoint));
        seal_end(seal);
        CU_ASSERT_EQUAL(seal_signed(seal), 0);
        seal_destroy(seal);
        published.checkpoint.ptr[at] ^= 2;
    }
    release(&published);
    story_end(log);
}

/* Another's key, another log, the same twice, leaves that are missing. */
static void test_seals(void)
{
    struct published published;
    struct log *log = story_written();
    publish(&published, log);
    struct seal *seal = seal_of(&published, &published.other);
    seal_take_leaves(seal, 1, buf_bytes(&published.leaves));
    seal_take_leaves(seal, 2, buf_bytes(&published.leaves));
    seal_take_checkpoint(seal, 3, buf_bytes(&published.checkpoint));
    seal_end(seal);
    CU_ASSERT(seal_leaves(seal) == 12 && seal_signed(seal) == 0 && published.wrong == 0);
    seal_destroy(seal);
    CU_ASSERT_EQUAL(note_sign(&published.checkpoint, &published.other, NULL),
                    THOLE_OK); /* a second signature */
    seal = seal_of(&published, &published.other);
    seal_take_leaves(seal, 1, buf_bytes(&published.leaves));
    seal_take_checkpoint(seal, 2, buf_bytes(&published.checkpoint));
    seal_end(seal);
    CU_ASSERT(seal_signed(seal) == 12 && seal_checkpoints(seal) == 1 && published.wrong == 0);
    seal_destroy(seal);
    seal = seal_create(&(struct seal_options){.ns = THOLE_STR("ns"),
                                              .partition = 4,
                                              .keys = &published.key,
                                              .keys_len = 1,
                                              .found = wrong,
                                              .arg = &published});
    seal_take_checkpoint(seal, 1, buf_bytes(&published.checkpoint));
    CU_ASSERT(published.wrong == 1 && strstr(published.text, "another log, thole/ns/3") != NULL);
    seal_take_leaves(seal, 2,
                     THOLE_STR("\1\0\0\0\0\0\0\0\1"
                               "0123456789012345678901234567890123456789012345678901234567890123"));
    CU_ASSERT(published.wrong == 2 && strstr(published.text, "some are missing") != NULL);
    seal_destroy(seal);
    release(&published);
    story_end(log);
}

/* Answers of a server, at each place of the stream and under each subject, change nothing and are counted. */
static void test_answers(void)
{
    static const thole_slice answer =
        THOLE_STR_INIT("{\"type\":\"io.nats.jetstream.api.v1.account_info_response\",\"memory\":0}");
    struct published published;
    struct log *log = story_written();
    publish(&published, log);
    log->seal = seal_of(&published, &published.key);
    for (size_t i = 0; i < 3; i++) {
        seal_take_leaves(log->seal, 10 * i, answer);
        seal_take_checkpoint(log->seal, 10 * i + 1, answer);
        seal_take_list(log->seal, 10 * i + 2, answer);
        if (i == 0)
            seal_take_leaves(log->seal, 5, buf_bytes(&published.leaves));
        if (i == 1)
            seal_take_checkpoint(log->seal, 15, buf_bytes(&published.checkpoint));
    }
    seal_end(log->seal);
    (void)story_check(log);
    want(log, "answers of a server", "");
    CU_ASSERT_EQUAL(published.wrong, 0);
    CU_ASSERT_EQUAL(seal_foreign(log->seal), 9);
    CU_ASSERT(seal_signed(log->seal) > 0);
    seal_destroy(log->seal);
    log->seal = NULL;
    release(&published);
    story_end(log);
}

static const struct thole_test tests[] = {
    {"answers of a server", test_answers},
    {"what is right", test_right},
    {"the end of a log", test_the_end},
    {"under cover of a deletion", test_cover},
    {"a log that is written anew", test_written_anew},
    {"forged leaves and checkpoints", test_forged_seals},
    {"seals", test_seals},
};
THOLE_TEST_MAIN("seal", tests)
