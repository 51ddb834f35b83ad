#include "archive_seal.h"
#include "audit_stream.h"
#include "memory.h"
#include "merkle_many.h"
#include "text.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct seal_reading {
    struct archive_seal *to;
    const struct audit_keys *keys;
    bool wrong;
    thole_error *reterr;
};

/* ---- reading ---- */

static void on_wrong(void *arg, uint64_t sequence, const char *text)
{
    struct seal_reading *reading = arg;
    if (!reading->wrong && sequence == 0)
        (void)thole_fail(reading->reterr, THOLE_CORRUPT, "partition %u, the kept checkpoint: %s",
                         reading->to->partition, text);
    else if (!reading->wrong)
        (void)thole_fail(reading->reterr, THOLE_CORRUPT,
                         "partition %u, message #%llu of the audit stream: %s", reading->to->partition,
                         (unsigned long long)sequence, text);
    reading->wrong = true;
}

/* Keeps the largest that one of the keys has signed; seal_end() says whether it fits. */
static void keep_note(struct seal_reading *reading, thole_slice note)
{
    struct checkpoint checkpoint;
    thole_slice text;
    for (size_t i = 0; i < reading->keys->len; i++)
        if (note_verify(note, &reading->keys->keys[i], &text, NULL) == THOLE_OK &&
            checkpoint_parse(text, &checkpoint, NULL) == THOLE_OK && checkpoint.size >= reading->to->size) {
            reading->to->size = checkpoint.size;
            buf_clear(&reading->to->note);
            buf_slice(&reading->to->note, note);
        }
}

static thole_status archive_seal_take_message(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct seal_reading *reading = arg;
    if (audit_stream_is(delivery->subject, AUDIT_LEAVES))
        seal_take_leaves(reading->to->seal, sequence, delivery->body);
    if (!audit_stream_is(delivery->subject, AUDIT_CHECKPOINT_SUBJECT))
        return THOLE_OK;
    seal_take_checkpoint(reading->to->seal, sequence, delivery->body);
    keep_note(reading, delivery->body);
    return THOLE_OK;
}

static int by_record(const void *a, const void *b, void *arg)
{
    const struct seal *seal = arg;
    struct leaf const x = seal_leaf(seal, *(const uint64_t *)a), y = seal_leaf(seal, *(const uint64_t *)b);
    return memcmp(x.record.bytes, y.record.bytes, sizeof x.record.bytes);
}

static void index_leaves(struct archive_seal *to)
{
    if (to->size == 0)
        return;
    to->by_hash = memory_array(to->size, sizeof *to->by_hash);
    for (uint64_t i = 0; i < to->size; i++)
        to->by_hash[i] = i;
    qsort_r(to->by_hash, to->size, sizeof *to->by_hash, by_record, to->seal);
}

thole_status archive_seal_read(struct archive_seal *to, thole_client *client, const struct audit_keys *keys,
                               thole_slice kept, thole_error *reterr)
{
    const char *const ns = client->topology.ns;
    struct seal_reading reading = {.to = to, .keys = keys, .reterr = reterr};
    assert(to->seal == NULL);
    buf_init(&to->note, NOTE_TEXT_BYTES_MAX);
    to->seal = seal_create(&(struct seal_options){.ns = thole_slice_from(ns),
                                                  .partition = to->partition,
                                                  .keys = keys->keys,
                                                  .keys_len = keys->len,
                                                  .found = on_wrong,
                                                  .arg = &reading});
    if (kept.len > 0)
        seal_take_checkpoint(to->seal, 0, kept);
    THOLE_TRY(audit_stream_read(client->connection, ns, to->partition, 1, archive_seal_take_message, &reading,
                                reterr));
    seal_end(to->seal);
    if (reading.wrong)
        return THOLE_CORRUPT;
    THOLE_TRY(buf_status(&to->note));
    assert(kept.len > 0 ? seal_signed(to->seal) >= to->size : seal_signed(to->seal) == to->size);
    return THOLE_OK;
}

void archive_seal_release(struct archive_seal *seal)
{
    seal_destroy(seal->seal);
    buf_release(&seal->note);
    free(seal->by_hash);
    free(seal->taken);
    *seal = (struct archive_seal){.partition = seal->partition};
}

bool archive_seal_find(struct archive_seal *seal, const struct record_hash *record, uint64_t *ret_index)
{
    uint64_t low = 0, high = seal->size;
    if (seal->by_hash == NULL)
        index_leaves(seal);
    while (low < high) {
        uint64_t const middle = low + (high - low) / 2;
        struct leaf const leaf = seal_leaf(seal->seal, seal->by_hash[middle]);
        int const order = memcmp(leaf.record.bytes, record->bytes, sizeof record->bytes);
        if (order == 0) {
            *ret_index = seal->by_hash[middle];
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

void archive_seal_take(struct archive_seal *seal, uint64_t index)
{
    seal->taken = memory_reserve(seal->taken, &seal->taken_cap, seal->taken_len + 1, sizeof *seal->taken);
    seal->taken[seal->taken_len++] = index;
}

/* ---- the section ---- */

static int archive_seal_ascending(const void *a, const void *b)
{
    uint64_t const x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static struct merkle_hash leaf_hash(const void *arg, uint64_t index)
{
    struct leaf const leaf = seal_leaf(arg, index);
    uint8_t bytes[LEAF_BYTES];
    memcpy(bytes, leaf.record.bytes, RECORD_HASH_BYTES);
    memcpy(bytes + RECORD_HASH_BYTES, leaf.instance.bytes, RECORD_HASH_BYTES);
    return merkle_leaf((thole_slice){bytes, sizeof bytes});
}

static void base64_value(struct json *json, const uint8_t *bytes, size_t len)
{
    struct buf text;
    buf_init(&text, 2 * MERKLE_HASH_BYTES);
    text_base64(&text, (thole_slice){bytes, len});
    json_string(json, buf_bytes(&text));
    buf_release(&text);
}

static void proof_hash(void *arg, const struct merkle_hash *hash)
{
    base64_value(arg, hash->bytes, sizeof hash->bytes);
}

/* Each once: two records of a stream that was forged may be the same. */
static void sort_taken(struct archive_seal *seal)
{
    size_t len = 1;
    if (seal->taken_len == 0)
        return;
    qsort(seal->taken, seal->taken_len, sizeof *seal->taken, archive_seal_ascending);
    for (size_t i = 1; i < seal->taken_len; i++)
        if (seal->taken[i] != seal->taken[len - 1])
            seal->taken[len++] = seal->taken[i];
    seal->taken_len = len;
}

thole_status archive_seal_section(struct archive_seal *seal, struct buf *to, thole_error *reterr)
{
    struct json json;
    assert(seal->size > 0);
    sort_taken(seal);
    json_to_buf(&json, to);
    json_object(&json);
    json_member_text(&json, "schema", "thole.export.checkpoint.v1");
    json_member_number(&json, "partition", seal->partition);
    json_member(&json, "note", buf_bytes(&seal->note));
    json_key(&json, "leaves");
    json_array(&json);
    for (size_t i = 0; i < seal->taken_len; i++) {
        struct leaf const leaf = seal_leaf(seal->seal, seal->taken[i]);
        json_object(&json);
        json_member_number(&json, "index", seal->taken[i]);
        json_key(&json, "record");
        base64_value(&json, leaf.record.bytes, sizeof leaf.record.bytes);
        json_end(&json);
    }
    json_end(&json);
    json_key(&json, "proof");
    json_array(&json);
    if (seal->taken_len > 0)
        merkle_prove_many(seal->size, seal->taken, seal->taken_len, leaf_hash, seal->seal, proof_hash, &json);
    json_end(&json);
    json_end(&json);
    seal->taken_len = 0;
    return buf_status(to) == THOLE_OK
               ? THOLE_OK
               : thole_fail(reterr, buf_status(to),
                            "the proofs of one archive are too large: a smaller --file-size");
}
