/* Which names of orchestrations one engine has and another has not. Pure. */
#ifndef THOLE_NAME_DIFFERENCE_H
#define THOLE_NAME_DIFFERENCE_H
#include "buf.h"

struct name_list {
    const thole_slice *names; /* "name", and "name@version" beyond version 1 */
    size_t len;
};
bool name_list_has(const struct name_list *list, thole_slice name);
/* Appends the names that @p one has and @p other has not, "a, b, …", some of them; returns how many there
 * are.
 */
size_t name_list_lacking(const struct name_list *one, const struct name_list *other, struct buf *to);
#endif
