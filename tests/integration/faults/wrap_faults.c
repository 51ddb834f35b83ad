/* Between test_faults and what speaks to the servers: see wrap_faults.h. */
#include "wrap_faults.h"
#include "logged.h"
#include "message.h"
#include "nodes.h"
#include "notice.h"
#include "projector_store.h"
#include "reader.h"
#include "requests.h"
#include "subject.h"
#include "subject_list.h"
#include "topology.h"
#include "worker_store.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the fault ---- */

const char *const fault_names[FAULTS] = {"error", "time-out", "lost", "unfit"};

static struct {
    pthread_mutex_t lock;
    const char *site; /* NULL: none */
    enum fault fault;
    unsigned left, hits, passes; /* passes: calls that went well after the fault */
    char log[1 << 18];
    size_t log_len;
} now = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local bool exempt;

void fault_exempt_me(void)
{
    exempt = true;
}

void fault_arm(const char *site, enum fault fault)
{
    pthread_mutex_lock(&now.lock);
    now.site = site;
    now.fault = fault;
    now.left = site == NULL ? 0 : 1;
    now.hits = now.passes = 0;
    now.log_len = 0;
    now.log[0] = '\0';
    pthread_mutex_unlock(&now.lock);
}

/* True: this call of the site is the one. */
static bool struck(const char *site, enum fault *ret)
{
    pthread_mutex_lock(&now.lock);
    bool const is = !exempt && now.site != NULL && strcmp(now.site, site) == 0;
    bool const hit = is && now.left > 0;
    if (hit) {
        now.left--;
        now.hits++;
        *ret = now.fault;
    } else if (is) {
        now.passes++;
    }
    pthread_mutex_unlock(&now.lock);
    return hit;
}

static bool is_above_zero(const unsigned *counter)
{
    pthread_mutex_lock(&now.lock);
    bool const above = *counter > 0;
    pthread_mutex_unlock(&now.lock);
    return above;
}

bool fault_was_hit(void)
{
    return is_above_zero(&now.hits);
}

bool fault_passed_again(void)
{
    return is_above_zero(&now.passes);
}

static thole_status say(enum fault fault, const char *site, thole_error *reterr)
{
    static const thole_status statuses[] = {THOLE_DENIED, THOLE_UNAVAILABLE, THOLE_UNAVAILABLE,
                                            THOLE_CORRUPT};
    return thole_fail(reterr, statuses[fault], "fault: %s, %s", site, fault_names[fault]);
}

/* A blocking call: with a time-out it was done, and nobody knows. */
#define FAULTY(site, call)                                                                                   \
    enum fault fault_;                                                                                       \
    if (!struck(site, &fault_))                                                                              \
        return call;                                                                                         \
    if (fault_ == FAULT_TIMEOUT && call != THOLE_OK)                                                         \
        return say(FAULT_LOST, site, reterr);                                                                \
    return say(fault_, site, reterr)

/* ---- streams ---- */

/* clang-format off */
thole_status __real_topology_look_log(struct connection *, const char *, uint32_t, const struct log_known *, struct log_there *, thole_error *);
thole_status __real_stream_bounds(struct connection *, const char *, struct stream_bounds *, thole_error *);
thole_status __real_stream_subjects(struct connection *, const char *, uint64_t, size_t, stream_subject_fn *, void *, thole_error *);
thole_status __real_stream_last_by_subject(struct connection *, const char *, const char *, uint64_t *, struct buf *, thole_error *);
thole_status __real_stream_read(struct connection *, const char *, const char *, uint64_t, uint64_t, stream_read_fn *, void *, thole_error *);
thole_status __real_stream_next(struct connection *, const char *, uint64_t, uint64_t *, thole_error *);
thole_status __real_stream_delete_all(struct connection *, const char *, const uint64_t *, size_t, thole_error *);
thole_status __real_stream_purge_below(struct connection *, const char *, uint64_t, thole_error *);
thole_status __real_stream_still_holds(struct connection *, const char *, uint64_t, uint64_t, bool *, uint64_t *, thole_error *);
thole_status __real_ordered_reader_open(struct connection *, const struct ordered_reader_options *, struct ordered_reader **, thole_error *);
thole_status __real_connection_subscribe(struct connection *, const char *, delivery_fn *, void *, struct subscription **, thole_error *);
thole_status __real_topology_ensure_queue(struct connection *, const char *, thole_slice, uint64_t, uint64_t *, bool *, thole_error *);
thole_status __real_nodes_put(struct connection *, const char *, thole_slice, thole_slice, thole_error *);
thole_status __real_cancel_notice_publish(struct connection *, const char *, const struct nonce_key *,
                                          const struct cancel_notice *, thole_error *);
thole_status __real_event_notice_publish(struct connection *, const char *, const struct event_notice *, thole_error *);
thole_status __real_requests_open(struct connection *, size_t, uint64_t, request_done_fn *, void *, struct requests **, thole_error *);
thole_status __real_requests_publish(struct requests *, const struct publish *, uint64_t, thole_error *);
thole_status __real_requests_send(struct requests *, const char *, thole_slice, uint64_t, thole_error *);
thole_status __real_requests_get(struct requests *, const char *, thole_slice, uint64_t, thole_error *);
thole_status __real_projector_store_open(struct postgres *, uint32_t, uint64_t, struct rows_state *, uint64_t *, thole_error *);
thole_status __real_projector_store_apply(struct postgres *, struct batch *const *, size_t, thole_error *);
thole_status __real_projector_store_reset(struct postgres *, uint32_t, uint64_t, struct rows_state *, thole_error *);
thole_status __real_projector_store_sign(struct postgres *, uint32_t, uint64_t, uint64_t, uint64_t *, thole_error *);
thole_status __real_projector_store_timers(struct postgres *, uint32_t, uint64_t, size_t, struct arena *, struct batch_timer **, size_t *, uint64_t *, thole_error *);
thole_status __real_projector_store_live(struct postgres *, uint32_t, struct arena *, struct live_summary *, thole_error *);
thole_status __real_projector_store_orphans(struct postgres *, const struct rows_owner *, uint64_t, size_t, struct arena *, struct batch_activity **, size_t *, uint64_t *, thole_error *);
thole_status __real_projector_store_next_deadline(struct postgres *, uint32_t, uint64_t *, thole_error *);
thole_status __real_projector_store_expire_begin(struct postgres *, const struct rows_owner *, uint64_t, size_t, struct arena *, struct expired_try **, size_t *, thole_error *);
thole_status __real_projector_store_expire_commit(struct postgres *, thole_error *);
thole_status __real_worker_store_claim(struct postgres *, thole_slice, const struct claim_policy *, struct claim *, size_t, struct arena *, thole_error *);
thole_status __real_worker_store_renew(struct postgres *, thole_slice, struct claim *, size_t, thole_error *);
thole_status __real_worker_store_complete_begin(struct postgres *, thole_slice, struct claim *, size_t, thole_error *);
thole_status __real_worker_store_complete_commit(struct postgres *, thole_error *);
thole_status __real_worker_store_leave(struct postgres *, thole_slice, struct claim *, size_t, thole_error *);
/* clang-format on */

static bool is_history(const char *stream)
{
    return strstr(stream, "_HIST_") != NULL;
}

/* Not one of those that the lookout looks at all the time. */
static bool is_of_partition(const char *stream)
{
    return is_history(stream) || strstr(stream, "_IN_") != NULL;
}

/* Before its tail is read the log is compared with what is known of it. */
static _Thread_local bool compares;

thole_status __wrap_topology_look_log(struct connection *c, const char *ns, uint32_t p,
                                      const struct log_known *known, struct log_there *ret,
                                      thole_error *reterr)
{
    compares = true;
    thole_status const status = __real_topology_look_log(c, ns, p, known, ret, reterr);
    compares = false;
    return status;
}

thole_status __wrap_stream_bounds(struct connection *c, const char *stream, struct stream_bounds *ret,
                                  thole_error *reterr)
{
    enum fault any;
    if (!compares && is_history(stream) &&
        struck("stream bounds moving", &any)) { /* a rival writes right after the answer */
        thole_status const status = __real_stream_bounds(c, stream, ret, reterr);
        if (status == THOLE_OK && ret->last > 0)
            ret->last--;
        return status;
    }
    FAULTY(is_of_partition(stream) ? "stream_bounds" : "other", __real_stream_bounds(c, stream, ret, reterr));
}

thole_status __wrap_stream_subjects(struct connection *c, const char *stream, uint64_t since, size_t most,
                                    stream_subject_fn *each, void *arg, thole_error *reterr)
{
    FAULTY("stream_subjects", __real_stream_subjects(c, stream, since, most, each, arg, reterr));
}

thole_status __wrap_stream_last_by_subject(struct connection *c, const char *stream, const char *subject,
                                           uint64_t *ret_sequence, struct buf *ret_body, thole_error *reterr)
{
    bool const deletion = strstr(subject, ".deleted") != NULL;
    FAULTY(!is_history(stream) ? "other"
           : deletion          ? "last_by_subject deletion"
                               : "last_by_subject epoch",
           __real_stream_last_by_subject(c, stream, subject, ret_sequence, ret_body, reterr));
}

thole_status __wrap_stream_read(struct connection *c, const char *stream, const char *filter, uint64_t from,
                                uint64_t to, stream_read_fn *each, void *arg, thole_error *reterr)
{
    FAULTY(filter == NULL ? "stream_read log" : "stream_read history",
           __real_stream_read(c, stream, filter, from, to, each, arg, reterr));
}

thole_status __wrap_stream_next(struct connection *c, const char *stream, uint64_t from,
                                uint64_t *ret_sequence, thole_error *reterr)
{
    FAULTY("stream_next", __real_stream_next(c, stream, from, ret_sequence, reterr));
}

thole_status __wrap_stream_delete_all(struct connection *c, const char *stream, const uint64_t *sequences,
                                      size_t n, thole_error *reterr)
{
    FAULTY("stream_delete_all", __real_stream_delete_all(c, stream, sequences, n, reterr));
}

thole_status __wrap_stream_purge_below(struct connection *c, const char *stream, uint64_t sequence,
                                       thole_error *reterr)
{
    FAULTY("stream_purge_below", __real_stream_purge_below(c, stream, sequence, reterr));
}

thole_status __wrap_stream_still_holds(struct connection *c, const char *stream, uint64_t sequence,
                                       uint64_t stored_ns, bool *ret, uint64_t *ret_last, thole_error *reterr)
{
    FAULTY("stream_still_holds",
           __real_stream_still_holds(c, stream, sequence, stored_ns, ret, ret_last, reterr));
}

thole_status __wrap_ordered_reader_open(struct connection *c, const struct ordered_reader_options *options,
                                        struct ordered_reader **ret, thole_error *reterr)
{
    const char *const site = strstr(options->stream, "_IN_") != NULL ? "ordered_reader_open" : "other";
    enum fault fault;
    if (!struck(site, &fault))
        return __real_ordered_reader_open(c, options, ret, reterr);
    return say(fault, site, reterr);
}

thole_status __wrap_connection_subscribe(struct connection *c, const char *subject, delivery_fn *each,
                                         void *arg, struct subscription **ret, thole_error *reterr)
{
    const char *const site = strstr(subject, ".query.") != NULL ? "subscribe queries" : "other";
    enum fault fault;
    if (!struck(site, &fault))
        return __real_connection_subscribe(c, subject, each, arg, ret, reterr);
    return say(fault, site, reterr);
}

thole_status __wrap_topology_ensure_queue(struct connection *c, const char *ns, thole_slice queue,
                                          uint64_t lease_ms, uint64_t *ret_lease_ms, bool *ret_anew,
                                          thole_error *reterr)
{
    FAULTY("topology_ensure_queue",
           __real_topology_ensure_queue(c, ns, queue, lease_ms, ret_lease_ms, ret_anew, reterr));
}

thole_status __wrap_nodes_put(struct connection *c, const char *ns, thole_slice node, thole_slice heartbeat,
                              thole_error *reterr)
{
    FAULTY("nodes_put", __real_nodes_put(c, ns, node, heartbeat, reterr));
}

thole_status __wrap_cancel_notice_publish(struct connection *c, const char *ns, const struct nonce_key *key,
                                          const struct cancel_notice *notice, thole_error *reterr)
{
    FAULTY("cancel_notice_publish", __real_cancel_notice_publish(c, ns, key, notice, reterr));
}

thole_status __wrap_event_notice_publish(struct connection *c, const char *ns,
                                         const struct event_notice *notice, thole_error *reterr)
{
    FAULTY("event_notice_publish", __real_event_notice_publish(c, ns, notice, reterr));
}

/* ---- requests: the answer comes later ---- */

enum { OPEN_MAX = 4096, MARKS_MAX = 64 };

/* Each opened window, for ever: its callback goes through ours. */
static struct window {
    struct requests *requests;
    request_done_fn *done;
    void *arg;
} windows[OPEN_MAX];
static atomic_size_t windows_len;

static struct mark { /* a request whose answer is ours to give */
    struct window *window;
    uint64_t token;
    enum fault fault;
    bool raw;
} marks[MARKS_MAX];
static size_t marks_len;

static bool take_mark(const struct window *window, uint64_t token, struct mark *ret)
{
    bool found = false;
    pthread_mutex_lock(&now.lock);
    for (size_t i = 0; i < marks_len && !found; i++)
        if (marks[i].window == window && marks[i].token == token) {
            *ret = marks[i];
            marks[i] = marks[--marks_len];
            found = true;
        }
    pthread_mutex_unlock(&now.lock);
    return found;
}

static void set_mark(struct mark mark)
{
    pthread_mutex_lock(&now.lock);
    if (marks_len == MARKS_MAX)
        abort();
    marks[marks_len++] = mark;
    pthread_mutex_unlock(&now.lock);
}

static void on_done(void *arg, const struct request_done *done)
{
    static const char refusal[] = "{\"error\":{\"code\":500,\"err_code\":10999,\"description\":\"a fault\"}}";
    struct window *const window = arg;
    struct request_done given = *done;
    struct mark mark;
    if (take_mark(window, done->token, &mark)) {
        given = (struct request_done){.token = done->token, .result = REQUEST_UNKNOWN};
        if (mark.fault == FAULT_ERROR && !mark.raw) {
            given.result = REQUEST_FAILED;
            given.err_code = 10999;
        } else if (mark.fault == FAULT_ERROR || (mark.fault == FAULT_UNFIT && mark.raw)) {
            given.result = REQUEST_ANSWERED;
            given.body = thole_slice_from(mark.fault == FAULT_ERROR ? refusal : "what is this");
        } else if (mark.fault == FAULT_UNFIT) {
            given.result = REQUEST_BUSY;
        }
    }
    window->done(window->arg, &given);
}

thole_status __wrap_requests_open(struct connection *c, size_t window, uint64_t timeout_ms,
                                  request_done_fn *done, void *arg, struct requests **ret,
                                  thole_error *reterr)
{
    struct window *const mine = &windows[atomic_fetch_add(&windows_len, 1) % OPEN_MAX];
    *mine = (struct window){.done = done, .arg = arg};
    thole_status const status = __real_requests_open(c, window, timeout_ms, on_done, mine, ret, reterr);
    mine->requests = status == THOLE_OK ? *ret : NULL;
    return status;
}

static struct window *window_of(const struct requests *requests)
{
    for (size_t i = atomic_load(&windows_len); i > 0; i--)
        if (windows[(i - 1) % OPEN_MAX].requests == requests)
            return &windows[(i - 1) % OPEN_MAX];
    abort();
}

/* A worker's; the engine says so of a try whose time is over. */
static bool is_result(thole_slice body)
{
    struct arena arena;
    struct message message;
    arena_init(&arena, MESSAGE_BYTES_MAX * 2);
    bool const result = message_decode(body, &arena, &message, NULL) == THOLE_OK &&
                        message.kind == MESSAGE_ACTIVITY_RESULT && message.source.place.worker.len > 0;
    arena_release(&arena);
    return result;
}

static const char *site_of(const struct publish *publish)
{
    if (publish->expect_last)
        return "publish append";
    if (strstr(publish->subject, ".work.") != NULL)
        return "publish work";
    return subject_is_results(thole_slice_from(publish->subject)) || is_result(publish->body)
               ? "publish result"
               : "publish message";
}

/* A call answered with an error or with nonsense has not happened: it goes nowhere. */
thole_status __wrap_requests_publish(struct requests *requests, const struct publish *publish, uint64_t token,
                                     thole_error *reterr)
{
    const char *const site = site_of(publish);
    struct publish nowhere = *publish;
    enum fault fault;
    if (!struck(site, &fault))
        return __real_requests_publish(requests, publish, token, reterr);
    if (fault == FAULT_LOST)
        return say(fault, site, reterr);
    set_mark((struct mark){.window = window_of(requests), .token = token, .fault = fault});
    if (fault != FAULT_TIMEOUT)
        nowhere.subject = "nowhere.at.all";
    return __real_requests_publish(requests, &nowhere, token, reterr);
}

thole_status __wrap_requests_send(struct requests *requests, const char *subject, thole_slice body,
                                  uint64_t token, thole_error *reterr)
{
    const char *const site = strstr(subject, "MSG.DELETE") == NULL ? "send look"
                             : is_history(subject)                 ? "send removal"
                                                                   : "send withdrawal";
    enum fault fault;
    if (!struck(site, &fault))
        return __real_requests_send(requests, subject, body, token, reterr);
    if (fault == FAULT_LOST)
        return say(fault, site, reterr);
    set_mark((struct mark){.window = window_of(requests), .token = token, .fault = fault, .raw = true});
    return __real_requests_send(requests, fault == FAULT_TIMEOUT ? subject : "nowhere.at.all", body, token,
                                reterr);
}

thole_status __wrap_requests_get(struct requests *requests, const char *subject, thole_slice body,
                                 uint64_t token, thole_error *reterr)
{
    enum fault fault;
    if (!struck("get record", &fault))
        return __real_requests_get(requests, subject, body, token, reterr);
    if (fault == FAULT_LOST)
        return say(fault, "get record", reterr);
    set_mark((struct mark){.window = window_of(requests), .token = token, .fault = fault, .raw = true});
    return __real_requests_get(requests, fault == FAULT_TIMEOUT ? subject : "nowhere.at.all", body, token,
                               reterr);
}

/* ---- the database ---- */

thole_status __wrap_projector_store_open(struct postgres *pg, uint32_t p, uint64_t epoch,
                                         struct rows_state *ret, uint64_t *ret_epoch, thole_error *reterr)
{
    FAULTY("store_open", __real_projector_store_open(pg, p, epoch, ret, ret_epoch, reterr));
}

thole_status __wrap_projector_store_apply(struct postgres *pg, struct batch *const *batches, size_t n,
                                          thole_error *reterr)
{
    FAULTY("store_apply", __real_projector_store_apply(pg, batches, n, reterr));
}

thole_status __wrap_projector_store_reset(struct postgres *pg, uint32_t p, uint64_t epoch,
                                          struct rows_state *ret, thole_error *reterr)
{
    FAULTY("store_reset", __real_projector_store_reset(pg, p, epoch, ret, reterr));
}

thole_status __wrap_projector_store_sign(struct postgres *pg, uint32_t p, uint64_t epoch, uint64_t mark,
                                         uint64_t *ret_mark, thole_error *reterr)
{
    FAULTY("store_sign", __real_projector_store_sign(pg, p, epoch, mark, ret_mark, reterr));
}

thole_status __wrap_projector_store_timers(struct postgres *pg, uint32_t p, uint64_t before_ms, size_t limit,
                                           struct arena *arena, struct batch_timer **ret, size_t *ret_len,
                                           uint64_t *ret_next, thole_error *reterr)
{
    FAULTY("store_timers",
           __real_projector_store_timers(pg, p, before_ms, limit, arena, ret, ret_len, ret_next, reterr));
}

thole_status __wrap_projector_store_live(struct postgres *pg, uint32_t p, struct arena *arena,
                                         struct live_summary *ret, thole_error *reterr)
{
    FAULTY("store_live", __real_projector_store_live(pg, p, arena, ret, reterr));
}

thole_status __wrap_projector_store_orphans(struct postgres *pg, const struct rows_owner *owner,
                                            uint64_t older_than_ms, size_t limit, struct arena *arena,
                                            struct batch_activity **ret, size_t *ret_len, uint64_t *ret_next,
                                            thole_error *reterr)
{
    FAULTY("store_orphans", __real_projector_store_orphans(pg, owner, older_than_ms, limit, arena, ret,
                                                           ret_len, ret_next, reterr));
}

thole_status __wrap_projector_store_next_deadline(struct postgres *pg, uint32_t p, uint64_t *ret_in_ms,
                                                  thole_error *reterr)
{
    FAULTY("store_next_deadline", __real_projector_store_next_deadline(pg, p, ret_in_ms, reterr));
}

thole_status __wrap_projector_store_expire_begin(struct postgres *pg, const struct rows_owner *owner,
                                                 uint64_t since_ms, size_t limit, struct arena *arena,
                                                 struct expired_try **ret, size_t *ret_len,
                                                 thole_error *reterr)
{
    enum fault fault;
    if (!struck("store_expire_begin", &fault))
        return __real_projector_store_expire_begin(pg, owner, since_ms, limit, arena, ret, ret_len, reterr);
    return say(fault, "store_expire_begin", reterr); /* a transaction is never left open */
}

thole_status __wrap_projector_store_expire_commit(struct postgres *pg, thole_error *reterr)
{
    enum fault fault;
    thole_status status = THOLE_OK;
    if (!struck("store_expire_commit", &fault))
        return __real_projector_store_expire_commit(pg, reterr);
    if (fault == FAULT_TIMEOUT)
        status = __real_projector_store_expire_commit(pg, reterr);
    else
        projector_store_expire_rollback(pg);
    return status == THOLE_OK ? say(fault, "store_expire_commit", reterr) : status;
}

thole_status __wrap_worker_store_claim(struct postgres *pg, thole_slice worker,
                                       const struct claim_policy *policy, struct claim *claims, size_t n,
                                       struct arena *arena, thole_error *reterr)
{
    FAULTY("worker_claim", __real_worker_store_claim(pg, worker, policy, claims, n, arena, reterr));
}

thole_status __wrap_worker_store_renew(struct postgres *pg, thole_slice worker, struct claim *claims,
                                       size_t n, thole_error *reterr)
{
    FAULTY("worker_renew", __real_worker_store_renew(pg, worker, claims, n, reterr));
}

thole_status __wrap_worker_store_complete_begin(struct postgres *pg, thole_slice worker, struct claim *claims,
                                                size_t n, thole_error *reterr)
{
    enum fault fault;
    if (!struck("worker_begin", &fault))
        return __real_worker_store_complete_begin(pg, worker, claims, n, reterr);
    return say(fault, "worker_begin", reterr);
}

thole_status __wrap_worker_store_complete_commit(struct postgres *pg, thole_error *reterr)
{
    enum fault fault;
    thole_status status = THOLE_OK;
    if (!struck("worker_commit", &fault))
        return __real_worker_store_complete_commit(pg, reterr);
    if (fault == FAULT_TIMEOUT)
        status = __real_worker_store_complete_commit(pg, reterr);
    else
        worker_store_complete_rollback(pg);
    return status == THOLE_OK ? say(fault, "worker_commit", reterr) : status;
}

thole_status __wrap_worker_store_leave(struct postgres *pg, thole_slice worker, struct claim *claims,
                                       size_t n, thole_error *reterr)
{
    FAULTY("worker_leave", __real_worker_store_leave(pg, worker, claims, n, reterr));
}

/* ---- log lines ---- */

void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...) THOLE_PRINTF(4, 5);
void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...)
{
    char line[2048];
    va_list args;
    va_start(args, fmt);
    logged_text(line, sizeof line, fields, fmt, args);
    va_end(args);
    pthread_mutex_lock(&now.lock);
    size_t const room = sizeof now.log - now.log_len;
    if (strlen(line) + strlen(area) + 4 < room && level != LOG_LEVEL_DEBUG)
        now.log_len += (size_t)snprintf(now.log + now.log_len, room, "%s: %s\n", area, line);
    pthread_mutex_unlock(&now.lock);
}

bool fault_logged(const char *text)
{
    pthread_mutex_lock(&now.lock);
    bool const found = strstr(now.log, text) != NULL;
    pthread_mutex_unlock(&now.lock);
    return found;
}

void fault_print_log(void)
{
    pthread_mutex_lock(&now.lock);
    fputs(now.log, stderr);
    pthread_mutex_unlock(&now.lock);
}
