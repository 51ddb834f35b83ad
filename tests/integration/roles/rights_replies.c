/* A user's publishes with a reply subject where only engines write: the server, or a service that answers,
 * would publish there for the user. Between two accounts the answer stays in the account that asked. */
#include "connection.h"
#include "jscan.h"
#include "rights_stage.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { REPLIES_LEAST = 300 };

static const char *const replies[] = {"thole.default.hist.0.victim.1",
                                      "thole.default.in.0.control.terminate.victim",
                                      "thole.default.in.0.event.go.victim",
                                      "thole.default.ctl.0.epoch",
                                      "thole.default.work.default.victim.1.2.1",
                                      "thole.default.audit.0.victim",
                                      "thole.default.rejected.0",
                                      "$KV.THOLE_default_SECRET.nonces",
                                      "$KV.THOLE_default_CONFIG.partitions",
                                      "$KV.THOLE_default_NODES.victim"};

struct stored { /* ever, in inboxes and in other streams */
    uint64_t inboxes, others;
};

static void add_stored(void *arg, thole_slice name, thole_slice info)
{
    struct stored *const stored = arg;
    thole_slice last;
    char text[128];
    uint64_t n = 0;
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(name));
    CU_ASSERT_TRUE(json_path(info, "state.last_seq", &last) && json_uint(last, &n));
    *(strstr(text, "_IN_") != NULL ? &stored->inboxes : &stored->others) += n;
}

static struct stored count_stored(struct connection *hand)
{
    struct stored stored = {.others = 0};
    rights_each_stream(hand, add_stored, &stored);
    return stored;
}

/* Whether it stands in what an inbox stores, so that the message itself may be stored. */
static bool is_of_inbox(const char *subject)
{
    return strncmp(subject, "thole.default.in.", 17) == 0;
}

/* May be stored by itself, where the user is allowed to: it has nothing to do with replies. */
static bool is_left_out(const char *subject)
{
    return strncmp(subject, "$KV.", 4) == 0 || strstr(subject, ".PURGE.") != NULL ||
           strstr(subject, "CONSUMER.CREATE") != NULL || strstr(subject, "CONSUMER.DELETE") != NULL ||
           strncmp(subject, "_INBOX", 6) == 0;
}

struct trying {
    struct connection *connection;
    size_t tried, inboxes; /* inboxes: so many of them an inbox stores by themselves */
};

static void try_subject(void *arg, char *subject)
{
    struct trying *const trying = arg;
    thole_error *const err = &rights_stack.err;
    if (is_left_out(subject))
        return;
    for (size_t i = 0; i < ARRAY_LEN(replies); i++)
        CHECK_OK(connection_publish_asking(trying->connection, subject, replies[i], NULL, 0,
                                           THOLE_STR("{\"seq\":1}"), err),
                 err);
    CHECK_OK(connection_flush(trying->connection, err), err);
    trying->tried += ARRAY_LEN(replies);
    trying->inboxes += is_of_inbox(subject) ? ARRAY_LEN(replies) : 0;
}

void rights_replies(bool apart)
{
    static const enum right_user users[] = {USER_CLIENT,  USER_SERVICE,       USER_WORKER,       USER_CONSOLE,
                                            USER_GATEWAY, USER_REMOTE_WORKER, USER_REMOTE_CLIENT};
    struct connection *const hand = stack_connect(&rights_stack);
    struct stored const before = count_stored(hand);
    struct trying trying = {.tried = 0};
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        trying.connection = rights_connect(users[i], "replies");
        rights_each_publish(users[i], try_subject, &trying);
        connection_close(trying.connection);
    }
    pause_ms(1000);
    struct stored const then = count_stored(hand);
    uint64_t const inboxes = then.inboxes - before.inboxes - trying.inboxes,
                   others = then.others - before.others;
    printf("%zu requests with replies to engines' subjects: %" PRIu64 " answers stored in inboxes, %" PRIu64
           " elsewhere\n",
           trying.tried, inboxes, others);
    CU_ASSERT(trying.tried >= REPLIES_LEAST);
    if (apart) {
        CU_ASSERT_EQUAL(inboxes, 0);
        CU_ASSERT_EQUAL(others, 0);
    } else {
        CU_ASSERT(inboxes > 0 && others > 0);
    }
    connection_close(hand);
}
