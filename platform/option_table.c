#include "option_table.h"
#include "identity.h"
#include "values.h"
#include <assert.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELP_COLUMN = 30, LETTERS_BYTES = OPTION_ROWS_MAX * 2 + 4, ORIGIN_BYTES = 96, CHOICE_BYTES = 64 };

/* ---- values ---- */

static void store_number(const struct option_row *row, void *target, uint64_t value)
{
    uint8_t *at = (uint8_t *)target + row->offset;
    if (row->width == sizeof(bool)) {
        bool const narrow = value != 0;
        memcpy(at, &narrow, sizeof narrow);
    } else if (row->width == sizeof(uint32_t)) {
        uint32_t const narrow = (uint32_t)value;
        memcpy(at, &narrow, sizeof narrow);
    } else {
        assert(row->width == sizeof(uint64_t));
        memcpy(at, &value, sizeof value);
    }
}

static thole_status option_table_read_choice(const struct option_row *row, const char *text, uint64_t *ret,
                                             thole_error *reterr)
{
    char all[160] = "";
    size_t len = 0;
    for (size_t i = 0; row->choices[i] != NULL; i++) {
        if (strcmp(row->choices[i], text) == 0) {
            *ret = i;
            return THOLE_OK;
        }
        int const n = snprintf(all + len, sizeof all - len, "%s%s", i == 0 ? "" : ", ", row->choices[i]);
        assert(n > 0 && (size_t)n < sizeof all - len);
        len += (size_t)n;
    }
    return thole_fail(reterr, THOLE_INVALID, "\"%.40s\" is none of: %s", text, all);
}

static thole_status option_table_read_number(const struct option_row *row, const char *text, uint64_t *ret,
                                             thole_error *reterr)
{
    switch (row->kind) {
    case OPTION_DURATION: return duration_parse(text, ret, reterr);
    case OPTION_SIZE: return size_parse(text, ret, reterr);
    case OPTION_NUMBER: return number_parse(text, ret, reterr);
    case OPTION_CHOICE: return option_table_read_choice(row, text, ret, reterr);
    case OPTION_SWITCH: *ret = 1; return THOLE_OK;
    case OPTION_CHOICES:
    case OPTION_TEXT:
    case OPTION_NAME: break;
    }
    return thole_fail(reterr, THOLE_INVALID, "\"%.40s\" is not a number", text); /* a mistake in the table */
}

static void format_value(const struct option_row *row, uint64_t value, char ret[DURATION_TEXT_BYTES])
{
    if (row->kind == OPTION_DURATION)
        duration_format(value, ret);
    else
        (void)snprintf(ret, DURATION_TEXT_BYTES, "%" PRIu64, value);
}

static thole_status check_range(const struct option_row *row, const char *text, uint64_t value,
                                thole_error *reterr)
{
    uint64_t const max = row->max == 0 ? UINT64_MAX : row->max;
    char low[DURATION_TEXT_BYTES], high[DURATION_TEXT_BYTES];
    if (row->kind == OPTION_CHOICE || row->kind == OPTION_SWITCH || (value >= row->min && value <= max))
        return row->width == sizeof(uint32_t) && value > UINT32_MAX
                   ? thole_fail(reterr, THOLE_INVALID, "%s is too large", text)
                   : THOLE_OK;
    format_value(row, row->min, low);
    format_value(row, max, high);
    if (max == UINT64_MAX)
        return thole_fail(reterr, THOLE_INVALID, "%s is less than %s", text, low);
    return thole_fail(reterr, THOLE_INVALID, "%s is not between %s and %s", text, low, high);
}

/* Choices given before stay. */
static thole_status add_choices(const struct option_row *row, void *target, const char *text,
                                thole_error *reterr)
{
    uint64_t bits = 0;
    uint32_t narrow = 0;
    if (row->width == sizeof narrow) {
        memcpy(&narrow, (const uint8_t *)target + row->offset, sizeof narrow);
        bits = narrow;
    } else {
        memcpy(&bits, (const uint8_t *)target + row->offset, sizeof bits);
    }
    for (const char *at = text, *end = at; end != NULL; at = end == NULL ? at : end + 1) {
        char one[CHOICE_BYTES];
        uint64_t i = 0;
        end = strchr(at, ',');
        size_t const len = end == NULL ? strlen(at) : (size_t)(end - at);
        memcpy(one, at, len < sizeof one ? len : sizeof one - 1);
        one[len < sizeof one ? len : sizeof one - 1] = '\0';
        THOLE_TRY(option_table_read_choice(row, one, &i, reterr));
        bits |= UINT64_C(1) << i;
    }
    store_number(row, target, bits);
    return THOLE_OK;
}

static thole_status set_value(const struct option_row *row, void *target, const char *text,
                              thole_error *reterr)
{
    uint64_t number;
    if (row->kind == OPTION_TEXT || row->kind == OPTION_NAME) {
        if (row->kind == OPTION_NAME)
            THOLE_TRY(name_check(thole_slice_from(text), row->flag, reterr));
        assert(row->width == sizeof text);
        memcpy((uint8_t *)target + row->offset, &text, sizeof text);
        return THOLE_OK;
    }
    if (row->kind == OPTION_CHOICES)
        return add_choices(row, target, text, reterr);
    THOLE_TRY(option_table_read_number(row, text, &number, reterr));
    THOLE_TRY(check_range(row, text, number, reterr));
    store_number(row, target, number);
    return THOLE_OK;
}

thole_status option_set_from(const struct option_row *row, void *target, const char *origin, const char *text,
                             thole_error *reterr)
{
    thole_error why = {.status = THOLE_OK};
    thole_status const status = set_value(row, target, text, &why);
    return status == THOLE_OK ? THOLE_OK : thole_fail(reterr, status, "%s: %s", origin, why.text);
}

bool option_in_file(const struct option_row *row)
{
    return row->env != NULL && strcmp(row->flag, "config") != 0 && strcmp(row->flag, "context") != 0;
}

thole_status options_defaults(const struct option_set *sets, size_t n, thole_error *reterr)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sets[i].len; k++) {
            const struct option_row *row = &sets[i].rows[k];
            const char *env = row->env == NULL ? NULL : getenv(row->env);
            if (env != NULL && env[0] != '\0')
                THOLE_TRY(option_set_from(row, sets[i].target, row->env, env, reterr));
            else if (row->fallback != NULL)
                THOLE_TRY(option_set_from(row, sets[i].target, row->flag, row->fallback, reterr));
        }
    return THOLE_OK;
}

/* ---- the command line ---- */

/* All rows of all sets in one list, as getopt_long wants them. val of each is its index + 256. */
struct reader {
    const struct option_row *rows[OPTION_ROWS_MAX];
    void *targets[OPTION_ROWS_MAX];
    struct option longs[OPTION_ROWS_MAX + 1];
    const char *flags[OPTION_ROWS_MAX];
    char letters[LETTERS_BYTES];
    size_t len;
};
enum { FIRST_VALUE = 256 };

static void reader_init(struct reader *reader, const struct option_set *sets, size_t n, bool stop)
{
    size_t letters = 0;
    memset(reader, 0, sizeof *reader);
    if (stop)
        reader->letters[letters++] = '+';
    reader->letters[letters++] = ':'; /* a missing value has a letter of its own */
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sets[i].len; k++) {
            const struct option_row *row = &sets[i].rows[k];
            size_t const at = reader->len++;
            assert(at < OPTION_ROWS_MAX);
            reader->rows[at] = row;
            reader->targets[at] = sets[i].target;
            reader->flags[at] = row->hidden ? "" : row->flag;
            reader->longs[at] =
                (struct option){.name = row->flag,
                                .has_arg = row->kind == OPTION_SWITCH ? no_argument : required_argument,
                                .val = FIRST_VALUE + (int)at};
            if (row->letter != 0)
                reader->letters[letters++] = row->letter;
            if (row->letter != 0 && row->kind != OPTION_SWITCH)
                reader->letters[letters++] = ':';
        }
}

/* optopt: a letter, the val of a known flag that was used wrongly, or 0 for an unknown flag. */
static thole_status option_table_report_error(const struct reader *reader, bool missing, const char *word,
                                              thole_error *reterr)
{
    char name[ORIGIN_BYTES];
    const char *what = missing ? "needs a value" : "takes no value";
    if (optopt >= FIRST_VALUE)
        return thole_fail(reterr, THOLE_INVALID, "--%s %s", reader->rows[optopt - FIRST_VALUE]->flag, what);
    if (optopt != 0 && missing)
        return thole_fail(reterr, THOLE_INVALID, "-%c %s", optopt, what);
    if (optopt != 0)
        return thole_fail(reterr, THOLE_INVALID, "there is no option -%c", optopt);
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    const char *near = word_suggest(name, reader->flags, reader->len);
    if (near == NULL)
        return thole_fail(reterr, THOLE_INVALID, "there is no option --%s", name);
    return thole_fail(reterr, THOLE_INVALID, "there is no option --%s; did you mean --%s?", name, near);
}

static thole_status option_take(const struct reader *reader, int got, struct option_given *given,
                                thole_error *reterr)
{
    char origin[ORIGIN_BYTES];
    size_t at = (size_t)(got - FIRST_VALUE);
    if (got < FIRST_VALUE)
        for (at = 0; reader->rows[at]->letter != (char)got; at++)
            assert(at + 1 < reader->len);
    (void)snprintf(origin, sizeof origin, "--%s", reader->rows[at]->flag);
    given->row[at] = true;
    return option_set_from(reader->rows[at], reader->targets[at], origin, optarg == NULL ? "" : optarg,
                           reterr);
}

thole_status options_read(const struct option_set *sets, size_t n, bool stop, int argc, char **argv,
                          int *ret_first, struct option_given *ret_given, thole_error *reterr)
{
    struct reader reader;
    struct option_given given = {{false}};
    int got;
    assert(n <= OPTION_TABLES_MAX);
    reader_init(&reader, sets, n, stop);
    opterr = 0;
    optind = 0; /* glibc: start afresh */
    while ((got = getopt_long(argc, argv, reader.letters, reader.longs, NULL)) != -1) {
        if (got == '?' || got == ':')
            return option_table_report_error(&reader, got == ':', argv[optind - 1], reterr);
        THOLE_TRY(option_take(&reader, got, &given, reterr));
    }
    *ret_first = optind;
    if (ret_given != NULL)
        *ret_given = given;
    return THOLE_OK;
}

thole_status options_refuse_secrets(const struct option_set *sets, size_t n, const struct option_given *given,
                                    thole_error *reterr)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sets[i].len; k++, at++) {
            const struct option_row *const row = &sets[i].rows[k];
            const char *text = NULL;
            if (row->is_secret == NULL || !given->row[at])
                continue;
            memcpy(&text, (const char *)sets[i].target + row->offset, sizeof text);
            if (row->is_secret(text))
                return thole_fail(
                    reterr, THOLE_INVALID,
                    "--%s: there is a password in it, which everybody on this machine can see (ps): "
                    "put it into %s",
                    row->flag, row->instead);
        }
    return THOLE_OK;
}

static unsigned readers_of(const struct option_set *set, const struct option_row *row)
{
    return row->readers != 0 ? row->readers : set->readers;
}

static bool option_table_is_read(const struct option_set *set, const struct option_row *row, unsigned readers)
{
    unsigned const all = readers_of(set, row);
    return all == 0 || readers == 0 || (all & readers) != 0;
}

const struct option_row *options_unread(const struct option_set *sets, size_t n,
                                        const struct option_given *given, unsigned readers,
                                        unsigned *ret_readers)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sets[i].len; k++, at++)
            if (given->row[at] && !option_table_is_read(&sets[i], &sets[i].rows[k], readers)) {
                *ret_readers = readers_of(&sets[i], &sets[i].rows[k]);
                return &sets[i].rows[k];
            }
    return NULL;
}

/* ---- help ---- */

static void pad_to_column(struct buf *to, size_t start, size_t column)
{
    if (to->len - start >= column) {
        buf_text(to, "\n");
        start = to->len;
    }
    while (to->len - start < column && to->status == THOLE_OK)
        buf_text(to, " ");
}

static void append_default(const struct option_row *row, struct buf *to)
{
    const char *shown = row->shown != NULL ? row->shown : row->fallback;
    const char *open = " [";
    if (shown != NULL) {
        buf_printf(to, "%sdefault %s", open, shown);
        open = "; ";
    }
    if (row->env != NULL) {
        buf_printf(to, "%s$%s", open, row->env);
        open = "; ";
    }
    if (open[0] == ';')
        buf_text(to, "]");
}

static void append_row(const struct option_row *row, struct buf *to)
{
    size_t const start = to->len;
    if (row->letter != 0)
        buf_printf(to, "  -%c, --%s", row->letter, row->flag);
    else
        buf_printf(to, "      --%s", row->flag);
    for (size_t k = 0; row->choices != NULL && row->choices[k] != NULL; k++)
        buf_printf(to, "%s%s", k == 0 ? " " : "|", row->choices[k]);
    if (row->kind == OPTION_CHOICES)
        buf_text(to, ",...");
    if (row->choices == NULL && row->unit != NULL)
        buf_printf(to, " %s", row->unit);
    pad_to_column(to, start, HELP_COLUMN);
    buf_text(to, row->help);
    append_default(row, to);
    buf_text(to, "\n");
}

void options_help(const struct option_set *set, unsigned readers, struct buf *to)
{
    for (size_t i = 0; i < set->len; i++)
        if (!set->rows[i].hidden && option_table_is_read(set, &set->rows[i], readers))
            append_row(&set->rows[i], to);
}
