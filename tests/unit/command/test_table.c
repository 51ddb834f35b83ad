/* Tables of the command at each width of a terminal: what goes, what is cut, and that a cut is seen. */
#include "captured.h"
#include "table.h"
#include "text.h"
#include "text_width.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <unistd.h>

static const struct table_column columns[] = {
    {"NAME", 8, 6, 0, false}, {"N", 4, 4, 2, true}, {"M", 3, 3, 1, true}, {"REST", 10, 4, 0, false}};

static const struct {
    unsigned room;
    const char *name;
    uint64_t n, m;
    const char *rest, *want;
} cases[] = {
    {0, "a", 1, 2, "all of the rest", "NAME         N    M  REST\na            1    2  all of the…\n"},
    {0, "a-long-name-that-is-whole", 123456, 2, "",
     "NAME         N    M  REST\na-long-name-that-is-whole  123456    2  \n"},
    {40, "a", 1, 2, "rest", "NAME         N    M  REST\na            1    2  rest\n"},
    {31, "a-long-name", 1, 2, "0123456789", "NAME         N    M  REST\na-long-…     1    2  0123456789\n"},
    {23, "a-long-name", 1, 2, "0123456789", "NAME       N    M  REST\na-lon…     1    2  012…\n"},
    {22, "a", 1, 87, "rest", "NAME        M  REST\na          87  rest\n"},
    {16, "a", 1, 2, "0123456789", "NAME      REST\na         01234…\n"},
    {12, "abcdefgh", 1, 2, "0123456789", "NAME    REST\nabcde…  012…\n"},
    {9, "abcdefgh", 1, 2, "0123456789", "NA…  REST\nab…  012…\n"},
    {23, "a", 123456, 2, "r", "NAME       N    M  REST\na       123…    2  r\n"},
    {23, "a\n\033[", 1, 2, "r", "NAME       N    M  REST\na\\n…       1    2  r\n"},
    {23, "日本語", 1, 2, "日本語", "NAME       N    M  REST\n日本語     1    2  日…\n"},
    {23, "日本語日", 1, 2, "r", "NAME       N    M  REST\n日本…      1    2  r\n"},
    {0, "日本語", 1, 2, "日本語日本語", "NAME         N    M  REST\n日本語       1    2  日本語日本…\n"},
    {23,
     "e\xcc\x81"
     "e\xcc\x81",
     1, 2, "r",
     "NAME       N    M  REST\ne\xcc\x81"
     "e\xcc\x81         1    2  r\n"},
    {23, "äöüßäöüß", 1, 2, "r", "NAME       N    M  REST\näöüßä…     1    2  r\n"},
};

static void run_table(void *arg)
{
    size_t const i = *(size_t *)arg;
    struct table table;
    table_init(&table, columns, ARRAY_LEN(columns), cases[i].room);
    table_head(&table);
    table_text(&table, cases[i].name);
    table_number(&table, cases[i].n);
    table_number(&table, cases[i].m);
    table_text(&table, cases[i].rest);
    table_release(&table);
}

/* No line is longer than the terminal is wide: a terminal without wrapping would write the rest over its end.
 */
static void check_widths(const char *text, unsigned room)
{
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1)
        CU_ASSERT(text_width((thole_slice){(const uint8_t *)line, strcspn(line, "\n")}) <= room);
}

static void test_each_width(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char row[16];
        char *const text = captured(STDOUT_FILENO, run_table, &i);
        (void)snprintf(row, sizeof row, "%u", cases[i].room);
        CHECK_STR(row, text, cases[i].want);
        if (cases[i].room > 0)
            check_widths(text, cases[i].room);
        free(text);
    }
}

/* Where the first column goes, the next one is cut last. */
static void run_without_first(void *arg)
{
    static const struct table_column few[] = {{"TIME", 24, 24, 1, false}, {"TEXT", 40, 20, 0, false}};
    struct table table;
    (void)arg;
    table_init(&table, few, ARRAY_LEN(few), 12);
    table_head(&table);
    table_text(&table, "2026-11-21T09:30:01.250Z");
    table_text(&table, "a text that is too long");
    table_release(&table);
}

static void test_first_column_goes(void)
{
    char *const text = captured(STDOUT_FILENO, run_without_first, NULL);
    CHECK_STR("first", text, "TEXT\na text that…\n");
    free(text);
}

static const struct {
    const char *text;
    size_t width;
} widths[] = {{"", 0},     {"abc", 3},      {"äöü", 3},       {"…", 1},    {"日本", 4},
              {"한국", 4}, {"\xff\xfe", 2}, {"ｱｲ", 2},        {"ＡＢ", 4}, {"😀", 2},
              {"✓", 1},    {"☕", 2},        {"e\xcc\x81", 1}, {"〆", 2},   {"\xe2\x80\x8b", 0}};

static void test_widths(void)
{
    for (size_t i = 0; i < ARRAY_LEN(widths); i++)
        CU_ASSERT_EQUAL(text_width(thole_slice_from(widths[i].text)), widths[i].width);
}

static const struct thole_test tests[] = {
    {"widths of characters", test_widths},
    {"first column goes", test_first_column_goes},
    {"each width", test_each_width},
};
THOLE_TEST_MAIN("table", tests)
