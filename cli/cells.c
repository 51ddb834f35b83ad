/* Cells of tables. */
#include "cells.h"
#include "text.h"
#include "text_width.h"
#include <inttypes.h>
#include <stdio.h>

enum { CELL_BYTES_MAX = 4096 };

void print_cell(thole_slice text, size_t columns)
{
    struct buf cell;
    buf_init(&cell, CELL_BYTES_MAX);
    text_fit(&cell, text, columns);
    (void)printf("%s%*s", buf_cstr(&cell), (int)(columns - text_width(buf_bytes(&cell))) + 2, "");
    buf_release(&cell);
}

void print_last_cell(thole_slice text, size_t columns)
{
    struct buf cell;
    buf_init(&cell, CELL_BYTES_MAX);
    text_fit(&cell, text, columns);
    (void)printf("%s\n", buf_cstr(&cell));
    buf_release(&cell);
}

void age_text(uint64_t ms, char ret[AGE_TEXT_BYTES])
{
    static const struct {
        uint64_t ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    size_t i = 0;
    while (i + 1 < sizeof units / sizeof units[0] && ms < 2 * units[i].ms) /* 90s rather than 1m */
        i++;
    (void)snprintf(ret, AGE_TEXT_BYTES, "%" PRIu64 "%s", ms / units[i].ms, units[i].name);
}
