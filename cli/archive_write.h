/* Writes one archive: an export (export_file.h) with a section `checkpoint` for each partition. */
#ifndef THOLE_ARCHIVE_WRITE_H
#define THOLE_ARCHIVE_WRITE_H
#include "archive_ahead.h"
#include "archive_facts.h"
#include "archive_seal.h"
#include "export_file.h"

struct archive_writer {
    thole_client *client;
    const struct audit_keys *keys; /* len 0: without checkpoints */
    struct archive_seal *seals;    /* one for each partition; stay from file to file */
    struct export_file file;
    bool open;
    uint64_t instances, records, bytes; /* of the file in hand */
};
void archive_writer_init(struct archive_writer *writer, thole_client *client, const struct audit_keys *keys);
void archive_writer_release(struct archive_writer *writer);

/* @p selection: a JSON value. An existing .part is overwritten. */
THOLE_NODISCARD thole_status archive_writer_begin(struct archive_writer *writer, const char *path,
                                                  thole_slice selection, thole_error *reterr);
enum archive_added {
    ARCHIVE_ADDED,
    ARCHIVE_NOT_ENDED, /* by its history, which counts */
    ARCHIVE_UNSEALED,  /* a record came after the last checkpoint */
    ARCHIVE_DAMAGED,
    ARCHIVE_GONE,
};
/*
 * Adds all of the instance; or, of one that goes on, the executions after its first one and @p wish.after, up
 * to upto or the one with which @p wish.bytes_max bytes are reached. *ret_why: of a damaged one, its flaw.
 * *ret_upto: the last execution that was added.
 */
struct archive_wish {
    thole_slice instance;
    uint64_t after, upto; /* upto 0: it has ended, and all of it is meant */
    uint64_t bytes_max;
    const struct archive_read *read; /* the records, when they were read before; may be NULL */
};
THOLE_NODISCARD thole_status archive_writer_add(struct archive_writer *writer,
                                                const struct archive_wish *wish, enum archive_added *ret,
                                                uint64_t *ret_upto, thole_error *ret_why,
                                                thole_error *reterr);
/* The file has its name, and is on the disk. */
THOLE_NODISCARD thole_status archive_writer_finish(struct archive_writer *writer, thole_error *reterr);
void archive_writer_drop(struct archive_writer *writer); /* the file in hand, if there is one */
#endif
