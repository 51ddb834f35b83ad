/**
 * The client library for event loops: requests that do not block, and one descriptor that says when there is
 * something to do. For epoll, poll, libuv, libev, GLib, asio and their like.
 *
 *     thole_async *async;
 *     thole_async_open(client, NULL, &async, &err);
 *     thole_async_start(async, THOLE_STR("order-17"), THOLE_STR("checkout"), order, NULL, on_started, shop,
 *                       NULL, &err);
 *     for (;;) {
 *         poll(&(struct pollfd){.fd = thole_async_fd(async), .events = POLLIN}, 1, -1);
 *         thole_async_dispatch(async); // calls on_started()
 *     }
 *
 * Why so: as in libpq and c-ares the service's own thread does all the work, when its loop has time; no
 * thread exists whose callbacks would need locks. Unlike in those libraries the descriptor never changes: it
 * survives reconnects, and timeouts make it readable too, so there is no list of descriptors and no "next
 * timeout" to ask for. A request runs the code of the blocking function of the same name on a small stack of
 * its own, so both mean the same, return the same statuses, and repeat themselves in the same way.
 *
 * **Rules**
 * - A thole_async belongs to one thread at a time: its functions are not called on two threads at once. Its
 *   client stays usable from all threads. Several thole_async, each with a loop of its own, may share one
 *   client and so one connection.
 * - Each request whose function returned THOLE_OK gets exactly one callback: from thole_async_dispatch() or
 *   thole_async_close(), never from within the function itself, in no particular order. A request whose
 *   function returned another status gets none, and nothing was sent. Errors in a request's arguments reach
 *   its callback, like all other errors.
 * - A callback may make requests and abandon them; it must not call thole_async_dispatch() or
 *   thole_async_close() of its own thole_async. It should not block: the blocking thole_client_...() work
 *   there, but hold up the loop.
 * - Arguments are copied: nothing needs to live longer than the call. A callback's arguments are borrowed
 *   until it returns.
 *
 * **Limits.** At most in_flight_max requests are under way at a time; the next one is refused with
 * THOLE_LIMIT. Each takes some 13 KiB and a copy of its arguments.
 *
 * **Time.** Each round trip has the client's timeout_ms. Most requests take one or two; a cancellation, or a
 * start under an id in use, also reads the history, with a round trip for each record that it needs. A
 * message that was not stored is sent again when there is a connection, within that time, under the same
 * request id, so it takes effect once. A request that only reads, such as a query, ends with
 * THOLE_UNAVAILABLE when there is no connection at that moment: ask again. A wait lasts for its whole time,
 * through reconnects, except for such a read.
 *
 * **fork().** A child process must neither use nor close a thole_async; exec() closes its descriptors.
 */
#ifndef THOLE_ASYNC_H
#define THOLE_ASYNC_H
#include "thole/client.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct thole_async thole_async;

/** Fill with zeroes, set size, then what differs. */
typedef struct thole_async_options {
    size_t size;          /**< sizeof(thole_async_options) */
    size_t in_flight_max; /**< requests under way; 0 = 1024; at most 2048 */
} thole_async_options;

/** How a request ended. Borrowed for the callback. Zeroed: what does not belong to its kind. */
typedef struct thole_completion {
    uint64_t request;      /**< the number of the request */
    thole_status status;   /**< as of the blocking function; THOLE_CANCELLED: it was abandoned, and may have
                              taken effect or not */
    const char *text;      /**< why; "" with THOLE_OK */
    bool accepted;         /**< start: an engine has accepted it */
    bool kept;             /**< signal: for an instance that does not exist yet */
    thole_outcome outcome; /**< run, wait. Must not be released */
    thole_slice output;    /**< query. A NUL that is not counted follows */
} thole_completion;

/** On the thread that called thole_async_dispatch() or thole_async_close(). */
typedef void thole_completion_fn(void *arg, const thole_completion *completion);

/**
 * @param client   Must outlive it.
 * @param options  NULL = defaults.
 * @return THOLE_OK; THOLE_INVALID; THOLE_UNAVAILABLE (no descriptor left).
 */
THOLE_NODISCARD THOLE_API thole_status thole_async_open(thole_client *client,
                                                        const thole_async_options *options,
                                                        thole_async **ret_async, thole_error *reterr);
/** Abandons what is under way, calls the callbacks, and frees. Does not wait for servers. Requests that these
 * callbacks make are refused with THOLE_UNAVAILABLE. NULL is allowed. */
THOLE_API void thole_async_close(thole_async *async);
/** Readable (POLLIN) when thole_async_dispatch() has something to do; level- and edge-triggered polling both
 * work. The descriptor stays the same until thole_async_close(), which closes it. Do not read from it. */
THOLE_API int thole_async_fd(const thole_async *async);
/** Carries on what can be carried on and calls the callbacks of what has ended. Does not block, and needs not
 * be called before the descriptor is readable. @return How many callbacks were called. */
THOLE_API size_t thole_async_dispatch(thole_async *async);
/** Requests whose callback has not been called. */
THOLE_API size_t thole_async_in_flight(const thole_async *async);
/** Does not wait for a request any longer: its callback comes with THOLE_CANCELLED, or with its result if it
 * has one already. A request that was sent is not taken back. @return False: the request has ended, and its
 * callback has come or comes with its result; or there never was such a request. */
THOLE_API bool thole_async_abandon(thole_async *async, uint64_t request);

/**
 * Each is the request of the blocking function of the same name, whose comment has the rest.
 * @param done         NULL: THOLE_INVALID.
 * @param ret_request  May be NULL. Its number, which is never used again: for thole_async_abandon().
 * @return THOLE_OK (the callback comes); THOLE_LIMIT (in_flight_max are under way, or the arguments are
 * larger than any message); THOLE_INVALID; THOLE_UNAVAILABLE (no memory mapping left; or it is being closed).
 */
THOLE_NODISCARD THOLE_API thole_status thole_async_start(thole_async *async, thole_slice instance,
                                                         thole_slice orchestration, thole_slice input,
                                                         const thole_start_options *options,
                                                         thole_completion_fn *done, void *arg,
                                                         uint64_t *ret_request, thole_error *reterr);
/** A start and a wait in one, as thole_client_run(). */
THOLE_NODISCARD THOLE_API thole_status thole_async_run(thole_async *async, thole_slice instance,
                                                       thole_slice orchestration, thole_slice input,
                                                       uint64_t wait_ms, thole_completion_fn *done, void *arg,
                                                       uint64_t *ret_request, thole_error *reterr);
THOLE_NODISCARD THOLE_API thole_status thole_async_wait(thole_async *async, thole_slice instance,
                                                        uint64_t wait_ms, thole_completion_fn *done,
                                                        void *arg, uint64_t *ret_request,
                                                        thole_error *reterr);
THOLE_NODISCARD THOLE_API thole_status thole_async_signal(thole_async *async, thole_slice instance,
                                                          thole_slice name, thole_slice data,
                                                          thole_slice request_id, thole_completion_fn *done,
                                                          void *arg, uint64_t *ret_request,
                                                          thole_error *reterr);
/** Cancels an instance. To stop waiting for a request: thole_async_abandon(). */
THOLE_NODISCARD THOLE_API thole_status thole_async_cancel(thole_async *async, thole_slice instance,
                                                          const thole_end_options *options,
                                                          thole_completion_fn *done, void *arg,
                                                          uint64_t *ret_request, thole_error *reterr);
THOLE_NODISCARD THOLE_API thole_status thole_async_terminate(thole_async *async, thole_slice instance,
                                                             const thole_end_options *options,
                                                             thole_completion_fn *done, void *arg,
                                                             uint64_t *ret_request, thole_error *reterr);
THOLE_NODISCARD THOLE_API thole_status thole_async_query(thole_async *async, thole_slice instance,
                                                         thole_slice name, thole_slice input,
                                                         thole_completion_fn *done, void *arg,
                                                         uint64_t *ret_request, thole_error *reterr);
#ifdef __cplusplus
}
#endif
#endif
