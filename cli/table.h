/*
 * Tables that fit the terminal. With enough room each column has its full width. Otherwise columns that may
 * shrink do, then columns that may leave do, and the first one is cut last. A cut text ends with an ellipsis:
 * a number without its last digits looks like another number. Without a terminal nothing is cut and no column
 * leaves.
 */
#ifndef THOLE_TABLE_H
#define THOLE_TABLE_H
#include "buf.h"
#include "terminal.h"

enum {
    TABLE_COLUMNS_MAX = 12,
    TABLE_CELL_BYTES_MAX = 32 * 1024,
    TABLE_WHOLE = 4096 /* full width of a last column that is cut by a terminal alone */
};

struct table_column {
    const char *heading;
    unsigned full, least; /* columns of a terminal; least == full: does not shrink */
    unsigned leaves;      /* 0: stays; the column with the highest number goes first */
    bool right;           /* the text stands at the right: numbers */
};

struct table {
    const struct table_column *columns; /* borrowed; the last one has what is left of a line, up to full */
    size_t len;
    unsigned room;                     /* columns of a line; 0: no limit */
    unsigned width[TABLE_COLUMNS_MAX]; /* 0: it is not shown */
    size_t at;                         /* next cell of the line */
    unsigned used;                     /* columns in the line */
    struct buf line;
};

/* @p room: terminal_columns(). The caller releases it. */
void table_init(struct table *table, const struct table_column *columns, size_t len, unsigned room);
void table_release(struct table *table);
/* For a line: with the terminal as it is now, and with the headings before the first one. */
void table_begin(struct table *table, const struct table_column *columns, size_t len, bool first);
/* Prints the headings. */
void table_head(struct table *table);
/* The next cell of the line; after the last one the line is printed. @p text may be anything. */
void table_cell(struct table *table, enum tone tone, thole_slice text);
void table_text(struct table *table, const char *text);
void table_number(struct table *table, uint64_t number);
#endif
