#include "archive_check.h"
#include "export_readable.h"
#include "file_fault.h"
#include "history_file.h"
#include "jscan.h"
#include "memory.h"
#include "merkle_many.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NOTE_BYTES_MAX = NOTE_TEXT_BYTES_MAX, UNSEALED_SAID_MAX = 20 };

struct checked_record {
    struct record_hash hash;
    uint64_t sequence;
    uint32_t partition;
    size_t instance; /* in check->instances */
    bool sealed;
};

struct file_reading {
    struct archive_check *check;
    struct audit *audit;
    uint32_t partition;
    struct checked_record *records;
    size_t len, cap, sorted; /* sorted: the first so many are, by partition and hash */
    bool manifest;
    thole_error *reterr;
};

void archive_first_found(void *first, uint32_t partition, const struct audit_finding *finding)
{
    struct archive_first_finding *const to = first;
    if (!to->said)
        (void)thole_fail(
            to->reterr, THOLE_CORRUPT,
            "the archive is not what was written: %s, partition %" PRIu32 " #%" PRIu64 ": %s; %s",
            audit_fault_name(finding->fault), partition, finding->sequence, finding->text, to->then);
    to->said = true;
}

static void archive_check_found(struct file_reading *reading, enum audit_fault fault, const char *text)
{
    reading->check->findings++;
    reading->check->found(reading->check->arg, reading->partition,
                          &(struct audit_finding){.fault = fault, .text = text});
}

static void archive_check_on_finding(void *arg, const struct audit_finding *finding)
{
    struct file_reading *reading = arg;
    reading->check->findings++;
    reading->check->found(reading->check->arg, reading->partition, finding);
}

/* ---- histories ---- */

static thole_status archive_check_on_place(void *arg, const char *ns, uint32_t partition)
{
    struct file_reading *reading = arg;
    struct archive_check *check = reading->check;
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reading->reterr));
    if (check->ns[0] != '\0' && strcmp(check->ns, ns) != 0)
        return thole_fail(reading->reterr, THOLE_CORRUPT, "histories of namespaces %s and %s in one archive",
                          check->ns, ns);
    (void)snprintf(check->ns, sizeof check->ns, "%s", ns);
    reading->partition = partition;
    return THOLE_OK;
}

static struct archive_facts *archive_check_newest(const struct archive_check *check)
{
    return &check->instances[check->instances_len - 1];
}

static thole_status archive_check_on_begin(void *arg, thole_slice instance)
{
    struct file_reading *reading = arg;
    struct archive_check *check = reading->check;
    THOLE_TRY(client_check_id(instance, reading->reterr));
    check->instances = memory_reserve(check->instances, &check->instances_cap, check->instances_len + 1,
                                      sizeof *check->instances);
    archive_facts_begin(&check->instances[check->instances_len++], reading->partition, instance);
    reading->audit = audit_create(&(struct audit_options){.scope = AUDIT_INSTANCE,
                                                          .ns = thole_slice_from(check->ns),
                                                          .partition = reading->partition,
                                                          .instance = archive_check_newest(check)->instance,
                                                          .found = archive_check_on_finding,
                                                          .arg = reading});
    return THOLE_OK;
}

static thole_status archive_check_on_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct file_reading *reading = arg;
    struct archive_check *check = reading->check;
    audit_take(reading->audit,
               &(struct audit_record){.sequence = sequence, .kind = RECORD_UNKNOWN, .bytes = bytes});
    archive_facts_take(archive_check_newest(check), sequence, bytes);
    check->records++;
    check->bytes += bytes.len;
    archive_check_newest(check)->last =
        record_hash_make(thole_slice_from(check->ns), reading->partition, bytes);
    reading->records =
        memory_reserve(reading->records, &reading->cap, reading->len + 1, sizeof *reading->records);
    reading->records[reading->len++] = (struct checked_record){.hash = archive_check_newest(check)->last,
                                                               .sequence = sequence,
                                                               .partition = reading->partition,
                                                               .instance = check->instances_len - 1};
    return THOLE_OK;
}

static thole_status archive_check_on_end(void *arg)
{
    struct file_reading *reading = arg;
    audit_end(reading->audit);
    audit_destroy(reading->audit);
    reading->audit = NULL;
    return THOLE_OK;
}

/* ---- checkpoints ---- */

static int by_place(const void *a, const void *b)
{
    const struct checked_record *x = a, *y = b;
    if (x->partition != y->partition)
        return x->partition < y->partition ? -1 : 1;
    return memcmp(x->hash.bytes, y->hash.bytes, sizeof x->hash.bytes);
}

static struct checked_record *find_record(struct file_reading *reading, uint32_t partition,
                                          const struct record_hash *hash)
{
    struct checked_record const wanted = {.hash = *hash, .partition = partition};
    if (reading->len == 0)
        return NULL;
    if (reading->sorted < reading->len)
        qsort(reading->records, reading->len, sizeof *reading->records, by_place);
    reading->sorted = reading->len;
    return bsearch(&wanted, reading->records, reading->len, sizeof *reading->records, by_place);
}

static bool read_hash(thole_slice value, uint8_t to[MERKLE_HASH_BYTES])
{
    struct buf text, bytes;
    buf_init(&text, 2 * MERKLE_HASH_BYTES);
    buf_init(&bytes, 2 * MERKLE_HASH_BYTES);
    bool const good =
        json_text(value, &text) && base64_decode(buf_bytes(&text), &bytes) && bytes.len == MERKLE_HASH_BYTES;
    if (good)
        memcpy(to, bytes.ptr, MERKLE_HASH_BYTES);
    buf_release(&text);
    buf_release(&bytes);
    return good;
}

struct section { /* of a checkpoint, as it is read */
    uint32_t partition;
    struct merkle_indexed *leaves;
    struct checked_record **records; /* of the leaves */
    size_t len, cap, records_cap;
    struct merkle_hash *proof;
    size_t proof_len, proof_cap;
};

static void section_release(struct section *section)
{
    free(section->leaves);
    free(section->records);
    free(section->proof);
}

/* False: it is no leaf, or its record is not in the file. */
static bool archive_check_take_leaf(struct file_reading *reading, struct section *section, thole_slice item)
{
    thole_slice value;
    struct record_hash hash;
    uint8_t bytes[LEAF_BYTES];
    uint64_t index;
    if (!json_find(item, "index", &value) || !json_uint(value, &index) ||
        !json_find(item, "record", &value) || !read_hash(value, hash.bytes))
        return false;
    struct checked_record *const record = find_record(reading, section->partition, &hash);
    if (record == NULL)
        return false;
    const struct archive_check *check = reading->check;
    struct record_hash const instance =
        leaf_instance(thole_slice_from(check->ns), check->instances[record->instance].instance);
    memcpy(bytes, hash.bytes, RECORD_HASH_BYTES);
    memcpy(bytes + RECORD_HASH_BYTES, instance.bytes, RECORD_HASH_BYTES);
    section->leaves =
        memory_reserve(section->leaves, &section->cap, section->len + 1, sizeof *section->leaves);
    section->records =
        memory_reserve(section->records, &section->records_cap, section->len + 1, sizeof *section->records);
    section->leaves[section->len] =
        (struct merkle_indexed){index, merkle_leaf((thole_slice){bytes, sizeof bytes})};
    section->records[section->len++] = record;
    return true;
}

static bool archive_check_take_leaves(struct file_reading *reading, struct section *section, thole_slice json)
{
    thole_slice leaves, proof, item;
    size_t at = 0;
    if (!json_find(json, "leaves", &leaves) || !json_find(json, "proof", &proof))
        return false;
    while (json_item(leaves, &at, &item))
        if (!archive_check_take_leaf(reading, section, item))
            return false;
    at = 0;
    while (json_item(proof, &at, &item)) {
        section->proof = memory_reserve(section->proof, &section->proof_cap, section->proof_len + 1,
                                        sizeof *section->proof);
        if (!read_hash(item, section->proof[section->proof_len++].bytes))
            return false;
    }
    return true;
}

/* The flaw of the note; NULL: one of the keys has signed it, and it is of that log. */
static const char *judge_note(const struct file_reading *reading, uint32_t partition, thole_slice note,
                              struct checkpoint *ret)
{
    char origin[THOLE_NAME_BYTES_MAX + 32];
    const struct audit_keys *keys = reading->check->keys;
    thole_status status = THOLE_NOT_FOUND;
    thole_slice text;
    for (size_t i = 0; i < keys->len && status == THOLE_NOT_FOUND; i++)
        status = note_verify(note, &keys->keys[i], &text, NULL);
    if (status == THOLE_NOT_FOUND)
        return "its checkpoint is not signed by --key";
    if (status != THOLE_OK || checkpoint_parse(text, ret, NULL) != THOLE_OK)
        return "its checkpoint has a wrong signature, or is none";
    (void)snprintf(origin, sizeof origin, "thole/%s/%" PRIu32, reading->check->ns, partition);
    return thole_slice_equal(ret->origin, thole_slice_from(origin)) ? NULL
                                                                    : "its checkpoint is of another log";
}

/* NULL: all leaves are in the checkpoint. */
static const char *judge_section(struct file_reading *reading, struct section *section, thole_slice json,
                                 thole_slice note, struct checkpoint *checkpoint)
{
    struct merkle_hash root;
    const char *const wrong = judge_note(reading, section->partition, note, checkpoint);
    if (wrong != NULL)
        return wrong;
    if (!archive_check_take_leaves(reading, section, json))
        return "a leaf of it is of a record that is not in the file";
    if (section->len == 0 && section->proof_len == 0) /* only says where the log stood */
        return NULL;
    if (!merkle_root_of_many(checkpoint->size, section->leaves, section->len, section->proof,
                             section->proof_len, &root) ||
        !merkle_equal(&root, &checkpoint->root))
        return "its records are not those of the signed checkpoint";
    return NULL;
}

static void seal_records(struct file_reading *reading, const struct section *section,
                         const struct checkpoint *checkpoint)
{
    struct archive_check *check = reading->check;
    struct log_place place;
    struct merkle_tree tree;
    bool const says = log_place_parse(checkpoint, &place, &tree);
    for (size_t i = 0; i < section->len; i++)
        if (!section->records[i]->sealed) {
            section->records[i]->sealed = true;
            check->instances[section->records[i]->instance].sealed++;
        }
    check->checkpoints = memory_reserve(check->checkpoints, &check->checkpoints_cap,
                                        check->checkpoints_len + 1, sizeof *check->checkpoints);
    check->checkpoints[check->checkpoints_len++] = (struct archive_checkpoint){
        section->partition, checkpoint->size, section->len, says ? place.sequence : UINT64_MAX};
}

static void archive_check_take_checkpoint(struct file_reading *reading, thole_slice json)
{
    struct section section = {.len = 0};
    struct checkpoint checkpoint;
    struct buf note;
    thole_slice value;
    uint64_t partition = 0;
    buf_init(&note, NOTE_BYTES_MAX);
    bool const good = json_find(json, "partition", &value) && json_uint(value, &partition) &&
                      partition < PARTITIONS_MAX && json_find(json, "note", &value) &&
                      json_text(value, &note);
    reading->partition = section.partition = (uint32_t)partition;
    const char *const wrong =
        good ? judge_section(reading, &section, json, buf_bytes(&note), &checkpoint) : "it is no checkpoint";
    if (wrong != NULL)
        archive_check_found(reading, AUDIT_CHECKPOINT, wrong);
    else
        seal_records(reading, &section, &checkpoint);
    section_release(&section);
    buf_release(&note);
}

static thole_status archive_check_on_section(void *arg, thole_slice name, thole_slice json)
{
    struct file_reading *reading = arg;
    thole_slice value;
    if (thole_slice_equal(name, THOLE_STR("checkpoint")) && reading->check->keys->len > 0)
        archive_check_take_checkpoint(reading, json);
    if (thole_slice_equal(name, THOLE_STR("export")))
        reading->check->is_archive = json_path(json, "selection.archive", &value) && json_is_true(value);
    if (thole_slice_equal(name, THOLE_STR("manifest"))) {
        reading->manifest = true;
        if (json_find(json, "sha256", &value) && value.len == sizeof reading->check->sha256 + 1)
            memcpy(reading->check->sha256, value.ptr + 1, value.len - 2);
    }
    return THOLE_OK;
}

/* ---- the file ---- */

/* Records after the newest checkpoint of their log cannot be in it. */
static bool must_be_sealed(const struct archive_check *check, const struct checked_record *record)
{
    uint64_t end = 0;
    if (!check->may_go_on)
        return true;
    for (size_t i = 0; i < check->checkpoints_len; i++)
        if (check->checkpoints[i].partition == record->partition && check->checkpoints[i].end > end)
            end = check->checkpoints[i].end;
    return end == 0 || record->sequence <= end;
}

static void check_all_sealed(struct file_reading *reading)
{
    char text[96];
    uint64_t missing = 0;
    if (reading->check->keys->len == 0)
        return;
    for (size_t i = 0; i < reading->len; i++) {
        const struct checked_record *record = &reading->records[i];
        reading->partition = record->partition;
        if (record->sealed || !must_be_sealed(reading->check, record) || ++missing > UNSEALED_SAID_MAX)
            continue;
        reading->check->findings++;
        reading->check->found(
            reading->check->arg, record->partition,
            &(struct audit_finding){.fault = AUDIT_CHECKPOINT,
                                    .sequence = record->sequence,
                                    .instance = reading->check->instances[record->instance].instance,
                                    .execution = reading->check->instances[record->instance].execution,
                                    .text = "it is in no checkpoint of this file by --key"});
    }
    if (missing <= UNSEALED_SAID_MAX)
        return;
    (void)snprintf(text, sizeof text, "%" PRIu64 " more records are in no checkpoint of this file by --key",
                   missing - UNSEALED_SAID_MAX);
    archive_check_found(reading, AUDIT_CHECKPOINT, text);
}

thole_status archive_check_file(struct archive_check *check, const char *path, thole_error *reterr)
{
    struct file_reading reading = {.check = check, .reterr = reterr};
    struct history_file_reader const reader = {.begin = archive_check_on_begin,
                                               .record = archive_check_on_record,
                                               .readable = export_readable,
                                               .end = archive_check_on_end,
                                               .section = archive_check_on_section,
                                               .place = archive_check_on_place,
                                               .arg = &reading};
    FILE *const from = fopen(path, "re");
    if (from == NULL)
        return file_fault_read(path, errno, reterr);
    thole_status status = history_file_read(from, &reader, reterr);
    (void)fclose(from);
    audit_destroy(reading.audit);
    if (status == THOLE_OK && !reading.manifest)
        status = thole_fail(reterr, THOLE_CORRUPT, "it has no manifest: it is cut off, or no archive");
    if (status == THOLE_OK)
        check_all_sealed(&reading);
    free(reading.records);
    return status;
}

void archive_check_release(struct archive_check *check)
{
    for (size_t i = 0; i < check->instances_len; i++)
        archive_facts_release(&check->instances[i]);
    free(check->instances);
    free(check->checkpoints);
    check->instances = NULL;
    check->checkpoints = NULL;
    check->instances_len = check->checkpoints_len = 0;
}
