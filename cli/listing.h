/*
 * What commands list: a table, one JSON document, or a line of JSON for each row. All lists end in the same
 * way: with all rows, or with a token for --next, when there are more than --limit wants. The reader asks for
 * one row more than that (listing_wish()), and hands each to listing_row().
 */
#ifndef THOLE_LISTING_H
#define THOLE_LISTING_H
#include "command.h"

struct listing {
    const struct cli *cli;
    const char *schema, *name;
    struct json json;
    uint64_t rows, limit; /* limit 0: none */
    bool begun, more;
    bool open; /* the last line of a page, which may end with the token of the next one */
    char next[THOLE_ID_BYTES_MAX * 3 + 96]; /* behind the last row */
};

/* @p name: of the array in the document. @p limit 0: it is listed to its end. */
void listing_begin(struct listing *listing, const struct cli *cli, const char *schema, const char *name,
                   uint64_t limit);
/* How many rows to ask for. */
uint64_t listing_wish(const struct listing *listing);
/* What to do with a row that was read. */
enum listing_step {
    LISTING_STOP,  /* nothing: it is one too many; return THOLE_CANCELLED */
    LISTING_TABLE, /* print its line of the table */
    LISTING_JSON,  /* write its members */
};
enum listing_step listing_row(struct listing *listing, const char *schema);
/* Where the next page begins: numbers, and the instance. listing_place_read() reads it back. */
void listing_place(struct listing *listing, const uint64_t *numbers, size_t numbers_len,
                   thole_slice instance);
/* THOLE_CANCELLED: nobody reads any more. */
thole_status listing_row_end(struct listing *listing);
/* Says whether it is all, and returns the exit code. @p status: of the reading. @p empty: what to say of no
 * rows. */
int listing_end(struct listing *listing, thole_status status, thole_error *error, const char *empty);

/* Of --next. False after a complaint. @p instance is released by the caller. */
bool listing_place_read(const struct cli *cli, uint64_t *numbers, size_t numbers_len, struct buf *instance);
#endif
