/* Which connections end for others: those whose requests are not there. */
#include "thole_cunit.h"
#include "visitors.h"
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PLACES = 4, SEEN_MAX = 16 };

static struct visitors visitors;
static struct visitor *there[SEEN_MAX];
static int ends[SEEN_MAX][2];
static char text[SEEN_MAX + 1];

static void come(size_t i, uint64_t now_ms)
{
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]), 0);
    there[i] = visitors_come(&visitors, ends[i][0], now_ms);
}

static void go(size_t i)
{
    visitors_go(&visitors, there[i]);
    there[i] = NULL;
    (void)close(ends[i][0]);
    (void)close(ends[i][1]);
}

/* A letter for each that came: `o`pen, `e`nded, `-`: gone. */
static const char *states(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct pollfd other = {.fd = ends[i][1], .events = POLLIN};
        text[i] = there[i] == NULL ? '-' : poll(&other, 1, 0) == 1 ? 'e' : 'o';
    }
    text[n] = '\0';
    return text;
}

static void begin(void)
{
    visitors = (struct visitors){.max = PLACES};
}

static void finish(size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (there[i] != NULL)
            go(i);
    CU_ASSERT_PTR_NULL(visitors.first);
}

static void test_the_oldest_ends(void)
{
    begin();
    for (size_t i = 0; i < 4; i++)
        come(i, i);
    CHECK_STR("as many as there is room for", states(4), "oooo");
    come(4, 4);
    come(5, 5);
    CHECK_STR("two more", states(6), "eeoooo");
    go(0);
    go(1);
    come(6, 6);
    CHECK_STR("one more", states(7), "--eoooo");
    finish(7);
}

static void test_answers_stay(void)
{
    begin();
    for (size_t i = 0; i < 4; i++)
        come(i, i);
    visitor_asks(there[0]);
    visitor_asks(there[1]);
    come(4, 4);
    CHECK_STR("one that is answered stays", states(5), "ooeoo");
    visitors_answered(&visitors, there[0], 10);
    come(5, 11);
    CHECK_STR("one that was answered is younger", states(6), "ooeeoo");
    come(6, 12);
    come(7, 13);
    CHECK_STR("than one that came before", states(8), "eoeeeooo");
    for (size_t i = 5; i < 8; i++)
        visitor_asks(there[i]);
    come(8, 14);
    CHECK_STR("if all are answered the oldest ends", states(9), "eeeeeoooo");
    finish(9);
}

/* However little is sent again and again. */
static void test_requests_have_a_time(void)
{
    begin();
    come(0, 0);
    come(1, 1);
    visitor_asks(there[1]);
    come(2, VISITOR_REQUEST_MS - 1);
    CHECK_STR("before", states(3), "ooo");
    come(3, VISITOR_REQUEST_MS + 1);
    CHECK_STR("too late", states(4), "eooo");
    visitors_answered(&visitors, there[1], VISITOR_REQUEST_MS + 1);
    come(4, 2 * VISITOR_REQUEST_MS);
    CHECK_STR("from its answer on", states(5), "eoeoo");
    finish(5);
}

static const struct thole_test tests[] = {
    {"the oldest ends", test_the_oldest_ends},
    {"answers stay", test_answers_stay},
    {"requests have a time", test_requests_have_a_time},
};

THOLE_TEST_MAIN("console_visitors", tests)
