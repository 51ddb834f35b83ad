/* Cells of tables. */
#include "cells.h"
#include "text.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CELL_BYTES_MAX = 4096 };

void print_cell(thole_slice text, size_t columns, size_t columns_max)
{
    struct buf cell;
    buf_init(&cell, CELL_BYTES_MAX);
    text_safe(&cell, text, columns_max);
    size_t width = 0;
    for (size_t i = 0; i < cell.len; i++)
        width += (cell.ptr[i] & 0xc0) != 0x80 ? 1 : 0;
    (void)printf("%s%*s", buf_cstr(&cell), (int)(width < columns ? columns - width + 2 : 2), "");
    buf_release(&cell);
}

void print_last_cell(thole_slice text, size_t columns_max)
{
    struct buf cell;
    buf_init(&cell, CELL_BYTES_MAX);
    text_safe(&cell, text, columns_max);
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

void print_toned(enum tone tone, const char *text, int columns)
{
    int const len = (int)strlen(text);
    (void)printf("%s%s%s%*s", tone_begin(tone), text, tone_end(tone), len < columns ? columns - len + 2 : 2,
                 "");
}
