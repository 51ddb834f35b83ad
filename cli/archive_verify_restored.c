/* archive verify without files: whether the receipts of what is restored are what a key has signed. */
#include "archive.h"
#include "archive_receipt.h"
#include "cells.h"
#include "client_restored.h"
#include "jscan.h"
#include "listing.h"

struct verifying {
    struct listing listing;
    const struct audit_keys *keys;
    struct thole_client *client;
    uint64_t findings;
    thole_error error; /* of a look at the stream */
};

/* What was signed for an earlier restoration of the instance is signed, and yet not true of this one.
 * Receipts of earlier versions do not say where the records are. */
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

static const char *verdict(enum archive_signed is, bool earlier)
{
    switch (is) {
    case ARCHIVE_SIGNED: return earlier ? "of an earlier one" : "signed";
    case ARCHIVE_NOT_SIGNED: return "not signed";
    case ARCHIVE_SIGNED_BY_OTHERS: return "not signed by --key";
    case ARCHIVE_FORGED: return "forged";
    }
    return "";
}

static void text_of(thole_slice receipt, const char *key, struct buf *to)
{
    thole_slice value;
    buf_clear(to);
    if (json_find(receipt, key, &value))
        (void)json_text(value, to);
}

static thole_status verify_one(void *arg, thole_slice instance, thole_slice receipt)
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
    text_of(receipt, "by", &by);
    verifying->findings += is != ARCHIVE_SIGNED || earlier;
    switch (listing_row(listing, "thole.receipt.v1")) {
    case LISTING_STOP: buf_release(&by); return THOLE_CANCELLED;
    case LISTING_NAME: listing_name(instance); break;
    case LISTING_TABLE:
        if (listing->rows == 0)
            (void)printf("%-20s  %-36s  %s\n", "RECEIPT", "INSTANCE", "BY");
        (void)printf("%-20s  ", verdict(is, earlier));
        print_cell(instance, 36, THOLE_ID_BYTES_MAX);
        (void)printf("  ");
        print_last_cell(buf_bytes(&by), THOLE_ID_BYTES_MAX);
        break;
    case LISTING_JSON:
        json_member(&listing->json, "instance", instance);
        json_member_text(&listing->json, "receipt", verdict(is, earlier));
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
    thole_status const status =
        restored_list(client->connection, client->topology.ns, verify_one, &verifying, &error);
    if (verifying.error.status != THOLE_OK)
        error = verifying.error;
    code = listing_end(&verifying.listing, status, &error, "nothing is restored from an archive");
    thole_client_close(client);
    return code == EXIT_DONE && verifying.findings > 0 ? EXIT_DIVERGED : code;
}
