#include "range.h"
#include <assert.h>
#include <string.h>

static const struct range_row ranges[] = {
#define X(name, from, to, reason) [RANGE_##name] = {#name, (from), (to), reason},
    RANGES(X)
#undef X
};
static const struct range_field_row fields[] = {
#define X(message, field, range) [RANGE_OF_##message##_##field] = {#message, #field, RANGE_##range},
    FIELD_RANGES(X)
#undef X
};

const struct range_row *range_row(enum range range)
{
    return &ranges[range];
}

const struct range_field_row *range_field_row(enum range_field field)
{
    assert(field < RANGE_FIELDS);
    return &fields[field];
}

enum range_field range_find(const char *message, const char *field)
{
    unsigned i = 0;
    while (i < RANGE_FIELDS &&
           (strcmp(fields[i].message, message) != 0 || strcmp(fields[i].field, field) != 0))
        i++;
    return (enum range_field)i;
}

static bool range_has(const struct range_row *range, uint64_t number)
{
    return number >= range->least && number <= range->most;
}

static uint64_t range_end(const struct range_row *range, uint64_t number)
{
    return number < range->least ? range->least : range->most;
}

static const char *range_side(const struct range_row *range, uint64_t number)
{
    return number < range->least ? "less" : "more";
}

thole_status range_check_as(enum range range, const char *what, uint64_t number, thole_error *reterr)
{
    const struct range_row *const row = &ranges[range];
    if (range_has(row, number))
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "%s: %llu is %s than %llu", what, (unsigned long long)number,
                      range_side(row, number), (unsigned long long)range_end(row, number));
}

thole_status range_check(enum range_field field, uint64_t number, thole_error *reterr)
{
    const struct range_field_row *const of = range_field_row(field);
    const struct range_row *const row = &ranges[of->range];
    if (range_has(row, number))
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "field %s of %s: %llu is %s than %llu", of->field, of->message,
                      (unsigned long long)number, range_side(row, number),
                      (unsigned long long)range_end(row, number));
}

uint64_t range_nearest(enum range range, uint64_t number)
{
    const struct range_row *const row = &ranges[range];
    return range_has(row, number) ? number : range_end(row, number);
}

uint64_t range_sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
