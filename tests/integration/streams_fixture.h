/* A NATS server and connections to it, for the tests of streams/. */
#ifndef THOLE_STREAMS_FIXTURE_H
#define THOLE_STREAMS_FIXTURE_H
#include "connection.h"
#include "integration.h"
#include "requests.h"
#include "topology.h"
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { WAIT_MS = 20000 };

/* The server that a program's tests share. fixture_main() starts it, runs the tests, and removes it. */
extern struct server fixture_server;
int fixture_main(const char *name, const struct thole_test *tests, size_t n);
#define FIXTURE_MAIN(name, tests)                                                                            \
    int main(void)                                                                                           \
    {                                                                                                        \
        return fixture_main(name, tests, ARRAY_LEN(tests));                                                  \
    }

/* Asserts that it worked. */
struct connection *connect_to(const char *url);
struct connection *connect_here(void);
/* A namespace nobody else uses, with its streams; 1 partition unless said otherwise. */
const char *fresh_ns(void);
struct topology fresh_topology(struct connection *connection, uint32_t partitions);
/* A second server with a configuration of its own; stop with server_stop(). False: it did not start. */
bool start_configured(struct server *ret, const char *program, const char *config);
/* Kills it and starts it at the same port with another configuration. */
bool restart_configured(struct server *server, const char *program, const char *config);

/* printf into an array of TEXT_BYTES. */
enum { TEXT_BYTES = 512 };
void put_text(char ret[TEXT_BYTES], const char *fmt, ...) THOLE_PRINTF(2, 3);

/* True as soon as the counter has this value; false after WAIT_MS. */
bool reaches(const atomic_ulong *counter, unsigned long want);
/* Waits for an epoch above @p old. */
bool wait_epoch_above(const struct connection *connection, uint64_t old);
/* Static: other fixtures of this folder have clocks of the same kind. */
static inline uint64_t clock_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}
static inline uint64_t clock_ms(void)
{
    return clock_us() / 1000;
}
static inline void nap_ms(unsigned ms)
{
    (void)nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
}
/* Sorts, and gives the median. */
uint64_t median(uint64_t *values, size_t n);

/* Sends and waits: one raw API request; the answer in a static buffer. */
const char *api_answer(struct connection *connection, const char *subject, const char *json);

/* A window that counts, and keeps the last answer. */
struct sink {
    atomic_ulong done, stored, refused, busy, failed, unknown, answered;
    atomic_ulong last_sequence, last_token, last_code;
    atomic_bool duplicate;
};
struct requests *open_window(struct connection *connection, size_t window, uint64_t timeout_ms,
                             struct sink *sink);
void sink_done(void *arg, const struct request_done *done);
/* Publishes and waits for the answer. */
enum request_result publish_one(struct requests *requests, struct sink *sink, const struct publish *publish);
/* Fills a stream with @p n messages of body "<number>" under subject_prefix.<number modulo subjects>. */
void fill_stream(struct connection *connection, const char *subject_prefix, unsigned n, unsigned subjects);
#endif
