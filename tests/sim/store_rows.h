/* Inside of the database: its rows, and what every statement does around a change of one. */
#ifndef THOLE_STORE_ROWS_H
#define THOLE_STORE_ROWS_H
#include "store_fake.h"

enum { STORE_INDEX_SIZE = 1 << 14, STORE_OPEN_TX_MAX = 64 };

struct undo {
    size_t row;
    struct row before;
};
struct commit {
    uint64_t time_ms;
    size_t undo_from;
};
struct store {
    struct row *rows;
    size_t rows_len, rows_cap;
    uint32_t index[STORE_INDEX_SIZE]; /* row + 1 */
    struct undo *undo;
    size_t undo_len, undo_cap;
    struct commit *commits;
    size_t commits_len, commits_cap;
    struct store_tx *open[STORE_OPEN_TX_MAX];
    size_t open_len;
    uint64_t down_until_ms, life;
    uint64_t made, claimed;
    uint64_t incarnation, incarnations; /* 0: lost with a crash, nobody has made another one */
};

/* The row of that key, present or not. Valid until the next call. */
struct row *store_row_at(struct world *w, enum row_kind kind, uint32_t partition, size_t instance,
                         uint64_t execution, uint64_t id);
void store_commit_begin(struct world *w);
void store_remember(struct world *w, const struct row *row); /* before every change of a row */
void store_unlock_rows(struct world *w, struct store_tx *tx);
#endif
