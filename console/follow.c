/* An instance's history, to a stream: what there is, then what comes, until it has ended. */
#include "client_internal.h"
#include "clock.h"
#include "forms.h"
#include "hub_parts.h"

enum { AGAIN_MS = 250, EVENT_BYTES_MAX = 1024 * 1024 };

struct following {
    struct feed *stream;
    uint64_t sequence; /* of the last event */
    bool missing;      /* the absence of the instance was reported */
};

static void follow_pause_ms(uint64_t ms)
{
    struct timespec const pause = clock_timespec(ms);
    (void)nanosleep(&pause, NULL);
}

static thole_status follow_give(void *arg, const thole_history_event *event)
{
    struct following *const following = arg;
    struct buf text;
    struct json json;
    if (event == NULL)
        return feed_is_open(following->stream) ? THOLE_OK : THOLE_CANCELLED;
    buf_init(&text, EVENT_BYTES_MAX);
    buf_printf(&text, "event: history\nid: %llu\ndata: ", (unsigned long long)event->sequence);
    json_to_buf(&json, &text);
    json_object(&json);
    form_event(&json, event, HUB_EVENT_DATA_MAX);
    json_end(&json);
    buf_text(&text, "\n\n");
    following->sequence = event->sequence;
    bool const open = feed_put_patiently(following->stream, buf_bytes(&text));
    buf_release(&text);
    return open ? THOLE_OK : THOLE_CANCELLED;
}

static void follow_notify(struct feed *stream, const char *event, const char *key, thole_slice value)
{
    struct buf text;
    struct json json;
    buf_init(&text, EVENT_BYTES_MAX);
    buf_printf(&text, "event: %s\ndata: ", event);
    json_to_buf(&json, &text);
    json_object(&json);
    json_member(&json, key, value);
    json_end(&json);
    buf_text(&text, "\n\n");
    (void)feed_put_patiently(stream, buf_bytes(&text));
    buf_release(&text);
}

/* True: there is nothing more to follow. */
static bool follow_once(struct following *following, thole_client *client)
{
    struct feed *const stream = following->stream;
    thole_error error = {.status = THOLE_OK};
    uint64_t const from = following->sequence > 0 ? following->sequence : stream->from;
    thole_status const status = client_history_follow_behind(
        client, buf_bytes(&stream->instance), from > 0 ? from - 1 : 0, follow_give, following, &error);
    if (status == THOLE_OK) {
        follow_notify(stream, "end", "instance", buf_bytes(&stream->instance));
        return true;
    }
    if (status == THOLE_NOT_FOUND && !following->missing)
        follow_notify(stream, "missing", "detail", thole_slice_from(error.text));
    following->missing = status == THOLE_NOT_FOUND;
    return status == THOLE_CANCELLED || status == THOLE_INVALID;
}

void feed_follow(struct feed *stream)
{
    struct following following = {.stream = stream};
    while (feed_is_open(stream)) {
        thole_client *const client = hub_client(stream->hub);
        if (client != NULL && follow_once(&following, client))
            return;
        follow_pause_ms(AGAIN_MS);
    }
}
