/*
 * For each kind of request: who carries it out, what a failure means, who takes its answer.
 */
#include "deadlines.h"
#include "shard_parts.h"

#define SENT(which, how) .executor = EXECUTOR_WINDOW, .window = WINDOW_##which, .send = (how)
#define LOADED(how) .executor = EXECUTOR_LOADER, .load = (how)
#define CLEANED(how) .executor = EXECUTOR_CLEANER, .load = (how)
#define STORED(how) .executor = EXECUTOR_STORE, .store = (how)
#define FAILS(means, text) .failure = FAILURE_##means, .failed = (text)
#define ANSWER(function) .answer = (function)

const struct request_rule request_rules[REQ_KINDS] = {
    /* The partition's log. */
    [REQ_APPEND] = {SENT(APPENDS, append_send), FAILS(ANSWER, "an append was not stored"),
                    ANSWER(append_answered)},
    [REQ_KNOW_LOG] = {STORED(log_know), FAILS(STEP_DOWN, "what is known of the log could not be read"),
                      ANSWER(log_known)},
    [REQ_READ_TAIL] = {LOADED(tail_load), FAILS(STEP_DOWN, "the log's tail could not be read"),
                       ANSWER(tail_answered)},
    [REQ_KEEP_LOG] = {STORED(log_keep), FAILS(DROP, "what the log keeps was not noted")},
    [REQ_READ_LOG] = {LOADED(log_load), FAILS(STEP_DOWN, "the log could not be read"), ANSWER(request_input)},
    [REQ_DELETE_RECORDS] = {LOADED(deletion_load), FAILS(STEP_DOWN, "void records could not be removed"),
                            ANSWER(request_input)},

    /* An instance's history. A removal is retried without limit. */
    [REQ_LOOK_UP] = {SENT(READS, look_up_send), FAILS(STEP_DOWN, "a history could not be looked up"),
                     ANSWER(look_up_answered)},
    [REQ_WALK] = {SENT(READS, walk_send), FAILS(ANSWER, "a record could not be read"), ANSWER(walk_answered)},
    [REQ_LOAD] = {LOADED(history_load_records), FAILS(STEP_DOWN, "a history could not be read"),
                  ANSWER(request_input)},
    [REQ_READ_IDS] = {LOADED(ids_load), FAILS(ANSWER, "the instances of the log could not be listed"),
                      ANSWER(ids_answered)},
    [REQ_REMOVE_HISTORY] = {.executor = EXECUTOR_REMOVER,
                            FAILS(ANSWER, "a history could not be removed"),
                            ANSWER(removal_answered)},
    /* Records that are dispensable. A look takes up to a second: no load waits for one. */
    [REQ_FIND_DISPENSABLE] = {CLEANED(dispensable_load),
                              FAILS(ANSWER, "dispensable records were not looked for"),
                              ANSWER(dispensable_answered)},
    [REQ_REMOVE_RECORDS] = {CLEANED(removal_load), FAILS(ANSWER, "dispensable records could not be removed"),
                            ANSWER(records_removed)},

    /* Work. A second message of one activity is harmless but costs work: if it may exist it is looked up
     * first. */
    [REQ_PUBLISH_WORK] = {SENT(MESSAGES, work_send),
                          FAILS(AGAIN_WHEN_SURE, "a work message could not be published"),
                          ANSWER(work_answered), .refused = work_refused},
    [REQ_WITHDRAW_WORK] = {SENT(MESSAGES, withdrawal_send), FAILS(DROP, "a work message was not withdrawn")},

    /* The sweeper: the next sweep finds dropped ones again. */
    [REQ_FIND_ORPHANS] = {STORED(orphans_store), FAILS(ANSWER, "lost activities were not looked for"),
                          ANSWER(orphans_answered)},
    [REQ_FIND_WORK] = {SENT(MESSAGES, find_work_send), FAILS(DROP, "a work message was not looked for"),
                       ANSWER(find_work_answered)},
    [REQ_FIND_INPUT] = {LOADED(find_input_load), FAILS(DROP, "the input of an activity was not found"),
                        ANSWER(find_input_answered)},
    [REQ_REQUEUE] = {SENT(MESSAGES, requeue_send), FAILS(DROP, "a lost activity was not queued again"),
                     ANSWER(requeue_answered)},
    [REQ_EXPIRE] = {STORED(deadlines_store), FAILS(ANSWER, "late tries were not looked for"),
                    ANSWER(expiry_answered)},

    [REQ_FIND_SHELVED] = {STORED(shelf_find), .joins = shelf_find_joins, .store_all = shelf_find_all,
                          FAILS(ANSWER, "activities that no worker knows were not looked for"),
                          ANSWER(shelf_found)},
    [REQ_UNSHELVE] = {STORED(shelf_take), FAILS(ANSWER, "activities were not taken off the shelf"),
                      ANSWER(shelf_taken)},

    /* The inbox. */
    [REQ_OPEN_INBOX] = {LOADED(inbox_open_load), FAILS(STEP_DOWN, "the inbox could not be opened"),
                        ANSWER(inbox_opened)},
    [REQ_CLOSE_INBOX] = {LOADED(inbox_close_load), FAILS(DROP, "the inbox could not be closed")},
    [REQ_LOOK_INBOX] = {LOADED(inbox_look_load), FAILS(ANSWER, "the inbox was not looked at"),
                        ANSWER(inbox_looked)},
    [REQ_PURGE_INBOX] = {LOADED(inbox_purge_load), FAILS(DROP, "the inbox was not purged"),
                         ANSWER(inbox_purged)},
    [REQ_READ_RESULTS] = {LOADED(results_load),
                          FAILS(STEP_DOWN, "the results in the inbox could not be read"),
                          ANSWER(request_input)},

    /* Messages to other instances; CloudEvents; rejected messages. */
    [REQ_SEND_MESSAGE] = {SENT(MESSAGES, message_send), FAILS(AGAIN, "a message was not stored"),
                          ANSWER(request_input), .refused = message_refused},
    [REQ_EMIT] = {SENT(EVENTS, emission_send), FAILS(ANSWER, "a CloudEvent was not stored"),
                  ANSWER(emission_answered)},
    [REQ_REJECT] = {SENT(REJECTS, rejection_send), FAILS(ANSWER, "a rejected message was not kept"),
                    ANSWER(rejection_answered)},

    /* Crashes of code. */
    [REQ_READ_CRASHES] = {LOADED(crashes_load), FAILS(STEP_DOWN, "the crashes could not be read"),
                          ANSWER(request_input)},
    [REQ_PUT_CRASH] = {LOADED(crash_put_load), FAILS(DROP, "a crash was not kept")},
    [REQ_FORGET_CRASHES] = {LOADED(crash_forget_load), FAILS(DROP, "crashes were not forgotten")},

    /* Rows. */
    [REQ_STORE_OPEN] = {STORED(store_open), FAILS(STEP_DOWN, "the partition's rows could not be opened"),
                        ANSWER(store_opened)},
    [REQ_STORE_RESET] = {STORED(store_reset), FAILS(STEP_DOWN, "the partition's rows could not be removed"),
                         ANSWER(store_opened)},
    [REQ_STORE_LIVE] = {STORED(store_live), FAILS(STEP_DOWN, "the live instances could not be read"),
                        ANSWER(store_answered)},
    [REQ_STORE_TIMERS] = {STORED(store_timers), FAILS(STEP_DOWN, "the timers could not be read"),
                          ANSWER(request_input)},
    [REQ_STORE_APPLY] = {STORED(store_apply), .joins = store_apply_joins, .store_all = store_apply_all,
                         FAILS(STEP_DOWN, "a batch could not be applied"), ANSWER(store_applied)},
    [REQ_STORE_LOOK] = {STORED(rows_look), .joins = rows_look_joins, .store_all = rows_look_all,
                        FAILS(ANSWER, "the partition's rows were not looked at"), ANSWER(rows_looked)},
};
