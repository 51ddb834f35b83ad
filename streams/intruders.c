#include "intruders.h"
#include "api.h"
#include "jscan.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FOUND_MAX = 64 };

/* A wildcard in the first token matches ours, too; inboxes of thole and of others begin otherwise. */
bool intruder_delivers(thole_slice deliver)
{
    static const char *const begins[] = {"thole", "$KV", "$JS", "*", ">"};
    thole_slice const token = subject_nth(deliver, 0);
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (thole_slice_equal(token, thole_slice_from(begins[i])))
            return true;
    return false;
}

struct intruders {
    struct connection *connection;
    intruder_fn *each;
    void *arg;
    const char *stream;               /* the one that is looked at */
    struct intruder found[FOUND_MAX]; /* of that stream; further ones are found by the next look */
    size_t len;
};

static void intruders_take(void *arg, thole_slice info)
{
    struct intruders *const all = arg;
    struct intruder *const next = &all->found[all->len];
    thole_slice value;
    struct buf name, deliver;
    buf_init(&name, INTRUDER_NAME_BYTES - 1);
    buf_init(&deliver, SUBJECT_BYTES_MAX);
    bool const named = json_find(info, "name", &value) && json_text(value, &name);
    if (named && all->len < FOUND_MAX && json_path(info, "config.deliver_subject", &value) &&
        json_text(value, &deliver) && intruder_delivers(buf_bytes(&deliver))) {
        (void)snprintf(next->stream, sizeof next->stream, "%s", all->stream);
        (void)snprintf(next->name, sizeof next->name, "%s", buf_cstr(&name));
        (void)snprintf(next->deliver, sizeof next->deliver, "%.*s", INTRUDER_NAME_BYTES - 1,
                       buf_cstr(&deliver));
        all->len++;
    }
    buf_release(&name);
    buf_release(&deliver);
}

static thole_status intruder_remove(const struct intruders *all, const struct intruder *found,
                                    thole_error *reterr)
{
    char target[API_SUBJECT_BYTES];
    struct buf answer;
    (void)snprintf(target, sizeof target, "%s.%s", found->stream, found->name);
    buf_init(&answer, API_ANSWER_MAX);
    thole_status const status =
        api_call(all->connection, "CONSUMER.DELETE", target, THOLE_STR(""), &answer, NULL, reterr);
    buf_release(&answer);
    return status == THOLE_NOT_FOUND ? THOLE_OK : status;
}

/* A stream that is not there, or that this user may not see, is passed over. */
static thole_status intruders_of_stream(struct intruders *all, const char *stream, thole_error *reterr)
{
    all->stream = stream;
    all->len = 0;
    thole_status const status =
        api_list(all->connection, "CONSUMER.LIST", stream, "consumers", intruders_take, all, reterr);
    for (size_t i = 0; i < all->len; i++) {
        THOLE_TRY(intruder_remove(all, &all->found[i], reterr));
        all->each(all->arg, &all->found[i]);
    }
    return status == THOLE_NOT_FOUND || status == THOLE_DENIED ? THOLE_OK : status;
}

thole_status intruders_remove(struct connection *connection, const struct topology *topology,
                              intruder_fn *each, void *arg, thole_error *reterr)
{
    static const struct {
        bool bucket;
        const char *kind;
    } others[] = {{false, "AUDIT"}, {false, "EVENTS"}, {false, "WORK"},
                  {true, "NODES"},  {true, "CRASHES"}, {true, "BINDINGS"}};
    static const char *const kinds[] = {"HIST", "IN"};
    struct intruders all = {.connection = connection, .each = each, .arg = arg};
    char stream[STREAM_NAME_BYTES_MAX];
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        for (uint32_t p = 0; p < topology->partitions; p++) {
            (void)snprintf(stream, sizeof stream, "THOLE_%s_%s_%" PRIu32, topology->ns, kinds[kind], p);
            THOLE_TRY(intruders_of_stream(&all, stream, reterr));
        }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        (void)snprintf(stream, sizeof stream, "%sTHOLE_%s_%s", others[i].bucket ? "KV_" : "", topology->ns,
                       others[i].kind);
        THOLE_TRY(intruders_of_stream(&all, stream, reterr));
    }
    return THOLE_OK;
}
