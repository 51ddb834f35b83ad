/*
 * Many starts on their way at a time: each is answered once, those that are refused concern nobody else, what
 * NATS lost is sent again, and when nothing can be stored any more the caller hears it soon.
 */
#include "client_fixture.h"
#include "reader.h"
#include <string.h>
#include <unistd.h>

enum { MANY = 6000, EACH_BAD = 100, AWAY_AT = 500, ON_THEIR_WAY_MAX = 2048 };

struct given {
    const char *name;
    size_t n, limit;              /* given so far; in all */
    size_t stored, refused, lost; /* answers */
    size_t stop_at, break_at,
        away_at; /* the source fails; the answer refuses; the server is killed. 0: never */
    unsigned char answers[MANY + 1]; /* of each token */
    bool comes_back, ids_match;
    char id[64];
};

static bool is_bad(size_t number)
{
    return number % EACH_BAD == 0;
}

static thole_status next_start(void *arg, thole_start_item *ret_item, thole_error *reterr)
{
    struct given *const given = arg;
    if (given->n == given->limit)
        return THOLE_NOT_FOUND;
    if (given->stop_at > 0 && given->n == given->stop_at)
        return thole_fail(reterr, THOLE_APP, "no more of this");
    given->n++;
    if (given->n == given->away_at)
        server_kill9(&fixture.server);
    if (given->n == given->away_at && given->comes_back)
        CHECK_STATUS(server_restart(&fixture.server, &fixture.err), THOLE_OK);
    (void)snprintf(given->id, sizeof given->id, "%s-%zu", given->name, given->n);
    CU_ASSERT_EQUAL(ret_item->size, sizeof *ret_item);
    ret_item->instance = is_bad(given->n) ? THOLE_STR("") : thole_slice_from(given->id);
    ret_item->orchestration = THOLE_STR("order");
    ret_item->input = THOLE_STR("in");
    ret_item->token = given->n;
    return THOLE_OK;
}

static thole_status on_answer(void *arg, uint64_t token, thole_slice instance, const thole_error *error)
{
    struct given *const given = arg;
    char id[64];
    if (token > MANY)
        return THOLE_CORRUPT;
    (void)snprintf(id, sizeof id, "%s-%zu", given->name, (size_t)token);
    if (!thole_slice_equal(instance, is_bad(token) ? THOLE_STR("") : thole_slice_from(id)))
        given->ids_match = false;
    given->answers[token]++;
    given->stored += error->status == THOLE_OK;
    given->refused += error->status == THOLE_INVALID;
    given->lost += error->status == THOLE_UNAVAILABLE;
    return given->break_at > 0 && given->stored == given->break_at ? THOLE_APP : THOLE_OK;
}

static uint64_t messages(void)
{
    struct stream_bounds bounds = {.last = 0};
    for (unsigned i = 0; i < 200 && stream_bounds(fixture.script.connection, "THOLE_default_IN_0", &bounds,
                                                  &fixture.err) != THOLE_OK;
         i++)
        (void)usleep(20000);
    return bounds.last;
}

/* Each that was given was answered, once. */
static void check_each(const struct given *given)
{
    size_t wrong = 0;
    for (size_t token = 1; token <= MANY; token++)
        wrong += given->answers[token] != (token <= given->n);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(given->stored + given->refused + given->lost, given->n);
    CU_ASSERT_TRUE(given->ids_match);
}

static thole_status start_all(thole_client *client, struct given *given)
{
    thole_status const status = thole_client_start_many(client, next_start, on_answer, given, &fixture.err);
    check_each(given);
    return status;
}

static void test_each_once(void)
{
    static struct given given = {.name = "each", .limit = MANY, .ids_match = true};
    uint64_t const before = messages();
    engine_script_mode(&fixture.script, SCRIPT_SILENT);
    CHECK_STATUS(start_all(fixture.client, &given), THOLE_OK);
    CU_ASSERT_EQUAL(given.n, MANY);
    CU_ASSERT_EQUAL(given.refused, MANY / EACH_BAD);
    CU_ASSERT_EQUAL(messages() - before, MANY - MANY / EACH_BAD);
}

static void test_none(void)
{
    static struct given given = {.name = "none", .ids_match = true};
    CHECK_STATUS(start_all(fixture.client, &given), THOLE_OK);
}

/* The caller ends it; what is on its way is answered all the same. */
static void test_stopped(void)
{
    static struct given source = {.name = "source", .limit = MANY, .stop_at = 3000, .ids_match = true};
    static struct given refuses = {.name = "refuses", .limit = MANY, .break_at = 1000, .ids_match = true};
    CHECK_STATUS(start_all(fixture.client, &source), THOLE_APP);
    CU_ASSERT_EQUAL(source.n, 3000);
    CU_ASSERT_PTR_NOT_NULL(strstr(fixture.err.text, "no more of this"));
    CHECK_STATUS(start_all(fixture.client, &refuses), THOLE_APP);
    CU_ASSERT(refuses.n >= 1000 && refuses.n < MANY);
}

static thole_client *client_with(uint64_t timeout_ms)
{
    thole_client_options options;
    thole_client *client = NULL;
    thole_client_options_init(&options);
    options.nats_url = fixture.server.url;
    options.timeout_ms = timeout_ms;
    CHECK_STATUS(thole_client_open(&options, &client, &fixture.err), THOLE_OK);
    return client;
}

/* NATS is killed in the middle and comes back: all are stored, some perhaps twice, under one request id. */
static void test_restart(void)
{
    static struct given given = {
        .name = "restart", .limit = MANY, .away_at = AWAY_AT, .comes_back = true, .ids_match = true};
    uint64_t const before = messages();
    thole_client *const client = client_with(30000);
    CU_ASSERT_PTR_NOT_NULL_FATAL(client);
    CHECK_STATUS(start_all(client, &given), THOLE_OK);
    CU_ASSERT_EQUAL(given.stored, MANY - MANY / EACH_BAD);
    CU_ASSERT(messages() - before >= given.stored);
    thole_client_close(client);
}

/* The server stays away: no more starts are taken than were on their way. */
static void test_away(void)
{
    static struct given given = {.name = "away", .limit = MANY, .away_at = AWAY_AT, .ids_match = true};
    struct timespec const since = fixture_begin();
    thole_client *const client = client_with(1000);
    CU_ASSERT_PTR_NOT_NULL_FATAL(client);
    CHECK_STATUS(start_all(client, &given), THOLE_UNAVAILABLE);
    CU_ASSERT(given.lost > 0);
    CU_ASSERT(given.n - given.refused <= AWAY_AT + ON_THEIR_WAY_MAX); /* refused starts are not on their
                                                                         way */
    CU_ASSERT(fixture_elapsed_ms(&since) < 20000);
    thole_client_close(client);
    CHECK_STATUS(server_restart(&fixture.server, &fixture.err), THOLE_OK);
}

static const struct thole_test tests[] = {
    {"each is answered once", test_each_once},
    {"none", test_none},
    {"stopped by the caller", test_stopped},
    {"through a restart of NATS", test_restart},
    {"NATS stays away", test_away},
};

int main(void)
{
    return fixture_run("client_start_many", tests, ARRAY_LEN(tests));
}
