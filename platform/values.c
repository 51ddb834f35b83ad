#include "values.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WORD_BYTES = 63, DIGITS_MAX = 18 };

struct unit {
    const char *name;
    uint64_t factor;
};
static const struct unit durations[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000}, {"d", UINT64_C(24) * 3600 * 1000}};
static const struct unit sizes[] = {
    {"", 1},     {"KiB", 1024},      {"MiB", 1024 * 1024},     {"GiB", 1024 * 1024 * 1024},
    {"k", 1024}, {"m", 1024 * 1024}, {"g", 1024 * 1024 * 1024}};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Reads at most DIGITS_MAX digits; returns how many there were. More than that is as wrong as none. */
static size_t read_digits(const char *text, uint64_t *ret)
{
    size_t n = 0;
    *ret = 0;
    for (; text[n] >= '0' && text[n] <= '9'; n++) {
        if (n == DIGITS_MAX)
            return 0;
        *ret = *ret * 10 + (uint64_t)(text[n] - '0');
    }
    return n;
}

static const struct unit *find_unit(const struct unit *units, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(units[i].name, name) == 0)
            return &units[i];
    return NULL;
}

/* Reads the digits after the point, in thousandths; refuses anything finer. */
static bool read_thousandths(const char **text, uint64_t *ret)
{
    uint64_t digits;
    *ret = 0;
    if (**text != '.')
        return true;
    size_t n = read_digits(*text + 1, &digits);
    if (n == 0 || n > 3)
        return false;
    *text += 1 + n;
    for (; n < 3; n++)
        digits *= 10;
    *ret = digits;
    return true;
}

thole_status duration_parse(const char *text, uint64_t *ret_ms, thole_error *reterr)
{
    uint64_t whole, thousandths = 0;
    const char *rest = text;
    if (strcmp(text, "0") == 0) {
        *ret_ms = 0;
        return THOLE_OK;
    }
    size_t const n = read_digits(text, &whole);
    rest += n;
    const struct unit *unit =
        n > 0 && read_thousandths(&rest, &thousandths) ? find_unit(durations, COUNT(durations), rest) : NULL;
    if (unit == NULL || thousandths * unit->factor % 1000 != 0)
        return thole_fail(
            reterr, THOLE_INVALID,
            "\"%.40s\" is not a duration; write a number and a unit: 500ms, 10s, 1.5s, 2m, 1h, 7d", text);
    if (whole > (UINT64_MAX / 2) / unit->factor)
        return thole_fail(reterr, THOLE_INVALID, "the duration \"%.40s\" is too long", text);
    *ret_ms = whole * unit->factor + thousandths * unit->factor / 1000;
    return THOLE_OK;
}

thole_status size_parse(const char *text, uint64_t *ret_bytes, thole_error *reterr)
{
    uint64_t whole;
    size_t const n = read_digits(text, &whole);
    const struct unit *unit = n > 0 ? find_unit(sizes, COUNT(sizes), text + n) : NULL;
    if (unit == NULL)
        return thole_fail(reterr, THOLE_INVALID,
                          "\"%.40s\" is not a size; write bytes, or a number and KiB, MiB or GiB", text);
    if (whole > (UINT64_MAX / 2) / unit->factor)
        return thole_fail(reterr, THOLE_INVALID, "the size \"%.40s\" is too large", text);
    *ret_bytes = whole * unit->factor;
    return THOLE_OK;
}

thole_status number_parse(const char *text, uint64_t *ret, thole_error *reterr)
{
    uint64_t value;
    size_t const n = read_digits(text, &value);
    if (n == 0 || text[n] != '\0')
        return thole_fail(reterr, THOLE_INVALID, "\"%.40s\" is not a whole number", text);
    *ret = value;
    return THOLE_OK;
}

void duration_format(uint64_t ms, char ret[DURATION_TEXT_BYTES])
{
    const struct unit *best = &durations[0];
    for (size_t i = 1; i < COUNT(durations); i++)
        if (ms > 0 && ms % durations[i].factor == 0)
            best = &durations[i];
    if (ms == 0)
        (void)snprintf(ret, DURATION_TEXT_BYTES, "0");
    else
        (void)snprintf(ret, DURATION_TEXT_BYTES, "%" PRIu64 "%s", ms / best->factor, best->name);
}

static size_t values_smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment distance, three rows of the table at a time. */
size_t word_distance(const char *a, const char *b)
{
    size_t rows[3][WORD_BYTES + 1];
    size_t const na = strnlen(a, WORD_BYTES), nb = strnlen(b, WORD_BYTES);
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = rows[i % 3];
        const size_t *last = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t const change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            now[j] = values_smaller(change, values_smaller(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = values_smaller(now[j], before[j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

const char *word_suggest(const char *word, const char *const *words, size_t n)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 3 + 1; /* one letter in three may be wrong */
    for (size_t i = 0; i < n; i++) {
        size_t const distance = word_distance(word, words[i]);
        if (distance <= best_distance && distance < strlen(words[i]) &&
            (best == NULL || distance < best_distance)) {
            best = words[i];
            best_distance = distance;
        }
    }
    return best;
}
