#include "name_difference.h"

enum { SHOWN_MAX = 5 };

bool name_list_has(const struct name_list *list, thole_slice name)
{
    for (size_t i = 0; i < list->len; i++)
        if (thole_slice_equal(list->names[i], name))
            return true;
    return false;
}

size_t name_list_lacking(const struct name_list *one, const struct name_list *other, struct buf *to)
{
    size_t n = 0;
    for (size_t i = 0; i < one->len; i++) {
        if (name_list_has(other, one->names[i]))
            continue;
        if (n < SHOWN_MAX)
            buf_printf(to, "%s%.*s", n == 0 ? "" : ", ", THOLE_FMT(one->names[i]));
        n++;
    }
    if (n > SHOWN_MAX)
        buf_text(to, ", …");
    return n;
}
