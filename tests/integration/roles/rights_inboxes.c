/* Nobody hears what others are answered: each user's inboxes are its own, and a worker's those of its queue.
 */
#include "connection.h"
#include "rights_stage.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { INBOXES_MAX = 4, INBOX_BYTES = 320 };

struct inboxes {
    char patterns[INBOXES_MAX][INBOX_BYTES];
    size_t len;
};

/* The inboxes below _INBOX that the user's file permits. */
static void read_inboxes(enum right_user user, struct inboxes *ret)
{
    char path[RIGHTS_PATH_BYTES], line[1024];
    bool subscribes = false;
    rights_permissions_path(user, path);
    FILE *const file = fopen(path, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    ret->len = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *const from = strstr(line, "\"_INBOX");
        subscribes = subscribes || strstr(line, "subscribe:") != NULL;
        if (!subscribes || from == NULL)
            continue;
        CU_ASSERT_FATAL(ret->len < INBOXES_MAX);
        (void)snprintf(ret->patterns[ret->len++], INBOX_BYTES, "%.*s", (int)strcspn(from + 1, "\""),
                       from + 1);
    }
    (void)fclose(file);
    CU_ASSERT(ret->len > 0);
}

/* Whether a subject may match both: each ends with >, and has no other wildcard. */
static bool overlap(const char *a, const char *b)
{
    size_t const shorter = strlen(a) < strlen(b) ? strlen(a) : strlen(b);
    CU_ASSERT_PTR_EQUAL(strpbrk(a, "*>"), a + strlen(a) - 1);
    return strncmp(a, b, shorter - 1) == 0;
}

void rights_inboxes_apart(void)
{
    static struct inboxes all[USERS];
    for (int user = 0; user < USERS; user++)
        read_inboxes((enum right_user)user, &all[user]);
    for (int a = 0; a < USERS; a++)
        for (int b = 0; b < a; b++)
            for (size_t i = 0; i < all[a].len * all[b].len; i++) {
                const char *const one = all[a].patterns[i / all[b].len], *const other =
                                                                             all[b].patterns[i % all[b].len];
                if (overlap(one, other))
                    fprintf(stderr, "%s and %s both hear %s\n", rights_user_names[a], rights_user_names[b],
                            one);
                CU_ASSERT_FALSE(overlap(one, other));
            }
}

/* ---- the worker of another queue listens ---- */

static struct {
    struct connection *connection;
    struct subscription *subscriptions[INBOXES_MAX];
    atomic_uint heard;
} ear;

static void on_heard(void *arg, const struct delivery *delivery)
{
    (void)arg;
    if (atomic_fetch_add(&ear.heard, 1) < 5)
        fprintf(stderr, "the worker of queue gpu hears %.*s\n", THOLE_FMT(delivery->subject));
}

void rights_listen_begin(void)
{
    struct inboxes own;
    char url[RIGHTS_URL_BYTES], inbox[INBOX_BYTES];
    thole_error *const err = &rights_stack.err;
    rights_nats_url(USER_WORKER_GPU, url);
    read_inboxes(USER_WORKER_GPU, &own);
    (void)snprintf(inbox, sizeof inbox, "%.*s", (int)strlen(own.patterns[0]) - 2, own.patterns[0]);
    struct connection_options const options = {
        .url = url, .inbox = inbox, .name = "ear", .connect_timeout_ms = 5000, .request_timeout_ms = 5000};
    CU_ASSERT_EQUAL_FATAL(connection_open(&options, &ear.connection, err), THOLE_OK);
    for (size_t i = 0; i < own.len; i++)
        CHECK_OK(
            connection_subscribe(ear.connection, own.patterns[i], on_heard, NULL, &ear.subscriptions[i], err),
            err);
    CHECK_OK(connection_flush(ear.connection, err), err);
    CU_ASSERT_EQUAL(rights_violations(), 0);
}

void rights_listen_end(void)
{
    for (size_t i = 0; i < INBOXES_MAX; i++)
        subscription_close(ear.subscriptions[i]);
    connection_close(ear.connection);
    CU_ASSERT_EQUAL(atomic_load(&ear.heard), 0);
}

/* ---- a user that does not hear its own answers ---- */

void rights_deaf(void)
{
    char url[RIGHTS_URL_BYTES];
    int code;
    rights_nats_url(USER_AUDITOR, url);
    const char *const said = rights_shell(
        &code, "THOLE_NATS_URL='%s' THOLE_NATS_INBOX= %s nodes --timeout 5s 2>&1", url, THOLE_COMMAND);
    CU_ASSERT_EQUAL(code, 7);
    CHECK_STR("what, and what to try",
              strstr(said, "the NATS user may not subscribe to _INBOX_default_client.>, where the answers to "
                           "this program arrive") != NULL &&
                      strstr(said, "--nats-inbox") != NULL
                  ? ""
                  : said,
              "");
    CU_ASSERT_EQUAL(rights_violations(), 1);
}
