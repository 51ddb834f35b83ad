#include "table.h"
#include "text.h"
#include "text_width.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TABLE_GAP = 2, TABLE_WORD_MAX = 512, TABLE_LINE_BYTES_MAX = TABLE_COLUMNS_MAX * TABLE_CELL_BYTES_MAX };

/* ---- widths ---- */

static unsigned table_needs(const struct table *table)
{
    unsigned sum = 0;
    for (size_t i = 0; i < table->len; i++)
        if (table->width[i] > 0)
            sum += table->width[i] + (sum > 0 ? TABLE_GAP : 0);
    return sum;
}

/* False: all that are left stay. */
static bool table_column_leaves(struct table *table)
{
    size_t first = table->len;
    for (size_t i = 0; i < table->len; i++)
        if (table->width[i] > 0 && table->columns[i].leaves > 0 &&
            (first == table->len || table->columns[i].leaves > table->columns[first].leaves))
            first = i;
    if (first == table->len)
        return false;
    table->width[first] = 0;
    return true;
}

/* The first column that is shown. */
static size_t table_first(const struct table *table)
{
    size_t first = 0;
    while (first + 1 < table->len && table->width[first] == 0)
        first++;
    return first;
}

static void table_fit(struct table *table)
{
    for (size_t i = 0; i < table->len; i++)
        table->width[i] = table->room == 0 ? table->columns[i].full : table->columns[i].least;
    if (table->room == 0)
        return;
    while (table_needs(table) > table->room && table_column_leaves(table))
        ;
    unsigned const least = table_needs(table), over = least > table->room ? least - table->room : 0;
    size_t const first = table_first(table);
    table->width[first] -= over < table->width[first] ? over : table->width[first] - 1;
    for (size_t i = 0; i < table->len; i++) {
        unsigned const needs = table_needs(table);
        unsigned const left = needs < table->room ? table->room - needs : 0;
        unsigned const wish = table->columns[i].full - table->width[i];
        if (table->width[i] > 0)
            table->width[i] += left < wish ? left : wish;
    }
}

void table_init(struct table *table, const struct table_column *columns, size_t len, unsigned room)
{
    assert(len > 0 && len <= TABLE_COLUMNS_MAX);
    *table = (struct table){.columns = columns, .len = len, .room = room};
    buf_init(&table->line, TABLE_LINE_BYTES_MAX);
    table_fit(table);
}

void table_release(struct table *table)
{
    buf_release(&table->line);
}

/* ---- lines ---- */

/* The last column that is shown. */
static size_t table_last(const struct table *table)
{
    size_t last = table->len - 1;
    while (last > 0 && table->width[last] == 0)
        last--;
    return last;
}

static void table_put(struct table *table, enum tone tone, const struct buf *cell)
{
    const struct table_column *const column = &table->columns[table->at];
    unsigned const len = (unsigned)text_width(buf_bytes(cell)), width = table->width[table->at];
    unsigned const pad = len < width ? width - len : 0;
    bool const last = table->at == table_last(table);
    if (table->used > 0)
        buf_printf(&table->line, "%*s", TABLE_GAP, "");
    table->used += (table->used > 0 ? TABLE_GAP : 0) + len + pad;
    if (column->right)
        buf_printf(&table->line, "%*s", (int)pad, "");
    buf_printf(&table->line, "%s%s%s", tone_begin(tone), buf_cstr(cell), tone_end(tone));
    if (!column->right && !last)
        buf_printf(&table->line, "%*s", (int)pad, "");
}

static void table_end_line(struct table *table)
{
    (void)printf("%s\n", buf_cstr(&table->line));
    buf_clear(&table->line);
    table->at = 0;
    table->used = 0;
}

void table_cell(struct table *table, enum tone tone, thole_slice text)
{
    struct buf cell;
    unsigned const width = table->width[table->at];
    bool const last = table->at + 1 == table->len;
    buf_init(&cell, TABLE_CELL_BYTES_MAX);
    if (width > 0) {
        if (table->room == 0)
            text_safe(&cell, text, last ? width : TABLE_WORD_MAX);
        else
            text_fit(&cell, text, width);
        table_put(table, tone, &cell);
    }
    buf_release(&cell);
    if (++table->at == table->len)
        table_end_line(table);
}

void table_text(struct table *table, const char *text)
{
    table_cell(table, TONE_PLAIN, thole_slice_from(text));
}

void table_number(struct table *table, uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    table_text(table, text);
}

void table_head(struct table *table)
{
    for (size_t i = 0; i < table->len; i++)
        table_text(table, table->columns[i].heading);
}

void table_begin(struct table *table, const struct table_column *columns, size_t len, bool first)
{
    table_init(table, columns, len, terminal_columns());
    if (first)
        table_head(table);
}
