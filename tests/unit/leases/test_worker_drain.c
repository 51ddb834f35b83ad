/* A stopping worker's treatment of messages that it has been given and has not taken yet. */
#include "thole_cunit.h"
#include "worker_parts.h"
#include <stdlib.h>

static unsigned handed_back, freed;

thole_status __wrap_work_message_signal(struct connection *connection, const struct work_message *message,
                                        enum work_signal signal, thole_error *reterr)
{
    (void)connection, (void)message, (void)reterr;
    CU_ASSERT_EQUAL(signal, WORK_NAK);
    handed_back++;
    return THOLE_OK;
}

void __real_activity_destroy(struct thole_activity *act);
void __wrap_activity_destroy(struct thole_activity *act)
{
    freed++;
    __real_activity_destroy(act);
}

/* Another worker has it at once, and not when its lease is over. */
static void test_what_was_not_taken_is_handed_back(void)
{
    static struct worker_host host;
    mailbox_init(&host.inbox);
    host.state.kind = WORKER_MAIL_STATE;
    mailbox_push(&host.inbox, &host.state.mail);
    for (size_t i = 0; i < 4; i++) {
        struct work_message *const message = calloc(1, sizeof *message);
        message->item = (struct work_item){
            .instance = THOLE_STR("order"), .execution = 1, .activity_id = 3 + i, .try_number = 1};
        struct thole_activity *const act = activity_create(message, 0);
        CU_ASSERT_PTR_NOT_NULL_FATAL(act);
        mailbox_push(&host.inbox, i == 3 ? &act->finished.mail : &act->delivered.mail);
    }
    worker_loop_drain(&host);
    CU_ASSERT_EQUAL(handed_back, 3);
    CU_ASSERT_EQUAL(freed, 4);
    CU_ASSERT_PTR_NULL(mailbox_take_all(&host.inbox));
    mailbox_release(&host.inbox);
}

static const struct thole_test tests[] = {
    {"what was not taken is handed back", test_what_was_not_taken_is_handed_back},
};
THOLE_TEST_MAIN("worker_drain", tests)
