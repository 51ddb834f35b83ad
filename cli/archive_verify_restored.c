/* archive verify without files: whether the receipts of what is restored are what a key has signed. */
#include "archive.h"
#include "archive_receipt.h"
#include "client_restored.h"
#include "jscan.h"
#include "listing.h"
#include "table.h"

struct verifying {
    struct listing listing;
    const struct audit_keys *keys;
    struct thole_client *client;
    uint64_t findings;
    thole_error error; /* of a look at the stream */
};

/* A receipt that was signed for an earlier restoration of the instance has a valid signature, but does not
 * describe this one. Receipts of earlier versions do not say where the records are. */
static thole_status is_of_earlier(const struct verifying *verifying, thole_slice instance,
                                  thole_slice receipt, bool *ret, thole_error *reterr)
{
    struct restored_place const place = client_restored_place(verifying->client, instance);
    thole_slice value;
    uint64_t said, first;
    *ret = false;
    if (!json_find(receipt, "first_stored", &value) || !json_uint(value, &said))
        return THOLE_OK;
    THOLE_TRY(restored_first(verifying->client->connection, &place, &first, reterr));
    *ret = said != first;
    return THOLE_OK;
}

static const char *archive_verify_restored_verdict(enum archive_signed is, bool earlier)
{
    switch (is) {
    case ARCHIVE_SIGNED: return earlier ? "of an earlier one" : "signed";
    case ARCHIVE_NOT_SIGNED: return "not signed";
    case ARCHIVE_SIGNED_BY_OTHERS: return "not signed by --key";
    case ARCHIVE_FORGED: return "forged";
    }
    return "";
}

static void archive_verify_restored_text_of(thole_slice receipt, const char *key, struct buf *to)
{
    thole_slice value;
    buf_clear(to);
    if (json_find(receipt, key, &value))
        (void)json_text(value, to);
}

static const struct table_column verified_columns[] = {
    {"RECEIPT", 20, 20, 0, false},
    {"INSTANCE", 36, 12, 0, false},
    {"BY", TABLE_WHOLE, 10, 1, false},
};

static void verified_row(const char *receipt, thole_slice instance, thole_slice by, bool first)
{
    struct table table;
    table_begin(&table, verified_columns, sizeof verified_columns / sizeof *verified_columns, first);
    table_text(&table, receipt);
    table_cell(&table, TONE_PLAIN, instance);
    table_cell(&table, TONE_PLAIN, by);
    table_release(&table);
}

static thole_status archive_verify_restored_verify_one(void *arg, thole_slice instance, thole_slice receipt)
{
    struct verifying *verifying = arg;
    struct listing *listing = &verifying->listing;
    enum archive_signed const is =
        archive_receipt_verify(receipt, verifying->client->topology.ns, instance, verifying->keys);
    struct buf by;
    bool earlier = false;
    if (is == ARCHIVE_SIGNED)
        THOLE_TRY(is_of_earlier(verifying, instance, receipt, &earlier, &verifying->error));
    buf_init(&by, RESTORED_RECEIPT_BYTES_MAX);
    archive_verify_restored_text_of(receipt, "by", &by);
    verifying->findings += is != ARCHIVE_SIGNED || earlier;
    switch (listing_row(listing, "thole.receipt.v1")) {
    case LISTING_STOP: buf_release(&by); return THOLE_CANCELLED;
    case LISTING_NAME: listing_name(instance); break;
    case LISTING_TABLE:
        verified_row(archive_verify_restored_verdict(is, earlier), instance, buf_bytes(&by),
                     listing->rows == 0);
        break;
    case LISTING_JSON:
        json_member(&listing->json, "instance", instance);
        json_member_text(&listing->json, "receipt", archive_verify_restored_verdict(is, earlier));
        json_member(&listing->json, "by", buf_bytes(&by));
        break;
    }
    buf_release(&by);
    return listing_row_end(listing);
}

int archive_verify_restored(struct cli *cli, const struct audit_keys *keys)
{
    struct verifying verifying = {.keys = keys};
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_DONE;
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    verifying.client = client;
    listing_begin(&verifying.listing, cli, "thole.receipt_verify.v1", "receipts", 0);
    thole_status const status = restored_list(client->connection, client->topology.ns,
                                              archive_verify_restored_verify_one, &verifying, &error);
    if (verifying.error.status != THOLE_OK)
        error = verifying.error;
    code = listing_end(&verifying.listing, status, &error, "nothing is restored from an archive");
    thole_client_close(client);
    return code == EXIT_DONE && verifying.findings > 0 ? EXIT_DIVERGED : code;
}
