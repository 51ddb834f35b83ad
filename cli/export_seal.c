#include "export_seal.h"
#include "memory.h"
#include "record_hash.h"
#include <stdlib.h>

enum {
    SECTION_LEAVES_MAX = 64 * 1024,
    SECTION_BYTES_MAX = 64 * 1024 * 1024,
};

struct export_seal_record {
    uint32_t partition;
    struct record_hash hash;
};

void export_seal_release(struct export_seal *seal)
{
    free(seal->records);
    seal->records = NULL;
    seal->len = seal->cap = 0;
}

void export_seal_take(struct export_seal *seal, uint32_t partition, thole_slice bytes)
{
    if (seal->keys.len == 0)
        return;
    seal->records = memory_reserve(seal->records, &seal->cap, seal->len + 1, sizeof *seal->records);
    seal->records[seal->len++] = (struct export_seal_record){
        partition, record_hash_make(thole_slice_from(seal->client->topology.ns), partition, bytes)};
}

/* ---- an existing .part ---- */

struct resuming {
    struct export_seal *seal;
    uint32_t partition;
};

static thole_status export_seal_on_place(void *arg, const char *ns, uint32_t partition)
{
    struct resuming *resuming = arg;
    (void)ns;
    resuming->partition = partition;
    return THOLE_OK;
}

static thole_status export_seal_on_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    const struct resuming *resuming = arg;
    (void)sequence;
    export_seal_take(resuming->seal, resuming->partition, bytes);
    return THOLE_OK;
}

thole_status export_seal_resume(struct export_seal *seal, struct export_file *file, thole_error *reterr)
{
    struct resuming resuming = {.seal = seal};
    struct history_file_reader const reader = {
        .record = export_seal_on_record, .place = export_seal_on_place, .arg = &resuming, .unfinished = true};
    if (seal->keys.len == 0 || file->done.len == 0)
        return THOLE_OK;
    rewind(file->work);
    thole_status const status = history_file_read(file->work, &reader, reterr);
    clearerr(file->work);
    (void)fseek(file->work, 0, SEEK_END);
    return status;
}

/* ---- the sections ---- */

static int by_partition(const void *a, const void *b)
{
    const struct export_seal_record *x = a, *y = b;
    return (x->partition > y->partition) - (x->partition < y->partition);
}

static int export_seal_ascending(const void *a, const void *b)
{
    uint64_t const x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static thole_status export_seal_put_section(struct archive_seal *of, const uint64_t *indices, size_t n,
                                            struct export_file *file, thole_error *reterr)
{
    struct buf section;
    buf_init(&section, SECTION_BYTES_MAX);
    for (size_t i = 0; i < n; i++)
        archive_seal_take(of, indices[i]);
    thole_status const status = archive_seal_section(of, &section, reterr);
    if (status == THOLE_OK)
        history_writer_section(&file->writer, "checkpoint", buf_bytes(&section));
    buf_release(&section);
    return status;
}

/* The records are of one partition. */
static thole_status put_partition(struct export_seal *seal, const struct export_seal_record *records,
                                  size_t n, struct export_file *file, thole_error *reterr)
{
    struct archive_seal of = {.partition = records[0].partition};
    uint64_t *const indices = memory_array(n, sizeof *indices);
    size_t found = 0;
    thole_status status = archive_seal_read(&of, seal->client, &seal->keys, (thole_slice){0}, reterr);
    for (size_t i = 0; i < n && status == THOLE_OK; i++)
        found += archive_seal_find(&of, &records[i].hash, &indices[found]);
    if (found > 0)
        qsort(indices, found, sizeof *indices, export_seal_ascending);
    if (status == THOLE_OK && found == 0 && of.size > 0)
        status = export_seal_put_section(&of, indices, 0, file, reterr);
    for (size_t i = 0; i < found && status == THOLE_OK; i += SECTION_LEAVES_MAX)
        status = export_seal_put_section(
            &of, indices + i, found - i < SECTION_LEAVES_MAX ? found - i : SECTION_LEAVES_MAX, file, reterr);
    seal->sealed += found;
    seal->bare += status == THOLE_OK && of.size == 0;
    archive_seal_release(&of);
    free(indices);
    return status;
}

thole_status export_seal_put(struct export_seal *seal, struct export_file *file, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    if (seal->len > 0)
        qsort(seal->records, seal->len, sizeof *seal->records, by_partition);
    for (size_t i = 0, n; i < seal->len && status == THOLE_OK; i += n) {
        for (n = 1; i + n < seal->len && seal->records[i + n].partition == seal->records[i].partition; n++)
            ;
        status = put_partition(seal, &seal->records[i], n, file, reterr);
    }
    return status;
}
