#include "stop_signals.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EXIT_INTERRUPTED = 130 };

static atomic_bool requested, interrupted;
static int wake = -1;

/* Ctrl-C comes twice: from the terminal as SIGINT, and from a supervisor as SIGTERM, in either order. */
static void on_signal(int number)
{
    int const before = errno;
    uint64_t const one = 1;
    if (number == SIGINT && atomic_exchange(&interrupted, true))
        _exit(EXIT_INTERRUPTED);
    atomic_store(&requested, true);
    ssize_t const written = write(wake, &one, sizeof one);
    (void)written; /* can only be full, which wakes as well */
    errno = before;
}

thole_status stop_signals_install(thole_error *reterr)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction const ignore = {.sa_handler = SIG_IGN};
    sigset_t both;
    wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "eventfd: %s", strerror(errno));
    sigemptyset(&action.sa_mask);
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    /* Unblocked too: a program may have been started with them blocked. */
    if (sigaction(SIGINT, &action, NULL) != 0 || sigaction(SIGTERM, &action, NULL) != 0 ||
        sigaction(SIGPIPE, &ignore, NULL) != 0 || pthread_sigmask(SIG_UNBLOCK, &both, NULL) != 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "sigaction: %s", strerror(errno));
    return THOLE_OK;
}

void stop_request(void)
{
    uint64_t const one = 1;
    atomic_store(&requested, true);
    ssize_t const written = write(wake, &one, sizeof one);
    (void)written;
}

bool stop_requested(void)
{
    return atomic_load(&requested);
}

bool stop_wait_beside(int socket)
{
    struct pollfd waits[2] = {{.fd = wake, .events = POLLIN}, {.fd = socket, .events = POLLRDHUP}};
    while (!stop_requested() && waits[1].revents == 0)
        (void)poll(waits, 2, -1);
    return stop_requested();
}

void stop_wait(void)
{
    (void)stop_wait_beside(-1);
}
