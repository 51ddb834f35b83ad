/* What commands list: a table, one JSON document, or a line of JSON for each. */
#ifndef THOLE_LISTING_H
#define THOLE_LISTING_H
#include "command.h"

struct listing {
    const struct cli *cli;
    struct json json;
    uint64_t rows;
};

/* @p name: of the array in the document. */
void listing_begin(struct listing *listing, const struct cli *cli, const char *schema, const char *name);
/* True: write the members of the row as JSON; false: print its line of the table. */
bool listing_row(struct listing *listing, const char *schema);
/* THOLE_CANCELLED: nobody reads any more. */
thole_status listing_row_end(struct listing *listing);
/* Says whether it is all. */
void listing_end(struct listing *listing, bool complete);
#endif
