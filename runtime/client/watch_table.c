#include "watch_table.h"
#include "watch.h"
#include <assert.h>

/* The two tokens of a watch are consecutive numbers, the first one even. */
static struct watch **token_bucket(const struct watch_table *table, uint64_t token)
{
    return (struct watch **)(uintptr_t)&table->by_token[token / 2 % WATCH_BUCKETS];
}

static struct watch **name_bucket(const struct watch_table *table, thole_slice name)
{
    uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ name.ptr[i]) * UINT32_C(16777619);
    return (struct watch **)(uintptr_t)&table->by_name[hash % WATCH_BUCKETS];
}

void watch_table_add(struct watch_table *table, struct watch *watch)
{
    struct watch **const tokens = token_bucket(table, watch->token);
    struct watch **const names = name_bucket(table, buf_bytes(&watch->name));
    assert(watch->token % 2 == 0);
    watch->next = table->first;
    watch->link = &table->first;
    if (watch->next != NULL)
        watch->next->link = &watch->next;
    table->first = watch;
    watch->next_token = *tokens;
    *tokens = watch;
    watch->next_name = *names;
    *names = watch;
}

void watch_table_remove(struct watch_table *table, struct watch *watch)
{
    struct watch **at = token_bucket(table, watch->token);
    while (*at != watch)
        at = &(*at)->next_token;
    *at = watch->next_token;
    at = name_bucket(table, buf_bytes(&watch->name));
    while (*at != watch)
        at = &(*at)->next_name;
    *at = watch->next_name;
    *watch->link = watch->next;
    if (watch->next != NULL)
        watch->next->link = watch->link;
}

struct watch *watch_table_answer(const struct watch_table *table, uint64_t token)
{
    struct watch *watch = *token_bucket(table, token);
    while (watch != NULL && watch->token / 2 != token / 2)
        watch = watch->next_token;
    return watch;
}

static struct watch *first_named(struct watch *watch, thole_slice name)
{
    while (watch != NULL && !thole_slice_equal(buf_bytes(&watch->name), name))
        watch = watch->next_name;
    return watch;
}

struct watch *watch_table_named(const struct watch_table *table, thole_slice name)
{
    return first_named(*name_bucket(table, name), name);
}

struct watch *watch_table_next_named(const struct watch *watch)
{
    return first_named(watch->next_name, buf_bytes(&watch->name));
}
