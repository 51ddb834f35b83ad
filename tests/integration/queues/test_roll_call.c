/* The workers of a namespace: the question, its answers, and those that are none. */
#include "roll_call.h"
#include "streams_fixture.h"
#include "subject.h"
#include <stdio.h>
#include <string.h>

enum { ARENA_BYTES = 1024 * 1024 };

struct asked { /* a worker, or who pretends to be one */
    struct connection *connection;
    struct roll_answer answer;
    const struct header *headers; /* not NULL: sent as they are */
    size_t headers_len;
    thole_slice body;
    bool silent;
    struct subscription *subscription;
};

static void on_question(void *arg, const struct delivery *question)
{
    const struct asked *asked = arg;
    char reply[SUBJECT_BYTES_MAX];
    thole_error err = {0};
    if (asked->silent)
        return;
    snprintf(reply, sizeof reply, "%.*s", THOLE_FMT(question->reply));
    thole_status const status = asked->headers != NULL
                                    ? connection_publish(asked->connection, reply, asked->headers,
                                                         asked->headers_len, asked->body, &err)
                                    : roll_call_answer(asked->connection, question, &asked->answer, &err);
    CHECK_OK(status, &err);
}

static void listen(struct asked *asked)
{
    thole_error err = {0};
    CHECK_OK(connection_subscribe(asked->connection, "thole.roll.workers", on_question, asked,
                                  &asked->subscription, &err),
             &err);
    CHECK_OK(connection_flush(asked->connection, &err), &err);
}

/* "queue worker slots name,name\n" for each. Static. */
static const char *answers(struct connection *connection, uint64_t *ret_ms)
{
    static char text[8192];
    struct roll_answer *list = NULL;
    struct arena arena;
    size_t len = 0, at = 0;
    thole_error err = {0};
    uint64_t const start = clock_ms();
    arena_init(&arena, ARENA_BYTES);
    CHECK_OK(roll_call(connection, "roll", &arena, &list, &len, &err), &err);
    *ret_ms = clock_ms() - start;
    text[0] = '\0';
    for (size_t i = 0; i < len; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%.*s %.*s %llu", THOLE_FMT(list[i].queue),
                               THOLE_FMT(list[i].worker), (unsigned long long)list[i].slots);
        for (size_t k = 0; k < list[i].activities_len; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%c%.*s", k == 0 ? ' ' : ',',
                                   THOLE_FMT(list[i].activities[k]));
        at += (size_t)snprintf(text + at, sizeof text - at, "\n");
    }
    arena_release(&arena);
    return text;
}

static void test_nobody(void)
{
    struct connection *connection = connect_here();
    uint64_t ms;
    CHECK_STR("nobody", answers(connection, &ms), "");
    CU_ASSERT(ms < ROLL_CALL_SILENCE_MS);
    connection_close(connection);
}

static void test_a_silent_one(void)
{
    struct connection *connection = connect_here();
    struct asked frozen = {.connection = connection, .silent = true};
    uint64_t ms;
    listen(&frozen);
    CHECK_STR("nobody answers", answers(connection, &ms), "");
    CU_ASSERT(ms >= ROLL_CALL_SILENCE_MS && ms < 5000);
    subscription_close(frozen.subscription);
    connection_close(connection);
}

#define HEADERS(worker, queue, slots)                                                                        \
    {                                                                                                        \
        {"Thole-Worker", THOLE_STR(worker)}, {"Thole-Queue", THOLE_STR(queue)},                              \
        {                                                                                                    \
            "Thole-Slots", THOLE_STR(slots)                                                                  \
        }                                                                                                    \
    }

/* An answer that no worker would send counts as none. */
static void test_answers(void)
{
    struct header const bad[][3] = {HEADERS("", "q", "1"), HEADERS("w", "a.b", "1"), HEADERS("w", "q", "x"),
                                    HEADERS("w w", "q", "1"), HEADERS("w", "q", "1")};
    thole_slice const names[] = {THOLE_STR("charge"), THOLE_STR("echo")};
    struct connection *asking = connect_here(), *working = connect_here();
    struct asked asked[8];
    uint64_t ms;
    memset(asked, 0, sizeof asked);
    asked[0].answer = (struct roll_answer){THOLE_STR("w-2"), THOLE_STR("gpu"), 4, names, 2};
    asked[1].answer = (struct roll_answer){THOLE_STR("w-1"), THOLE_STR("gpu"), 16, names, 1};
    asked[2].answer = (struct roll_answer){THOLE_STR("w-3"), THOLE_STR("default"), 1, NULL, 0};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        asked[3 + i].headers = bad[i];
        asked[3 + i].headers_len = i == 0 ? 0 : 3;
        asked[3 + i].body = i + 1 == ARRAY_LEN(bad) ? THOLE_STR("echo,,\x1b[2J") : THOLE_STR("echo");
    }
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        asked[i].connection = working;
        listen(&asked[i]);
    }
    CHECK_STR("by queue and worker", answers(asking, &ms),
              "default w-3 1\ngpu w-1 16 charge\ngpu w-2 4 charge,echo\n");
    CU_ASSERT(ms < ROLL_CALL_SILENCE_MS + 1000);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++)
        subscription_close(asked[i].subscription);
    connection_close(asking);
    connection_close(working);
}

static const struct thole_test tests[] = {
    {"nobody is there", test_nobody},
    {"nobody answers", test_a_silent_one},
    {"answers, and what is none", test_answers},
};
FIXTURE_MAIN("roll_call", tests)
