#include "children.h"
#include <string.h>

enum { CHILDREN_BYTES_MAX = 32 * 1024 * 1024 };
#define CHILDREN_ALL UINT32_MAX

struct children_reading {
    struct children *children;
    thole_slice root;
};

/* An instance has one parent, so none is met twice but the one where it began: an id that was used again may
 * be its own grandparent. */
static thole_status children_take(void *arg, const thole_instance_info *info)
{
    struct children_reading *const reading = arg;
    struct children *const children = reading->children;
    if (info->foreign || thole_slice_equal(info->instance, reading->root))
        return THOLE_OK;
    buf_slice(&children->ids, info->instance);
    buf_append(&children->ids, "", 1);
    children->len++;
    return buf_status(&children->ids);
}

static thole_status children_of_parent(thole_client *client, thole_slice parent, uint64_t limit,
                                       struct children_reading *reading, thole_error *reterr)
{
    thole_list_filter const filter = {
        .size = sizeof filter, .status = THOLE_INSTANCE_UNKNOWN, .parent = parent, .limit = limit};
    return thole_client_list(client, &filter, children_take, reading, reterr);
}

thole_status children_read(thole_client *client, thole_slice instance, struct children *ret,
                           thole_error *reterr)
{
    struct children_reading reading = {.children = ret, .root = instance};
    *ret = (struct children){.len = 0};
    buf_init(&ret->ids, CHILDREN_BYTES_MAX);
    return children_of_parent(client, instance, CHILDREN_SHOWN_MAX, &reading, reterr);
}

thole_status children_read_all(thole_client *client, thole_slice instance, struct children *ret,
                               thole_error *reterr)
{
    struct children_reading reading = {.children = ret, .root = instance};
    thole_slice one;
    char id[THOLE_ID_BYTES_MAX + 1];
    *ret = (struct children){.len = 0};
    buf_init(&ret->ids, CHILDREN_BYTES_MAX);
    THOLE_TRY(children_of_parent(client, instance, CHILDREN_ALL, &reading, reterr));
    for (size_t at = 0; children_next(ret, &at, &one);) {
        size_t const len = one.len < sizeof id ? one.len : 0; /* a copy: the buffer grows meanwhile */
        memcpy(id, one.ptr, len);
        THOLE_TRY(children_of_parent(client, (thole_slice){(const uint8_t *)id, len}, CHILDREN_ALL, &reading,
                                     reterr));
    }
    return THOLE_OK;
}

bool children_next(const struct children *children, size_t *at, thole_slice *ret)
{
    if (*at >= children->ids.len)
        return false;
    const uint8_t *const first = children->ids.ptr + *at;
    const uint8_t *const end = memchr(first, 0, children->ids.len - *at);
    *ret = (thole_slice){first, (size_t)(end - first)};
    *at += ret->len + 1;
    return true;
}

void children_release(struct children *children)
{
    buf_release(&children->ids);
}
