#include "visitors.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>
#include <sys/socket.h>

static void unlink_visitor(struct visitors *visitors, struct visitor *visitor)
{
    struct visitor **at = &visitors->first;
    while (*at != visitor) {
        assert(*at != NULL);
        at = &(*at)->next;
    }
    *at = visitor->next;
    visitor->next = NULL;
}

static void visitors_append(struct visitors *visitors, struct visitor *visitor)
{
    struct visitor **at = &visitors->first;
    while (*at != NULL)
        at = &(*at)->next;
    *at = visitor;
}

static void visitors_end(struct visitor *visitor)
{
    visitor->ended = true;
    (void)shutdown(visitor->fd, SHUT_RDWR);
}

/* The first is the oldest. An answer that is waited for is kept as long as any request is not there. */
static void visitors_make_room(const struct visitors *visitors, uint64_t now_ms)
{
    struct visitor *awaited = NULL, *oldest = NULL;
    size_t open = 0;
    for (struct visitor *v = visitors->first; v != NULL; v = v->next) {
        if (!v->ended && !v->answered && now_ms >= v->since_ms + VISITOR_REQUEST_MS)
            visitors_end(v);
        if (v->ended)
            continue;
        open++;
        if (oldest == NULL)
            oldest = v;
        if (awaited == NULL && !v->answered)
            awaited = v;
    }
    if (open >= visitors->max)
        visitors_end(awaited != NULL ? awaited : oldest);
}

struct visitor *visitors_come(struct visitors *visitors, int fd, uint64_t now_ms)
{
    assert(visitors->max > 0);
    visitors_make_room(visitors, now_ms);
    struct visitor *const visitor = memory_new(sizeof *visitor);
    *visitor = (struct visitor){.fd = fd, .since_ms = now_ms};
    visitors_append(visitors, visitor);
    return visitor;
}

void visitor_asks(struct visitor *visitor)
{
    visitor->answered = true;
}

void visitors_answered(struct visitors *visitors, struct visitor *visitor, uint64_t now_ms)
{
    unlink_visitor(visitors, visitor);
    visitor->answered = false;
    visitor->since_ms = now_ms;
    visitors_append(visitors, visitor);
}

void visitors_go(struct visitors *visitors, struct visitor *visitor)
{
    if (visitor == NULL)
        return;
    unlink_visitor(visitors, visitor);
    free(visitor);
}
