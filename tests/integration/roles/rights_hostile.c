/* Each name of JetStream's API that a role may use, with bodies that would own the account: nothing is made
 * or changed, as only engines make streams, and all of them before anybody else comes. */
#include "connection.h"
#include "jscan.h"
#include "rights_stage.h"
#include <stdio.h>
#include <string.h>

enum { ANSWER_BYTES = 256 * 1024, CONFIGS_BYTES = 512 * 1024, REQUESTS_LEAST = 500 };

#define API "$JS.API."

/* Parts that follow the name of the stream in the subject. */
static const char *const bodies[] = {
    "\",\"subjects\":[\"evil.1\"],\"sources\":[{\"name\":\"KV_THOLE_default_SECRET\"}]}",
    "\",\"subjects\":[\"evil.2\"],\"republish\":{\"src\":\">\",\"dest\":\"evil.3\"}}",
    "\",\"mirror\":{\"name\":\"KV_THOLE_default_SECRET\"}}",
    "\",\"subjects\":[\"thole.other.>\"]}",
    "\",\"subjects\":[\"evil.4\"],\"subject_transform\":{\"src\":\">\",\"dest\":\"evil.5.>\"}}",
    "_MINE\",\"subjects\":[\"evil.6\"]}",
};

static void ask(struct connection *connection, const char *subject, const char *body, struct buf *answer)
{
    thole_error *const err = &rights_stack.err;
    CHECK_OK(connection_request(connection, subject, thole_slice_from(body), answer, err), err);
}

/* The streams of the account with their configurations. */
static void add_config(void *arg, thole_slice name, thole_slice info)
{
    struct buf *const to = arg;
    thole_slice config;
    CU_ASSERT_TRUE(json_find(info, "config", &config));
    buf_printf(to, "\n%.*s %.*s", THOLE_FMT(name), THOLE_FMT(config));
    CU_ASSERT_EQUAL_FATAL(buf_status(to), THOLE_OK);
}

static size_t try_subject(struct connection *connection, const char *subject)
{
    const char *const stream = strrchr(subject, '.') + 1;
    struct buf answer;
    size_t tried = 0;
    if (strstr(subject, ".PURGE.") != NULL) /* of what was restored: an archivist may */
        return 0;
    buf_init(&answer, ANSWER_BYTES);
    for (; tried < ARRAY_LEN(bodies); tried++) {
        char body[400];
        (void)snprintf(body, sizeof body, "{\"name\":\"%s%s", stream, bodies[tried]);
        ask(connection, subject, body, &answer);
    }
    buf_release(&answer);
    return tried;
}

/* Under the name of either account. */
static bool is_api(const char *subject)
{
    return strncmp(subject, API, strlen(API)) == 0 || strncmp(subject, "JS.thole.API.", 13) == 0;
}

struct trying {
    struct connection *connection;
    size_t tried;
};

static void try_if_api(void *arg, char *subject)
{
    struct trying *const trying = arg;
    if (is_api(subject) && strstr(subject, ".MSG.NEXT.") == NULL) /* answered only when there is a message */
        trying->tried += try_subject(trying->connection, subject);
}

static size_t try_all_of(enum right_user user)
{
    struct trying trying = {.connection = rights_connect(user, "hostile")};
    rights_each_publish(user, try_if_api, &trying);
    connection_close(trying.connection);
    return trying.tried;
}

void rights_hostile(void)
{
    struct connection *const hand = stack_connect(&rights_stack);
    struct buf before, after;
    size_t tried = 0;
    struct stack_program *const engine = rights_program("program_verbs", USER_ENGINE, "e-0", "--node-ttl=2s");
    thole_client_close(stack_client(&rights_stack)); /* the namespace is set up */
    buf_init(&before, CONFIGS_BYTES);
    buf_init(&after, CONFIGS_BYTES);
    rights_each_stream(hand, add_config, &before);
    for (int user = 0; user < USERS; user++)
        if (user != USER_ENGINE)
            tried += try_all_of((enum right_user)user);
    rights_each_stream(hand, add_config, &after);
    CHECK_STR("the streams", buf_cstr(&after), buf_cstr(&before));
    CU_ASSERT(tried >= REQUESTS_LEAST);
    CU_ASSERT_EQUAL(rights_violations(), 0);
    printf("%zu hostile requests\n", tried);
    CU_ASSERT_EQUAL(stack_terminate(engine, 20000), 0);
    buf_release(&before);
    buf_release(&after);
    connection_close(hand);
}
