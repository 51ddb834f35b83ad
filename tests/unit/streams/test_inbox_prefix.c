/* Which prefixes of inboxes are taken, and what is made of them. */
#include "inbox_prefix.h"
#include "subject.h"
#include "thole_cunit.h"

static void test_prefixes(void)
{
    static const struct {
        const char *prefix, *why; /* NULL: it is taken */
    } rows[] = {
        {INBOX_PREFIX_DEFAULT, NULL},
        {"_INBOX", NULL},
        {"_INBOX_orders", NULL},
        {"_INBOX.orders.eu-1", NULL},
        {"", "must begin with _INBOX"},
        {"INBOX", "must begin with _INBOX"},
        {"_inbox.x", "must begin with _INBOX"},
        {"thole.default.in.0", "must begin with _INBOX"}, /* the engine would publish its answers there */
        {"_R_.x", "must begin with _INBOX"},
        {"_INBOX.", "is no subject"},
        {"_INBOX..x", "is no subject"},
        {"_INBOX.*", "is no subject"},
        {"_INBOX.>", "is no subject"},
        {"_INBOX x", "is no subject"},
        {"_INBOX.x\r\nPUB a 0", "is no subject"},
        {"_INBOX.\xc3\xa4", "is no subject"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_error err = {.status = THOLE_OK};
        thole_status const status = inbox_prefix_check(rows[i].prefix, &err);
        CU_ASSERT_EQUAL(status, rows[i].why == NULL ? THOLE_OK : THOLE_INVALID);
        if (rows[i].why != NULL)
            CHECK_STR(rows[i].prefix, strstr(err.text, rows[i].why) == NULL ? err.text : rows[i].why,
                      rows[i].why);
    }
}

/* No two owners have one prefix, whatever their names are; and each is taken. */
static void test_owners(void)
{
    static const struct inbox_owner owners[] = {
        {"shop", "engine", NULL},      {"shop", "worker", "mail"},    {"shop", "worker", "gpu"},
        {"a", "worker", "b"},          {"a_worker", "engine", NULL},  {"a", "worker", "engine"},
        {"a", "worker", "x_worker_y"}, {"a_worker_x", "worker", "y"}, {"a_", "worker", "b"},
        {"a", "worker", "_b"},         {"a", "worker", "b_"},         {"a__worker", "client", NULL},
        {"a_", "worker", "_b"},        {"a", "gateway", "worker_b"},  {"a", "gateway", NULL},
        {"a", "remote-worker", "b"},   {"a", "remote-client", NULL},  {"A", "worker", "b"},
    };
    static char made[ARRAY_LEN(owners)][INBOX_PREFIX_BYTES_MAX + 1];
    char room[INBOX_PREFIX_BYTES_MAX + 1];
    for (size_t i = 0; i < ARRAY_LEN(owners); i++) {
        inbox_prefix_of(&owners[i], made[i]);
        CU_ASSERT_EQUAL(inbox_prefix_check(made[i], NULL), THOLE_OK);
        for (size_t k = 0; k < i; k++)
            CU_ASSERT_NOT_EQUAL(strcmp(made[i], made[k]), 0);
    }
    CHECK_STR("a role", made[0], "_INBOX_shop_engine");
    CHECK_STR("a queue", made[1], "_INBOX_shop_worker_mail");
    CHECK_STR("underscores", made[7], "_INBOX_a__worker__x_worker_y");
    CHECK_STR("chosen", inbox_prefix_or_own("_INBOX_x", &owners[0], room), "_INBOX_x");
    CHECK_STR("own", inbox_prefix_or_own(NULL, &owners[1], room), "_INBOX_shop_worker_mail");
}

static void test_length(void)
{
    char prefix[INBOX_PREFIX_BYTES_MAX + 2] = "_INBOX_", made[INBOX_OF_CONNECTION_BYTES];
    memset(prefix + 7, 'x', sizeof prefix - 8);
    CU_ASSERT_EQUAL(inbox_prefix_check(prefix, NULL), THOLE_INVALID);
    prefix[INBOX_PREFIX_BYTES_MAX] = '\0';
    CU_ASSERT_EQUAL(inbox_prefix_check(prefix, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(inbox_of_connection(prefix, made, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(strlen(made), sizeof made - 1);
}

/* Each connection has a name of its own, which is a token of a subject; all letters occur. */
static void test_connections(void)
{
    enum { MANY = 1000 };
    static char made[MANY][INBOX_OF_CONNECTION_BYTES];
    bool seen[256] = {false};
    unsigned letters = 0;
    for (size_t i = 0; i < MANY; i++) {
        CU_ASSERT_EQUAL(inbox_of_connection("_INBOX.a", made[i], NULL), THOLE_OK);
        CU_ASSERT_EQUAL(strncmp(made[i], "_INBOX.a.", 9), 0);
        CU_ASSERT_EQUAL(strlen(made[i] + 9), INBOX_CONNECTION_BYTES);
        CU_ASSERT_TRUE(subject_is_reply(thole_slice_from(made[i])));
        CU_ASSERT_PTR_NULL(strchr(made[i] + 9, '.'));
        for (const char *at = made[i] + 9; *at != '\0'; at++)
            seen[(unsigned char)*at] = true;
        for (size_t k = 0; k < i; k++)
            CU_ASSERT_NOT_EQUAL(strcmp(made[i], made[k]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(seen); i++)
        letters += seen[i];
    CU_ASSERT_EQUAL(letters, 64);
}

static const struct thole_test tests[] = {
    {"prefixes", test_prefixes},
    {"each owner's own", test_owners},
    {"length", test_length},
    {"a name for each connection", test_connections},
};

THOLE_TEST_MAIN("inbox_prefix", tests)
