#include "row_order.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct keyed {
    thole_slice instance;
    uint64_t execution, number;
    uint32_t place;
};

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* As the collation "C" compares. */
static int compare_bytes(thole_slice a, thole_slice b)
{
    size_t const both = a.len < b.len ? a.len : b.len;
    int const order = both > 0 ? memcmp(a.ptr, b.ptr, both) : 0;
    return order != 0 ? order : compare_numbers(a.len, b.len);
}

static int row_order_compare(const void *left, const void *right)
{
    const struct keyed *const a = left, *const b = right;
    int order = compare_bytes(a->instance, b->instance);
    if (order == 0)
        order = compare_numbers(a->execution, b->execution);
    if (order == 0)
        order = compare_numbers(a->number, b->number);
    return order != 0 ? order : compare_numbers(a->place, b->place);
}

static const void *row_order_element(const void *first, size_t stride, size_t i)
{
    return (const uint8_t *)first + i * stride;
}

uint32_t *row_order(const thole_slice *instance, const uint64_t *execution, const uint64_t *number,
                    size_t stride, size_t n)
{
    assert(n < UINT32_MAX);
    if (n == 0)
        return NULL;
    struct keyed *const rows = memory_array(n, sizeof *rows);
    uint32_t *const order = memory_array(n, sizeof *order);
    for (size_t i = 0; i < n; i++)
        rows[i] = (struct keyed){*(const thole_slice *)row_order_element(instance, stride, i),
                                 *(const uint64_t *)row_order_element(execution, stride, i),
                                 *(const uint64_t *)row_order_element(number, stride, i), (uint32_t)i};
    qsort(rows, n, sizeof *rows, row_order_compare);
    for (size_t i = 0; i < n; i++)
        order[i] = rows[i].place;
    free(rows);
    return order;
}
