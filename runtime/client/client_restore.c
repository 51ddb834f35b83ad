#include "client_restore.h"
#include "jscan.h"

/* ---- the present state ---- */

struct read_back {
    const char *ns;
    uint32_t partition;
    uint64_t records, sequence;
    struct record_hash last;
    bool ordered;
};

static thole_status take_back(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct read_back *back = arg;
    back->ordered &= sequence > back->sequence;
    back->sequence = sequence;
    back->records++;
    back->last = record_hash_make(thole_slice_from(back->ns), back->partition, bytes);
    return THOLE_OK;
}

/* The last record names the ones before it. */
thole_status client_restore_check(struct thole_client *client, const struct client_restore_wish *wish,
                                  bool *ret, thole_error *reterr)
{
    struct restored_place const place = client_restored_place(client, wish->instance);
    struct read_back back = {.ns = place.ns, .partition = place.partition, .ordered = true};
    THOLE_TRY(restored_read(client->connection, &place, take_back, &back, reterr));
    *ret = back.ordered && back.records == wish->records && record_hash_equal(&back.last, &wish->last);
    return THOLE_OK;
}

struct naming {
    const struct client_restore_wish *wish;
    bool named; /* by a deletion of the log */
};

static thole_status client_restore_take_deletion(void *arg, uint64_t sequence, thole_slice subject,
                                                 thole_slice body)
{
    struct naming *naming = arg;
    struct record record;
    struct arena arena;
    (void)sequence;
    (void)subject;
    arena_init(&arena, CLIENT_ARENA_MAX);
    if (history_decode(body, naming->wish->instance, &arena, &record, NULL) == THOLE_OK &&
        record.kind == RECORD_DELETED)
        naming->named |= record_hash_known(&record.previous_of_instance.hash)
                             ? record_hash_equal(&record.previous_of_instance.hash, &naming->wish->last)
                             : naming->wish->sealed;
    arena_release(&arena);
    return THOLE_OK;
}

/* Checks the log's records of the id. */
static thole_status client_restore_judge_log(struct thole_client *client,
                                             const struct client_restore_wish *wish, enum client_restore *ret,
                                             thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    struct naming naming = {.wish = wish};
    uint64_t execution = 0;
    bool deleted = false;
    THOLE_TRY(history_latest(client, wish->instance, &execution, &deleted, reterr));
    *ret = execution > 0 ? RESTORE_EXISTS : RESTORE_UNKNOWN;
    if (execution == 0 && !deleted && wish->sealed) { /* the deletion may be gone: the checkpoints prove it */
        bool gone = false;
        THOLE_TRY(deletions_gone(client, wish->instance, &gone, reterr));
        *ret = gone ? RESTORE_GOES : RESTORE_UNKNOWN;
    }
    if (!deleted)
        return THOLE_OK;
    thole_status status = place_deletion(client, wish->instance, &place, reterr);
    if (status == THOLE_OK)
        status = place_walk(client, &place, 1, UINT64_MAX, client_restore_take_deletion, &naming, reterr);
    *ret = naming.named ? RESTORE_GOES : RESTORE_OTHER;
    place_release(&place);
    return status;
}

static bool receipt_is_of(thole_slice receipt, const struct client_restore_wish *wish)
{
    thole_slice value;
    struct buf text, last;
    buf_init(&text, RESTORED_RECEIPT_BYTES_MAX);
    buf_init(&last, RECORD_HASH_BYTES);
    bool const is = json_find(receipt, "last_record", &value) && json_text(value, &text) &&
                    base64_decode(buf_bytes(&text), &last) &&
                    thole_slice_equal(buf_bytes(&last), record_hash_slice(&wish->last));
    buf_release(&text);
    buf_release(&last);
    return is;
}

thole_status client_restore_judge(struct thole_client *client, const struct client_restore_wish *wish,
                                  enum client_restore *ret, thole_error *reterr)
{
    struct restored_place const place = client_restored_place(client, wish->instance);
    struct buf receipt;
    bool is = false, whole = false;
    THOLE_TRY(client_restore_judge_log(client, wish, ret, reterr));
    if (*ret != RESTORE_GOES)
        return THOLE_OK;
    buf_init(&receipt, RESTORED_RECEIPT_BYTES_MAX);
    thole_status status = restored_receipt(client->connection, &place, &is, &receipt, reterr);
    if (status == THOLE_OK && is && !receipt_is_of(buf_bytes(&receipt), wish))
        *ret = RESTORE_TAKEN;
    else if (status == THOLE_OK && is) {
        status = client_restore_check(client, wish, &whole, reterr);
        *ret = whole ? RESTORE_ALREADY : RESTORE_BROKEN;
    }
    buf_release(&receipt);
    return status;
}
