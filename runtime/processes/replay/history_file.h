/*
 * Files of histories, without loss. `thole export` and `thole history --raw` write them; `thole history
 * --file`, `thole diff`, `thole show --file`, the replay role and the test kit read them. docs/wire.md
 * describes both forms. A file in the binary form holds any number of histories. Each history consists of
 *
 *   thole history 1 NAMESPACE PARTITION INSTANCE  the instance percent-encoded as in subjects
 *   SEQUENCE LENGTH                               of one record that counts, then its bytes and a line end
 *   end RECORDS                                   their number
 *
 * Sections "thole NAME 1 LENGTH", followed by LENGTH bytes and a line end, stand between histories: `export`
 * before them, `manifest` after them; later versions may add others. In JSON lines each line is a document
 * with a `schema`. Files may be joined with cat.
 */
#ifndef THOLE_HISTORY_FILE_H
#define THOLE_HISTORY_FILE_H
#include "history_digest.h"
#include "json.h"
#include <stdio.h>

enum { HISTORY_WHY_BYTES = 128 };
enum history_form { HISTORY_BINARY, HISTORY_JSONL };

/* Totals of a manifest for the histories between it and the one before. */
struct history_totals {
    uint64_t instances, records;
    struct history_digest digest; /* over the binary form of these histories, whichever form the file has */
};

/*
 * Errors are the stream's: ferror(to). The members are the caller's to set, in front of the first call, but
 * for the last two.
 */
struct history_writer {
    FILE *to; /* NULL: only the totals */
    enum history_form form;
    const char *ns;
    /* JSON lines: adds members for people to a record's document. May be NULL. */
    void (*decorate)(void *arg, struct json *json, uint64_t sequence, thole_slice bytes);
    void *arg;
    struct history_totals totals; /* written since the last manifest */
    uint64_t records;             /* of the history that is begun */
};
void history_writer_init(struct history_writer *writer, FILE *to, enum history_form form, const char *ns);
void history_writer_release(struct history_writer *writer); /* not the stream */
void history_writer_begin(struct history_writer *writer, uint32_t partition, thole_slice instance);
void history_writer_record(struct history_writer *writer, uint64_t sequence, thole_slice bytes);
void history_writer_end(struct history_writer *writer);
/* A JSON document between histories, whose schema is thole.export.v1 or, with @p name, such as
 * thole.export.manifest.v1. */
void history_writer_section(struct history_writer *writer, const char *name, thole_slice json);

/* Slices are borrowed for the call. Anything but THOLE_OK stops the reading and is returned. Each may be
 * NULL. */
struct history_file_reader {
    thole_status (*begin)(void *arg, thole_slice instance);
    thole_status (*record)(void *arg, uint64_t sequence, thole_slice bytes);
    thole_status (*end)(void *arg);
    void *arg;
    /* Sections of unknown names are skipped by it, and by whom has none. */
    thole_status (*section)(void *arg, thole_slice name, thole_slice json);
    bool unfinished; /* the file may end anywhere between two histories, also without its manifest */
    /* JSON lines: whether the events for people (NULL: there are none) are those of the record; otherwise why
     * not, and the file is THOLE_CORRUPT. If it has none for any record they are not looked at. */
    bool (*readable)(void *arg, uint64_t sequence, thole_slice bytes, const thole_slice *events,
                     char ret_why[HISTORY_WHY_BYTES]);
    /* Called in front of each begin: where the history is from. */
    thole_status (*place)(void *arg, const char *ns, uint32_t partition);
};
/*
 * Either form. THOLE_CORRUPT (no such file, truncated, or not what its manifest says; the text says where),
 * THOLE_UNSUPPORTED (a newer form), THOLE_UNAVAILABLE (the file cannot be read), THOLE_NOMEM.
 */
THOLE_NODISCARD thole_status history_file_read(FILE *from, const struct history_file_reader *reader,
                                               thole_error *reterr);
#endif
