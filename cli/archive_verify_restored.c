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
    const char *ns;
    uint64_t findings;
};

static const char *verdict(enum archive_signed is)
{
    switch (is) {
    case ARCHIVE_SIGNED: return "signed";
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
    enum archive_signed const is = archive_receipt_verify(receipt, verifying->ns, instance, verifying->keys);
    struct buf by;
    buf_init(&by, RESTORED_RECEIPT_BYTES_MAX);
    text_of(receipt, "by", &by);
    verifying->findings += is != ARCHIVE_SIGNED;
    switch (listing_row(listing, "thole.receipt.v1")) {
    case LISTING_STOP: buf_release(&by); return THOLE_CANCELLED;
    case LISTING_NAME: listing_name(instance); break;
    case LISTING_TABLE:
        if (listing->rows == 0)
            (void)printf("%-20s  %-36s  %s\n", "RECEIPT", "INSTANCE", "BY");
        (void)printf("%-20s  ", verdict(is));
        print_cell(instance, 36, THOLE_ID_BYTES_MAX);
        (void)printf("  ");
        print_last_cell(buf_bytes(&by), THOLE_ID_BYTES_MAX);
        break;
    case LISTING_JSON:
        json_member(&listing->json, "instance", instance);
        json_member_text(&listing->json, "receipt", verdict(is));
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
    verifying.ns = client->topology.ns;
    listing_begin(&verifying.listing, cli, "thole.receipt_verify.v1", "receipts", 0);
    thole_status const status =
        restored_list(client->connection, verifying.ns, verify_one, &verifying, &error);
    code = listing_end(&verifying.listing, status, &error, "nothing is restored from an archive");
    thole_client_close(client);
    return code == EXIT_DONE && verifying.findings > 0 ? EXIT_DIVERGED : code;
}
