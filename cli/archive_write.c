#include "archive_write.h"
#include "audit_scan.h"
#include "clock.h"
#include "file_fault.h"
#include "memory.h"
#include "old_executions.h"
#include "text.h"
#include "write_flaw.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MANIFEST_BYTES_MAX = 64 * 1024, SECTION_BYTES_MAX = 100 * 1024 * 1024 };

struct adding { /* one instance */
    struct archive_writer *writer;
    const struct archive_wish *wish;
    uint64_t first; /* execution, which stays with an instance that goes on; 0: not seen yet */
    bool full;      /* later records are not part of it */
    struct archive_facts facts;
    struct archive_seal *seal; /* NULL: without checkpoints */
    size_t taken_before;
    bool unsealed;
};

void archive_writer_init(struct archive_writer *writer, thole_client *client, const struct audit_keys *keys)
{
    uint32_t const partitions = client->topology.partitions;
    *writer = (struct archive_writer){.client = client, .keys = keys};
    writer->seals = memory_array(partitions, sizeof *writer->seals);
    for (uint32_t p = 0; p < partitions; p++)
        writer->seals[p].partition = p;
}

void archive_writer_release(struct archive_writer *writer)
{
    archive_writer_drop(writer);
    for (uint32_t p = 0; p < writer->client->topology.partitions; p++)
        archive_seal_release(&writer->seals[p]);
    free(writer->seals);
}

thole_status archive_writer_begin(struct archive_writer *writer, const char *path, thole_slice selection,
                                  thole_error *reterr)
{
    struct export_options const options = {.path = path,
                                           .form = HISTORY_BINARY,
                                           .ns = writer->client->topology.ns,
                                           .partitions = writer->client->topology.partitions,
                                           .selection = selection,
                                           .begun_ms = clock_wall_ms()};
    writer->instances = writer->records = writer->bytes = 0;
    thole_status const status = export_file_open(&writer->file, &options, reterr);
    writer->open = status == THOLE_OK;
    if (!writer->open)
        export_file_release(&writer->file);
    return status;
}

void archive_writer_drop(struct archive_writer *writer)
{
    if (!writer->open)
        return;
    export_file_remove(&writer->file);
    export_file_release(&writer->file);
    for (uint32_t p = 0; p < writer->client->topology.partitions; p++)
        writer->seals[p].taken_len = 0;
    writer->open = false;
}

/* ---- one instance ---- */

/* Of an instance that goes on, only some executions; of execution 0, which are events that came early, none.
 * A record that cannot be read is meant: then it is seen to be damaged. */
static bool archive_write_is_meant(struct adding *adding, thole_slice bytes)
{
    const struct archive_wish *wish = adding->wish;
    const struct archive_facts *facts = &adding->facts;
    struct audit_scan scan;
    if (wish->upto == 0 || !audit_scan(bytes, &scan) || scan.kind != RECORD_TURN)
        return true;
    if (adding->first == 0)
        adding->first = scan.execution;
    adding->full =
        scan.execution > wish->upto || (facts->bytes >= wish->bytes_max && scan.execution > facts->execution);
    return !adding->full && scan.execution > adding->first && scan.execution > wish->after;
}

static thole_status archive_write_write_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct adding *adding = arg;
    struct archive_writer *writer = adding->writer;
    uint64_t index;
    if (!archive_write_is_meant(adding, bytes))
        return adding->full ? THOLE_CANCELLED : THOLE_OK;
    archive_facts_take(&adding->facts, sequence, bytes);
    history_writer_record(&writer->file.writer, sequence, bytes);
    if (adding->seal != NULL) {
        struct record_hash const hash =
            record_hash_make(thole_slice_from(writer->client->topology.ns), adding->seal->partition, bytes);
        if (archive_seal_find(adding->seal, &hash, &index))
            archive_seal_take(adding->seal, index);
        else
            adding->unsealed = true;
    }
    return ferror(writer->file.work) ? THOLE_CANCELLED : THOLE_OK;
}

static thole_status begin_adding(struct archive_writer *writer, const struct archive_wish *wish,
                                 struct adding *ret, thole_error *reterr)
{
    uint32_t const p = subject_partition(wish->instance, writer->client->topology.partitions);
    *ret = (struct adding){.writer = writer, .wish = wish};
    if (writer->keys->len > 0) {
        ret->seal = &writer->seals[p];
        if (ret->seal->seal == NULL)
            THOLE_TRY(archive_seal_read(ret->seal, writer->client, writer->keys, (thole_slice){0}, reterr));
        ret->taken_before = ret->seal->taken_len;
    }
    archive_facts_begin(&ret->facts, p, wish->instance);
    return THOLE_OK;
}

static enum archive_added archive_write_check(const struct adding *adding, thole_status read)
{
    bool const goes_on = adding->wish->upto > 0;
    if (read == THOLE_NOT_FOUND || (read == THOLE_OK && adding->facts.records == 0))
        return ARCHIVE_GONE;
    if (read != THOLE_OK || adding->facts.damaged)
        return ARCHIVE_DAMAGED;
    if (goes_on ? adding->facts.status != THOLE_INSTANCE_CONTINUED_AS_NEW
                : !instance_has_ended(adding->facts.status))
        return ARCHIVE_NOT_ENDED;
    return adding->unsealed ? ARCHIVE_UNSEALED : ARCHIVE_ADDED;
}

thole_status archive_writer_add(struct archive_writer *writer, const struct archive_wish *wish,
                                enum archive_added *ret, uint64_t *ret_upto, thole_error *ret_why,
                                thole_error *reterr)
{
    struct adding adding;
    *ret_why = (thole_error){.status = THOLE_OK};
    THOLE_TRY(begin_adding(writer, wish, &adding, reterr));
    export_file_begin(&writer->file, wish->instance);
    thole_status status = archive_read_records(writer->client, wish->instance, wish->read,
                                               archive_write_write_record, &adding, ret_why);
    if (adding.full && status == THOLE_CANCELLED)
        status = THOLE_OK;
    if (ferror(writer->file.work))
        status = file_fault_write(writer->file.options.path, write_flaw(writer->file.work), reterr);
    else if (status != THOLE_OK && !export_is_missing(status))
        status = thole_fail(reterr, status, "%s", ret_why->text);
    else {
        *ret = archive_write_check(&adding, status);
        if (status == THOLE_OK && *ret == ARCHIVE_DAMAGED)
            (void)thole_fail(ret_why, THOLE_CORRUPT, "a record does not decode");
        status = THOLE_OK;
    }
    if (status == THOLE_OK && *ret == ARCHIVE_ADDED) {
        status = export_file_keep(&writer->file, reterr);
        writer->instances++;
        writer->records += adding.facts.records;
        writer->bytes += adding.facts.bytes;
    } else {
        export_file_drop(&writer->file);
        if (adding.seal != NULL)
            adding.seal->taken_len = adding.taken_before;
    }
    *ret_upto = adding.facts.execution;
    archive_facts_release(&adding.facts);
    return status;
}

/* ---- the end ---- */

static thole_status put_checkpoints(struct archive_writer *writer, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    for (uint32_t p = 0; p < writer->client->topology.partitions && status == THOLE_OK; p++) {
        struct buf section;
        if (writer->seals[p].taken_len == 0)
            continue;
        buf_init(&section, SECTION_BYTES_MAX);
        status = archive_seal_section(&writer->seals[p], &section, reterr);
        if (status == THOLE_OK)
            history_writer_section(&writer->file.writer, "checkpoint", buf_bytes(&section));
        buf_release(&section);
    }
    return status;
}

static void archive_write_put_manifest(const struct archive_writer *writer, struct buf *to)
{
    char time[TIME_TEXT_BYTES], digest[HISTORY_DIGEST_TEXT_LEN + 1];
    struct json json;
    json_to_buf(&json, to);
    json_object(&json);
    json_member_text(&json, "schema", "thole.export.manifest.v1");
    json_member_text(&json, "namespace", writer->client->topology.ns);
    text_time(clock_wall_ms(), time);
    json_member_text(&json, "ended", time);
    json_member_number(&json, "instances", writer->file.writer.totals.instances);
    json_member_number(&json, "records", writer->file.writer.totals.records);
    history_digest_text(&writer->file.writer.totals.digest, digest);
    json_member_text(&json, "sha256", digest);
    json_member_bool(&json, "complete", true);
    json_member_number(&json, "missing_count", 0);
    json_key(&json, "missing");
    json_array(&json);
    json_end(&json);
    json_end(&json);
}

thole_status archive_writer_finish(struct archive_writer *writer, thole_error *reterr)
{
    struct buf manifest;
    buf_init(&manifest, MANIFEST_BYTES_MAX);
    archive_write_put_manifest(writer, &manifest);
    thole_status status = put_checkpoints(writer, reterr);
    if (status == THOLE_OK)
        status = export_file_finish(&writer->file, buf_bytes(&manifest), reterr);
    buf_release(&manifest);
    if (status != THOLE_OK) {
        archive_writer_drop(writer);
        return status;
    }
    export_file_release(&writer->file);
    writer->open = false;
    return THOLE_OK;
}
