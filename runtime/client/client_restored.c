#include "client_restored.h"
#include "jscan.h"

struct restored_place client_restored_place(const struct thole_client *client, thole_slice instance)
{
    return (struct restored_place){.ns = client->topology.ns,
                                   .partition = subject_partition(instance, client->topology.partitions),
                                   .instance = instance};
}

static bool client_restored_read_number(thole_slice receipt, const char *key, uint64_t *ret)
{
    thole_slice value;
    return json_find(receipt, key, &value) && json_uint(value, ret);
}

thole_status client_restored_find(struct thole_client *client, thole_slice instance,
                                  struct client_restored *ret, thole_error *reterr)
{
    struct restored_place const place = client_restored_place(client, instance);
    struct buf receipt;
    *ret = (struct client_restored){.is = false};
    buf_init(&receipt, RESTORED_RECEIPT_BYTES_MAX);
    thole_status status = restored_receipt(client->connection, &place, &ret->is, &receipt, reterr);
    if (status == THOLE_OK && ret->is &&
        !(client_restored_read_number(buf_bytes(&receipt), "records", &ret->records) &&
          client_restored_read_number(buf_bytes(&receipt), "execution", &ret->execution)))
        status = thole_fail(reterr, THOLE_CORRUPT, "the receipt of the restored \"%.*s\" cannot be read",
                            THOLE_FMT(instance));
    buf_release(&receipt);
    return status;
}

struct giving {
    client_record_fn *each;
    void *arg;
    uint64_t records, last;
    bool stopped; /* by @p each */
};

static thole_status client_restored_give(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct giving *giving = arg;
    if (sequence <= giving->last)
        return THOLE_CORRUPT; /* out of order: client_restored_records() says it */
    giving->last = sequence;
    giving->records++;
    thole_status const status = giving->each(giving->arg, sequence, bytes);
    giving->stopped = status != THOLE_OK;
    return status;
}

thole_status client_restored_records(struct thole_client *client, thole_slice instance,
                                     client_record_fn *each, void *arg, thole_error *reterr)
{
    struct restored_place const place = client_restored_place(client, instance);
    struct giving giving = {.each = each, .arg = arg};
    struct client_restored restored;
    THOLE_TRY(client_restored_find(client, instance, &restored, reterr));
    if (!restored.is)
        return thole_fail(reterr, THOLE_NOT_FOUND, "nothing was restored of \"%.*s\"", THOLE_FMT(instance));
    thole_status const status =
        restored_read(client->connection, &place, client_restored_give, &giving, reterr);
    if (giving.stopped || (status != THOLE_OK && status != THOLE_CORRUPT))
        return status;
    if (status == THOLE_CORRUPT || giving.records != restored.records)
        return thole_fail(
            reterr, THOLE_CORRUPT,
            "what was restored of \"%.*s\" is not what its receipt says: it is removed by thole "
            "delete, and restored again from its archive",
            THOLE_FMT(instance));
    return THOLE_OK;
}
