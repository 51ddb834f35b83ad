#include "fatal_signals.h"
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { STACK_BYTES = 64 * 1024 }; /* of which what is not used is never there */

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
enum { CRASHES = sizeof crashes / sizeof crashes[0] };

/* One for the process, as signals are. */
static struct {
    _Atomic(fatal_fn *) listeners[FATAL_LISTENERS_MAX];
    atomic_size_t listeners_len; /* number of listeners */
    bool ours[CRASHES];
} fatal;

static void fatal_signals_notify(const struct fatal *what)
{
    for (size_t i = 0; i < FATAL_LISTENERS_MAX; i++) {
        fatal_fn *const fn = atomic_load(&fatal.listeners[i]);
        if (fn != NULL)
            fn(what);
    }
}

/* Whether the signal comes again when the handler returns: then the core dump shows the right place. */
static bool fatal_signals_repeats(int number, const siginfo_t *info)
{
    return info->si_code > 0 &&
           (number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL);
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    struct sigaction const as_before = {.sa_handler = SIG_DFL};
    int const before = errno;
    bool const again = fatal_signals_repeats(number, info), fault = again && info->si_code != SI_KERNEL;
    fatal_signals_notify(&(struct fatal){.number = number,
                                         .fault = fault,
                                         .address = fault ? (uint64_t)(uintptr_t)info->si_addr : 0,
                                         .context = context});
    (void)sigaction(number, &as_before, NULL);
    if (!again)
        (void)raise(number); /* pending until this handler returns */
    errno = before;
}

static void on_exit_called(int code, void *arg)
{
    (void)arg;
    fatal_signals_notify(&(struct fatal){.exit_code = code});
}

/* A handler that is set already stays, and so does a signal that is ignored. */
static bool take_signal(int number)
{
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK}, old;
    sigfillset(&action.sa_mask);
    return sigaction(number, NULL, &old) == 0 && (old.sa_flags & SA_SIGINFO) == 0 &&
           old.sa_handler == SIG_DFL && sigaction(number, &action, NULL) == 0;
}

static void fatal_signals_install(void)
{
    static bool hooked; /* handlers stay installed for good */
    for (size_t i = 0; i < CRASHES; i++)
        fatal.ours[i] = take_signal(crashes[i]);
    if (!hooked)
        hooked = on_exit(on_exit_called, NULL) == 0;
}

static void fatal_signals_uninstall(void)
{
    struct sigaction old, as_before = {.sa_handler = SIG_DFL};
    for (size_t i = 0; i < CRASHES; i++)
        if (fatal.ours[i] && sigaction(crashes[i], NULL, &old) == 0 && (old.sa_flags & SA_SIGINFO) != 0 &&
            old.sa_sigaction == on_crash)
            (void)sigaction(crashes[i], &as_before, NULL);
}

void fatal_listen(fatal_fn *fn)
{
    size_t free = FATAL_LISTENERS_MAX;
    for (size_t i = FATAL_LISTENERS_MAX; i-- > 0;) {
        fatal_fn *const there = atomic_load(&fatal.listeners[i]);
        if (there == fn)
            return;
        if (there == NULL)
            free = i;
    }
    assert(free < FATAL_LISTENERS_MAX);
    atomic_store(&fatal.listeners[free], fn);
    if (atomic_fetch_add(&fatal.listeners_len, 1) == 0)
        fatal_signals_install();
}

void fatal_unlisten(fatal_fn *fn)
{
    for (size_t i = 0; i < FATAL_LISTENERS_MAX; i++)
        if (atomic_load(&fatal.listeners[i]) == fn) {
            atomic_store(&fatal.listeners[i], NULL);
            if (atomic_fetch_sub(&fatal.listeners_len, 1) == 1)
                fatal_signals_uninstall();
        }
}

void *fatal_thread_begin(void)
{
    stack_t old, stack = {.ss_size = STACK_BYTES};
    if (atomic_load(&fatal.listeners_len) == 0 || sigaltstack(NULL, &old) != 0 ||
        (old.ss_flags & SS_DISABLE) == 0)
        return NULL;
    stack.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp == MAP_FAILED)
        return NULL;
    if (sigaltstack(&stack, NULL) == 0)
        return stack.ss_sp;
    (void)munmap(stack.ss_sp, STACK_BYTES);
    return NULL;
}

void fatal_thread_end(void *stack)
{
    stack_t const none = {.ss_flags = SS_DISABLE};
    if (stack == NULL)
        return;
    (void)sigaltstack(&none, NULL);
    (void)munmap(stack, STACK_BYTES);
}
