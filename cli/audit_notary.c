/* audit checkpoint: verifies each log, and publishes leaves and a signed checkpoint for what came since the
 * last one. */
#include "audit_notary.h"
#include "audit_stream.h"
#include "clock.h"
#include "listing.h"
#include "memory.h"
#include "sealer.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PUBLISHED_BYTES_MAX = 512 * 1024, CONFLICTS_MAX = 8 };

struct published { /* in the audit stream, of one log */
    struct seal *seal;
    uint64_t read, leaves; /* sequences: of the last message that was read, of the last leaves */
};

struct log { /* of one partition */
    struct notary *notary;
    uint32_t partition;
    struct published published;
    struct audit *audit;
    uint64_t read; /* sequence up to which it was read */
    uint64_t findings;
    uint64_t is_signed; /* records of the last checkpoint with these keys */
    bool said;          /* the first checkpoint was reported */
    bool wrong;
    uint64_t *lists; /* records that list dispensable ones: copies are not published yet */
    size_t lists_len, lists_cap;
};

struct notary {
    struct cli *cli;
    thole_client *client;
    struct audit_keys keys;
    struct log *logs;
    struct listing listing;
    bool wrong;
};

/* ---- the audit stream ---- */

static thole_status audit_notary_take_published(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct published *published = arg;
    published->read = sequence;
    if (audit_stream_is(delivery->subject, AUDIT_LEAVES)) {
        published->leaves = sequence;
        seal_take_leaves(published->seal, sequence, delivery->body);
    } else if (audit_stream_is(delivery->subject, AUDIT_CHECKPOINT_SUBJECT)) {
        seal_take_checkpoint(published->seal, sequence, delivery->body);
    } else if (audit_stream_is(delivery->subject, AUDIT_LIST)) {
        seal_take_list(published->seal, sequence, delivery->body);
    }
    return THOLE_OK;
}

/* Reads newly published messages of the partition. */
static thole_status audit_notary_read_published(thole_client *client, uint32_t partition,
                                                struct published *published, thole_error *reterr)
{
    uint64_t const before = published->read;
    thole_status const status = audit_stream_read(client->connection, client->topology.ns, partition,
                                                  before + 1, audit_notary_take_published, published, reterr);
    if (status == THOLE_OK && (published->read > before || before == 0))
        seal_end(published->seal);
    return status;
}

thole_status notary_read(thole_client *client, uint32_t partition, struct seal *seal, thole_error *reterr)
{
    struct published published = {.seal = seal};
    return audit_notary_read_published(client, partition, &published, reterr);
}

/* ---- one log ---- */

static void audit_notary_on_finding(void *arg, const struct audit_finding *finding)
{
    struct log *log = arg;
    log->findings++;
    cli_note(log->notary->cli, "partition %" PRIu32 " #%" PRIu64 ": %s: %s", log->partition,
             finding->sequence, audit_fault_name(finding->fault), finding->text);
}

static void audit_notary_on_wrong_seal(void *arg, uint64_t sequence, const char *text)
{
    struct log *log = arg;
    log->findings++;
    cli_note(log->notary->cli, "partition %" PRIu32 ", message #%" PRIu64 " of the audit stream: %s",
             log->partition, sequence, text);
}

static thole_status audit_notary_on_record(void *arg, const struct audit_record *record)
{
    struct log *log = arg;
    audit_take(log->audit, record);
    if (record->kind != RECORD_POSITION || !sealer_is_list(record->bytes) ||
        seal_has_list(log->published.seal, record->bytes))
        return THOLE_OK;
    log->lists = memory_reserve(log->lists, &log->lists_cap, log->lists_len + 1, sizeof *log->lists);
    log->lists[log->lists_len++] = record->sequence;
    return THOLE_OK;
}

/* Before their leaves: they go after their time. */
static thole_status audit_notary_publish_lists(struct log *log, thole_error *reterr)
{
    thole_client *const client = log->notary->client;
    for (size_t i = 0; i < log->lists_len; i++)
        THOLE_TRY(audit_stream_publish_list(client->connection, client->topology.ns, log->partition,
                                            log->lists[i], reterr));
    log->lists_len = 0;
    return THOLE_OK;
}

static void audit_notary_open_log(struct notary *notary, struct log *log)
{
    thole_slice const ns = thole_slice_from(notary->client->topology.ns);
    log->notary = notary;
    log->published.seal = seal_create(&(struct seal_options){.ns = ns,
                                                             .partition = log->partition,
                                                             .keys = notary->keys.keys,
                                                             .keys_len = notary->keys.len,
                                                             .found = audit_notary_on_wrong_seal,
                                                             .arg = log});
    log->audit = audit_create(&(struct audit_options){.scope = AUDIT_PARTITION,
                                                      .ns = ns,
                                                      .partition = log->partition,
                                                      .seal = log->published.seal,
                                                      .extends = true,
                                                      .found = audit_notary_on_finding,
                                                      .arg = log});
}

/* THOLE_CONFLICT: others have published leaves meanwhile, and theirs hold. */
static thole_status audit_notary_publish_leaves(struct log *log, struct buf *message, thole_error *reterr)
{
    thole_client *client = log->notary->client;
    struct seal *seal = log->published.seal;
    while (seal_published(seal) < seal_leaves(seal)) {
        uint64_t const first = seal_published(seal), left = seal_leaves(seal) - first,
                       n = left < LEAVES_MESSAGE_MAX ? left : LEAVES_MESSAGE_MAX;
        buf_clear(message);
        seal_leaves_message(seal, first, n, message);
        THOLE_TRY(buf_status(message));
        THOLE_TRY(audit_stream_publish_leaves(client->connection, client->topology.ns, log->partition,
                                              buf_bytes(message), &log->published.leaves, reterr));
        seal_note_published(seal, first + n);
    }
    return THOLE_OK;
}

static thole_status audit_notary_publish(struct log *log, thole_error *reterr)
{
    struct notary *notary = log->notary;
    thole_client *client = notary->client;
    struct log_place const place = audit_place_of_last(log->audit);
    struct buf message;
    buf_init(&message, PUBLISHED_BYTES_MAX);
    thole_status status = audit_notary_publish_lists(log, reterr);
    if (status == THOLE_OK)
        status = audit_notary_publish_leaves(log, &message, reterr);
    buf_clear(&message);
    if (status == THOLE_OK)
        status = seal_checkpoint_message(log->published.seal, &place, notary->keys.keys, notary->keys.len,
                                         &message, reterr);
    if (status == THOLE_OK)
        status = audit_stream_publish(client->connection, client->topology.ns, log->partition,
                                      AUDIT_CHECKPOINT_SUBJECT, buf_bytes(&message), reterr);
    if (status == THOLE_OK)
        log->is_signed = seal_leaves(log->published.seal);
    buf_release(&message);
    return status;
}

static thole_status audit_notary_print_row(struct log *log, bool is_new)
{
    struct listing *listing = &log->notary->listing;
    if (listing_row(listing, "thole.audit_checkpoint.v1") == LISTING_JSON) {
        json_member_number(&listing->json, "partition", log->partition);
        json_member_number(&listing->json, "records", log->is_signed);
        json_member_bool(&listing->json, "new", is_new);
    } else {
        if (listing->rows == 0)
            (void)printf("%9s  %12s  %s\n", "PARTITION", "RECORDS", "CHECKPOINT");
        (void)printf("%9" PRIu32 "  %12" PRIu64 "  %s\n", log->partition, log->is_signed,
                     is_new ? "new" : "there");
    }
    return listing_row_end(listing);
}

/* Published messages are read before the log, which then has all records that they cover. */
static thole_status audit_notary_read_log(struct log *log, thole_error *reterr)
{
    thole_client *client = log->notary->client;
    THOLE_TRY(audit_notary_read_published(client, log->partition, &log->published, reterr));
    log->is_signed = seal_signed(log->published.seal);
    return client_log_read(client, log->partition, &log->read, audit_notary_on_record, log, reterr);
}

/* Nothing is signed that is not whole. */
static thole_status seal_log(struct log *log, bool *ret_new, thole_error *reterr)
{
    THOLE_TRY(audit_notary_read_log(log, reterr));
    if (log->findings > 0 || !audit_is_clean(log->audit)) {
        log->notary->wrong = log->wrong = true;
        cli_note(log->notary->cli,
                 "partition %" PRIu32 " is not what was written and gets no checkpoint: thole audit verify",
                 log->partition);
        return THOLE_OK;
    }
    *ret_new = seal_leaves(log->published.seal) > log->is_signed;
    return *ret_new ? audit_notary_publish(log, reterr) : THOLE_OK;
}

static thole_status audit_notary_round_of(struct log *log, thole_error *reterr)
{
    bool is_new = false;
    thole_status status = seal_log(log, &is_new, reterr);
    for (unsigned i = 0; status == THOLE_CONFLICT && i < CONFLICTS_MAX; i++)
        status = seal_log(log, &is_new, reterr);
    THOLE_TRY(status);
    if (log->wrong)
        return THOLE_OK;
    bool const says = log->is_signed > 0 && (is_new || !log->said);
    log->said = true;
    return says ? audit_notary_print_row(log, is_new) : THOLE_OK;
}

/* ---- the verb ---- */

static thole_status round_of_all(struct notary *notary, thole_error *reterr)
{
    for (uint32_t p = 0; p < notary->client->topology.partitions; p++) {
        struct log *log = &notary->logs[p];
        log->partition = p;
        if (log->audit == NULL)
            audit_notary_open_log(notary, log);
        THOLE_TRY(audit_notary_round_of(log, reterr));
    }
    return THOLE_OK;
}

static void audit_notary_wait_ms(uint64_t ms)
{
    struct timespec pause = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&pause, NULL);
}

/* With --every until a signal ends it, or an error. */
static thole_status audit_notary_run(struct notary *notary, thole_error *reterr)
{
    const struct cli *cli = notary->cli;
    thole_status status =
        audit_stream_require(notary->client->connection, notary->client->topology.ns, reterr);
    listing_begin(&notary->listing, cli, "thole.audit_checkpoint_list.v1", "checkpoints", 0);
    if (status == THOLE_OK)
        status = round_of_all(notary, reterr);
    while (status == THOLE_OK && cli->options.every_ms > 0 && !notary->wrong) {
        (void)fflush(stdout);
        audit_notary_wait_ms(cli->options.every_ms);
        status = round_of_all(notary, reterr);
    }
    return status;
}

static void close_logs(struct notary *notary)
{
    for (uint32_t p = 0; p < notary->client->topology.partitions; p++) {
        audit_destroy(notary->logs[p].audit);
        seal_destroy(notary->logs[p].published.seal);
        free(notary->logs[p].lists);
    }
    free(notary->logs);
}

int audit_checkpoint(struct cli *cli)
{
    struct notary notary = {.cli = cli};
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_DONE;
    if (cli->words_len != 1 || cli->options.key == NULL)
        return cli_misused(cli, cli->words_len != 1
                                    ? "checkpoint is of all partitions: no word belongs behind it"
                                    : "--key is missing: the file of the private key");
    if (cli->options.every_ms > 0 && cli->options.output == OUTPUT_JSON)
        return cli_misused(cli, "--every never ends, so it is no JSON document: use -o jsonl");
    if (!audit_keys_read(cli, true, &notary.keys, &code))
        return code;
    notary.client = cli_connect(cli, &code);
    if (notary.client != NULL) {
        notary.logs = memory_array(notary.client->topology.partitions, sizeof *notary.logs);
        thole_status const status = audit_notary_run(&notary, &error);
        code = listing_end(&notary.listing, status, &error, "the logs are empty");
        if (code == EXIT_DONE && notary.wrong)
            code = EXIT_DIVERGED;
        close_logs(&notary);
        thole_client_close(notary.client);
    }
    audit_keys_forget(&notary.keys);
    return code;
}
