/*
 * The state of an execution: sorted keys in a skip list. Heights come from a hash of the key, so the list is
 * the same in every replay. A new value replaces the old one in place if it fits, and dropped nodes are
 * reused, so that a long execution does not fill its memory with old values.
 */
#include "instance_state_map.h"
#include "hash.h"
#include "instance_memory.h"
#include "message.h"
#include <assert.h>
#include <string.h>

enum { HEIGHT_MAX = 9, VALUE_ROOM_MIN = 16 };

struct state_node {
    uint8_t key[STATE_KEY_BYTES_MAX];
    uint8_t key_len, height;
    uint8_t *value;
    size_t value_len, value_room;
    struct state_node *next[HEIGHT_MAX];
};

static thole_slice instance_state_map_key_of(const struct state_node *node)
{
    return (thole_slice){node->key, node->key_len};
}

static int instance_state_map_compare(thole_slice a, thole_slice b)
{
    size_t const len = a.len < b.len ? a.len : b.len;
    int const order = len == 0 ? 0 : memcmp(a.ptr, b.ptr, len);
    if (order != 0)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

/* The last node before @p key on each level; the list's head is a node without a key. */
static struct state_node *instance_state_map_find_path(const struct state_map *map, thole_slice key,
                                                       struct state_node *path[HEIGHT_MAX])
{
    struct state_node *node = map->head;
    for (size_t level = HEIGHT_MAX; level-- > 0;) {
        while (node->next[level] != NULL &&
               instance_state_map_compare(instance_state_map_key_of(node->next[level]), key) < 0)
            node = node->next[level];
        if (path != NULL)
            path[level] = node;
    }
    return node;
}

static struct state_node *instance_state_map_find(const struct state_map *map, thole_slice key)
{
    if (map->head == NULL)
        return NULL;
    struct state_node *node = instance_state_map_find_path(map, key, NULL)->next[0];
    return node != NULL && instance_state_map_compare(instance_state_map_key_of(node), key) == 0 ? node
                                                                                                 : NULL;
}

bool state_find(const struct state_map *map, thole_slice key, thole_slice *ret_value)
{
    const struct state_node *node = instance_state_map_find(map, key);
    if (node != NULL)
        *ret_value = (thole_slice){node->value, node->value_len};
    return node != NULL;
}

bool state_next(const struct state_map *map, thole_slice key, thole_slice *ret_key, thole_slice *ret_value)
{
    if (map->head == NULL)
        return false;
    const struct state_node *node = instance_state_map_find_path(map, key, NULL)->next[0];
    if (node != NULL && instance_state_map_compare(instance_state_map_key_of(node), key) == 0)
        node = node->next[0];
    if (node == NULL)
        return false;
    *ret_key = instance_state_map_key_of(node);
    *ret_value = (thole_slice){node->value, node->value_len};
    return true;
}

size_t state_len(const struct state_map *map)
{
    size_t n = 0;
    if (map->head != NULL)
        for (const struct state_node *node = map->head->next[0]; node != NULL; node = node->next[0])
            n++;
    return n;
}

static uint8_t height_of(thole_slice key)
{
    uint64_t hash = hash_bytes(3, key);
    uint8_t height = 1;
    for (; height < HEIGHT_MAX && (hash & 3) == 0; hash >>= 2)
        height++;
    return height;
}

static struct state_node *node_create(struct instance *in)
{
    struct state_node *node = in->state.spare;
    if (node != NULL) {
        in->state.spare = node->next[0];
        return node;
    }
    node = arena_alloc(&in->arena, sizeof *node);
    if (node == NULL)
        (void)instance_full(in);
    return node;
}

static struct state_node *instance_state_map_insert(struct instance *in, thole_slice key)
{
    struct state_map *map = &in->state;
    struct state_node *path[HEIGHT_MAX];
    if (map->head == NULL) {
        map->head = node_create(in);
        if (map->head == NULL)
            return NULL;
    }
    struct state_node *node = node_create(in);
    if (node == NULL)
        return NULL;
    assert(key.len >= 1 && key.len <= STATE_KEY_BYTES_MAX);
    memmove(node->key, key.ptr, key.len); /* the key may point into a dropped node */
    node->key_len = (uint8_t)key.len;
    node->height = height_of(key);
    node->value_len = 0;
    (void)instance_state_map_find_path(map, key, path);
    for (size_t level = 0; level < node->height; level++) {
        node->next[level] = path[level]->next[level];
        path[level]->next[level] = node;
    }
    map->bytes += key.len;
    return node;
}

/* @p value may point into the old value. */
thole_status state_put(struct instance *in, thole_slice key, thole_slice value)
{
    struct state_node *node = instance_state_map_find(&in->state, key);
    if (node == NULL)
        node = instance_state_map_insert(in, key);
    if (node == NULL)
        return in->broken;
    uint8_t *to = node->value;
    if (value.len > node->value_room) {
        size_t room = node->value_room == 0 ? VALUE_ROOM_MIN : node->value_room * 2;
        if (room < value.len)
            room = value.len;
        to = arena_alloc(&in->arena, room);
        if (to == NULL)
            return instance_full(in);
        node->value_room = room;
    }
    if (value.len > 0)
        memmove(to, value.ptr, value.len);
    assert(in->state.bytes >= node->value_len);
    in->state.bytes = in->state.bytes - node->value_len + value.len;
    node->value = to;
    node->value_len = value.len;
    return THOLE_OK;
}

void state_drop(struct state_map *map, thole_slice key)
{
    struct state_node *path[HEIGHT_MAX], *node = instance_state_map_find(map, key);
    if (node == NULL)
        return;
    (void)instance_state_map_find_path(map, key, path);
    for (size_t level = 0; level < node->height; level++) {
        assert(path[level]->next[level] == node);
        path[level]->next[level] = node->next[level];
    }
    assert(map->bytes >= node->key_len + node->value_len);
    map->bytes -= node->key_len + node->value_len;
    node->next[0] = map->spare;
    map->spare = node;
}

thole_status instance_set_custom_status(struct instance *in, thole_slice status)
{
    thole_slice const text = text_cut(status, STATUS_BYTES_MAX);
    if (in->status.room == NULL)
        in->status.room = arena_alloc(&in->arena, STATUS_BYTES_MAX);
    if (in->status.room == NULL)
        return instance_full(in);
    if (text.len > 0)
        memmove(in->status.room, text.ptr, text.len);
    in->status.text = (thole_slice){in->status.room, text.len};
    return THOLE_OK;
}
