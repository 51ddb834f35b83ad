/*
 * Functions of a shard's parts for its loop (shard.c), for outputs (shard_out.c) and for the table of
 * requests (request_table.c). Each part is one file, which creates its requests, carries them out and takes
 * their answers; on the shard's thread unless stated otherwise. Error texts of executors go to
 * request_error().
 */
#ifndef THOLE_SHARD_PARTS_H
#define THOLE_SHARD_PARTS_H
#include "shard_request.h"

/* ---- log_requests.c: the partition's log ---- */
void log_append(struct shard *shard, struct owned *owned, const struct partition_out *out);
void log_read_tail(struct shard *shard, struct owned *owned, const struct partition_out *out);
void log_read(struct shard *shard, struct owned *owned, const struct partition_out *out);
void log_delete(struct shard *shard, struct owned *owned, const struct partition_out *out);
request_send_fn append_send;
request_answer_fn append_answered;
request_load_fn tail_load, log_load, deletion_load;

/* ---- log_fit.c: is the log the one that was there? ---- */
/* Compares the log with what is known of it; a loader's thread. THOLE_CONFLICT: it must not be opened. */
THOLE_NODISCARD thole_status log_fit_check(struct engine_host *engine, struct request *request);
/* The partition is open; rows were written: what its log has is kept from some time on. */
void log_keep_begin(struct owned *owned);
void log_keep_soon(struct owned *owned);
void log_keep_run(struct shard *shard, struct owned *owned, uint64_t now_ms);
request_store_fn log_know, log_keep;
request_answer_fn log_known, tail_answered;

/* ---- history_walk.c, history_requests.c (removals: with remover.c): an instance's history ---- */
void history_load(struct shard *shard, struct owned *owned, const struct partition_out *out);
void ids_read(struct shard *shard, struct owned *owned, const struct partition_out *out);
void history_remove(struct shard *shard, struct owned *owned, const struct partition_out *out);
/* dispensable_requests.c */
void dispensable_find(struct shard *shard, struct owned *owned, const struct partition_out *out);
void dispensable_remove(struct shard *shard, struct owned *owned, const struct partition_out *out);
/* Adds to a tail that was read what was removed of the log. */
thole_status tail_dispensable(struct engine_host *engine, struct request *request);
request_answer_fn dispensable_answered, records_removed;
request_load_fn dispensable_load, removal_load;
/* history_walk.c, history_requests.c */
request_send_fn look_up_send, walk_send;
request_answer_fn look_up_answered, walk_answered, ids_answered, removal_answered;
request_load_fn history_load_records, ids_load;

/* ---- work_requests.c: messages for the workers ---- */
/* Kept by the request. */
thole_slice work_nonce(struct request *request, thole_slice instance, uint64_t execution,
                       uint64_t activity_id);
void work_queue(struct shard *shard, struct owned *owned, const struct partition_out *out);
void work_withdraw(struct shard *shard, struct owned *owned, const struct partition_out *out);
request_send_fn work_send, withdrawal_send;
request_answer_fn work_answered;
request_refused_fn work_refused;
/* The result of a look-up of a work message, from the reply. */
enum work_seen {
    WORK_UNKNOWN, /* the reply is not conclusive */
    WORK_MISSING, /* not queued */
    WORK_THERE,
    WORK_FORGED, /* another message is on its subject: that is logged, and it is withdrawn */
};
/* Compares with @p digest; empty: not known, and any message will do. */
enum work_seen work_look_reply(struct owned *owned, const struct request *request, thole_slice digest,
                               uint64_t *ret_sequence);

/* ---- message_requests.c: messages to other instances, and notices ---- */
void message_send_to(struct shard *shard, struct owned *owned, const struct partition_out *out);
void notice_cancel(struct shard *shard, const struct cancel_notice *notice);
void notice_event(struct shard *shard, const struct event_notice *notice);
request_send_fn message_send;
request_refused_fn message_refused;

/* ---- emit_requests.c: CloudEvents ---- */
void event_emit(struct shard *shard, struct owned *owned, const struct partition_out *out);
request_send_fn emission_send;
request_answer_fn emission_answered;

/* ---- reject_requests.c: rejected messages ---- */
void shard_reject(struct shard *shard, struct owned *owned, const struct partition_out *out);
request_send_fn rejection_send;
request_answer_fn rejection_answered;

/* ---- inbox_reader.c: the inbox ---- */
void inbox_read(struct shard *shard, struct owned *owned, const struct partition_out *out);
void inbox_purge(struct shard *shard, struct owned *owned, const struct partition_out *out);
void inbox_read_results(struct shard *shard, struct owned *owned, const struct partition_out *out);
void inbox_close(struct shard *shard, struct owned *owned);
void inbox_reader_close(struct inbox_reader *reader); /* blocking; NULL-safe */
/* Keeps the reader's mail, INBOX, until the machine has room. */
void inbox_take(struct shard *shard, struct shard_mail *mail);
/* Whether a message waits, and there is room for it. */
bool inbox_may_give(const struct owned *owned);
/* Gives the machine as many as it has room for. */
void inbox_give(struct shard *shard, struct owned *owned);
void inbox_drop(struct shard *shard, struct owned *owned); /* all that waits */
/* A mail of the reader, INBOX_LOST. */
void inbox_lost(struct shard *shard, const struct shard_mail *mail);
/* Sets the number of messages that the machines hold, and their memory: the readers wait when it is too much.
 */
void inbox_held(struct shard *shard, size_t messages, size_t bytes);
/* Starts a check if it is due, returns when to call again; the partition steps down if its reader keeps
 * lagging. */
void inbox_watch(struct shard *shard, struct owned *owned, uint64_t now_ms);
uint64_t inbox_watch_ms(const struct owned *owned);
request_load_fn inbox_open_load, inbox_close_load, inbox_look_load, inbox_purge_load, results_load;
request_answer_fn inbox_opened, inbox_looked, inbox_purged;

/* ---- sweeper.c: activities that no worker reports on are queued again, or ended when their time is over
 * ---- */
void sweeper_opened(struct owned *owned);
void sweeper_anew(struct owned *owned); /* the stream WORK was made again */
void sweeper_run(struct shard *shard, struct owned *owned, uint64_t now_ms);
uint64_t sweeper_deadline_ms(const struct owned *owned);
/* The next deadline of a row may pass in @p deadline_in_ms; UINT64_MAX: none. */
void sweeper_expect(struct owned *owned, uint64_t deadline_in_ms);
request_send_fn find_work_send, requeue_send;
request_load_fn find_input_load;
request_store_fn orphans_store;
request_answer_fn orphans_answered, find_work_answered, find_input_answered, requeue_answered,
    expiry_answered;

/* Queues an activity that was taken off the shelf again, unless its message exists. */
void sweeper_requeue(struct shard *shard, struct owned *owned, const struct batch_activity *row);

/* ---- shelf.c: activities that no worker of their queue knows ---- */
void shelf_run(struct shard *shard, struct owned *owned, uint64_t now_ms);
uint64_t shelf_deadline_ms(const struct shard *shard, const struct owned *owned);
request_store_fn shelf_find, shelf_take;
request_joins_fn shelf_find_joins;
request_store_all_fn shelf_find_all;
request_answer_fn shelf_found, shelf_taken;

/* ---- shard_code.c: an instance has crashed, or has ended; an orchestration wrote a line ---- */
void crashes_list(struct shard *shard, struct owned *owned, const struct partition_out *out);
void crash_put(struct shard *shard, struct owned *owned, const struct partition_out *out);
void crashes_forget(struct shard *shard, struct owned *owned, const struct partition_out *out);
void code_log(uint32_t p, const struct out_line *out);
/* An instance has stopped: a warning, of which each reason has few in a time and a count of the others. */
void stop_log(struct shard *shard, uint32_t p, const struct out_stopped *out);
/* An instance meets a limit: counted, kept for those who ask how the partition is, a warning now and then. */
void limit_log(struct shard *shard, uint32_t p, const struct out_limited *out);
/* As code_watch.site; arg: the shard. */
void code_site(void *arg, const void *address, char to[CODE_SITE_BYTES]);
request_load_fn crashes_load, crash_put_load, crash_forget_load;

/* ---- store_requests.c: rows ---- */
/* STORE_OPEN, STORE_RESET, STORE_LIVE, STORE_TIMERS, STORE_APPLY. */
void store_ask(struct shard *shard, struct owned *owned, const struct partition_out *out,
               enum request_kind kind);
request_store_fn store_open, store_reset, store_live, store_timers, store_apply;
request_joins_fn store_apply_joins;
request_store_all_fn store_apply_all;
request_answer_fn store_opened;   /* of OPEN and RESET */
request_answer_fn store_answered; /* of LIVE */
request_answer_fn store_applied;

/* ---- rows_watch.c: whether the rows are still those that the partition's batches have made ---- */
void rows_watch(struct shard *shard, struct owned *owned, uint64_t now_ms);
uint64_t rows_watch_ms(const struct owned *owned);
request_store_fn rows_look;
request_joins_fn rows_look_joins;
request_store_all_fn rows_look_all;
request_answer_fn rows_looked;

/* ---- shard_query.c: the partition has opened, has closed; a question has come, an answer has come ---- */
void queries_open(struct shard *shard, struct owned *owned);
void queries_retry(struct shard *shard, struct owned *owned, uint64_t now_ms); /* retries failed ones */
void queries_close(struct shard *shard, struct owned *owned);
void query_take(struct shard *shard, const struct shard_mail *mail);
void query_answer(struct shard *shard, struct owned *owned, const struct partition_out *out);

/* ---- shard_counts.c: metrics ---- */
void shard_count_start(struct shard *shard); /* before its thread */
void shard_count_link(struct shard *shard, bool was_up, bool up);
void shard_count_store(struct shard *shard, bool up);
void shard_count_refused(struct shard *shard, uint64_t rows); /* number of rows set aside */
void shard_count_message(struct shard *shard, uint64_t stored_ns);
void shard_count_push(struct shard *shard, const struct cancel_notice *notice);
void shard_count_opened(struct shard *shard, struct owned *owned);
void shard_count_closed(struct shard *shard, struct owned *owned, bool reopen);
/* The gauges of all partitions, now and then; returns when to call again, UINT64_MAX: when something has
 * happened. */
uint64_t shard_count_partitions(struct shard *shard, uint64_t now_ms);

/* ---- shard_out.c ---- */
/* Carries out an output of the partition's machine, or submits a request for it. */
void shard_do(struct shard *shard, struct owned *owned, const struct partition_out *out);
#endif
