/*
 * Lists of commands: a table, one JSON document, or a line of JSON for each row. A list ends with all rows,
 * or with a token for --next when there are more than --limit. The reader requests one row more than that
 * (listing_wish()), and gives each to listing_row().
 */
#ifndef THOLE_LISTING_H
#define THOLE_LISTING_H
#include "command.h"
#include "page.h"

struct listing {
    const struct cli *cli;
    const char *schema, *name;
    struct json json;
    uint64_t rows, limit; /* limit 0: none */
    bool begun, more;
    bool open;                   /* the last line of a page, which may end with the token of the next one */
    char next[PAGE_TOKEN_BYTES]; /* the token of the last row */
    const char *skipped_table;   /* see listing_skip() */
    uint64_t skipped;
    char skipped_name[4 * THOLE_NAME_BYTES_MAX + 16];
};

/* @p name: of the array in the document. @p limit 0: it is listed to its end. */
void listing_begin(struct listing *listing, const struct cli *cli, const char *schema, const char *name,
                   uint64_t limit);
/* Number of rows to request. */
uint64_t listing_wish(const struct listing *listing);
/* The treatment of a row that was read. */
enum listing_step {
    LISTING_STOP,  /* not shown: it is beyond the limit; return THOLE_CANCELLED */
    LISTING_TABLE, /* print its line of the table */
    LISTING_JSON,  /* write its members */
    LISTING_NAME,  /* listing_name() */
};
enum listing_step listing_row(struct listing *listing, const char *schema);
/* The row's name on a line of its own, as --output name has it. */
void listing_name(thole_slice name);
/* Where the next page begins: numbers, and the instance. listing_place_read() reads it back. */
void listing_place(struct listing *listing, const uint64_t *numbers, size_t numbers_len,
                   thole_slice instance);
/* THOLE_CANCELLED: the reader of stdout has gone away. */
thole_status listing_row_end(struct listing *listing);
/* A row of the table that thole cannot have written is not shown: the end of the list has a note with the
 * number of such rows and the id of the first. */
thole_status listing_skip(struct listing *listing, const char *table, thole_slice instance);
/* Ends the list, complete or not, and returns the exit code. @p status: of the reading. @p empty: the note
 * for a list without rows. */
int listing_end(struct listing *listing, thole_status status, thole_error *error, const char *empty);

/* Of --next. False after a complaint. @p instance is released by the caller. */
bool listing_place_read(const struct cli *cli, uint64_t *numbers, size_t numbers_len, struct buf *instance);
#endif
