#include "dying.h"
#include "activity_run.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STACK_BYTES = 64 * 1024 }; /* of which what is not used is never there */

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
enum { CRASHES = sizeof crashes / sizeof crashes[0] };

/* One for the process, as signals are. The page is NULL when nothing is to be said. */
static struct {
    _Atomic(struct last_word_page *) page;
    pid_t pid; /* what a handler has forked is not this worker */
    int witness;
    struct stat socket; /* which file that is */
    bool ours[CRASHES];
} dying;

/* The signal handler reads it: it must not be one of those that are allocated when they are first used. */
static _Thread_local const struct thole_activity *running __attribute__((tls_model("initial-exec")));

static void take_try(struct last_word_try *ret)
{
    if (running == NULL)
        return;
    const struct work_item *const item = &running->message->item;
    if (item->instance.len > sizeof ret->instance)
        return;
    ret->execution = item->execution;
    ret->activity_id = item->activity_id;
    ret->try_number = (uint32_t)item->try_number;
    ret->attempt = running->attempt;
    ret->instance_len = (uint32_t)item->instance.len;
    memcpy(ret->instance, item->instance.ptr, item->instance.len);
}

/* A handler may have closed it, and the number be another file's by now. */
static bool witness_is_there(void)
{
    struct stat now;
    return fstat(dying.witness, &now) == 0 && now.st_dev == dying.socket.st_dev &&
           now.st_ino == dying.socket.st_ino;
}

/* Async-signal-safe. Only the first word counts: what follows may be its consequence. */
static void say(const struct last_word *word)
{
    struct last_word_page *const page = atomic_load(&dying.page);
    int unsaid = LAST_WORD_UNSAID;
    if (page == NULL || getpid() != dying.pid)
        return;
    if (atomic_compare_exchange_strong(&page->state, &unsaid, LAST_WORD_BEING_SAID)) {
        page->word = *word;
        take_try(&page->word.in);
        atomic_store(&page->state, LAST_WORD_SAID);
    }
    struct pollfd stored = {.fd = dying.witness, .events = POLLRDHUP};
    if (witness_is_there() && send(dying.witness, "w", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
        (void)poll(&stored, 1, DYING_WAIT_MS);
}

/* Does it happen again when the code goes on? Then it does so in the right place for a core dump. */
static bool repeats(int number, const siginfo_t *info)
{
    return info->si_code > 0 &&
           (number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL);
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    struct sigaction const as_before = {.sa_handler = SIG_DFL};
    int const before = errno;
    bool const again = repeats(number, info), fault = again && info->si_code != SI_KERNEL;
    (void)context;
    say(&(struct last_word){.kind = LAST_WORD_SIGNAL,
                            .number = number,
                            .fault = fault,
                            .address = fault ? (uint64_t)(uintptr_t)info->si_addr : 0});
    (void)sigaction(number, &as_before, NULL);
    if (!again)
        (void)raise(number); /* it waits until this handler returns */
    errno = before;
}

static void on_exit_called(int code, void *arg)
{
    (void)arg;
    say(&(struct last_word){.kind = LAST_WORD_EXIT, .number = code});
}

/* One that somebody else has set, or that is ignored, stays. */
static bool take_signal(int number)
{
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK}, old;
    sigfillset(&action.sa_mask);
    return sigaction(number, NULL, &old) == 0 && (old.sa_flags & SA_SIGINFO) == 0 &&
           old.sa_handler == SIG_DFL && sigaction(number, &action, NULL) == 0;
}

void dying_install(struct last_word_page *page, int witness)
{
    static bool hooked; /* it cannot be taken back */
    dying.pid = getpid();
    dying.witness = witness;
    (void)fstat(witness, &dying.socket);
    atomic_store(&dying.page, page);
    for (size_t i = 0; i < CRASHES; i++)
        dying.ours[i] = take_signal(crashes[i]);
    if (!hooked)
        hooked = on_exit(on_exit_called, NULL) == 0;
}

void dying_uninstall(void)
{
    struct sigaction old, as_before = {.sa_handler = SIG_DFL};
    atomic_store(&dying.page, NULL);
    for (size_t i = 0; i < CRASHES; i++)
        if (dying.ours[i] && sigaction(crashes[i], NULL, &old) == 0 && (old.sa_flags & SA_SIGINFO) != 0 &&
            old.sa_sigaction == on_crash)
            (void)sigaction(crashes[i], &as_before, NULL);
}

bool dying_is(void)
{
    const struct last_word_page *const page = atomic_load(&dying.page);
    return page != NULL && atomic_load(&page->state) != LAST_WORD_UNSAID;
}

void *dying_thread_begin(void)
{
    stack_t old, stack = {.ss_size = STACK_BYTES};
    if (atomic_load(&dying.page) == NULL || sigaltstack(NULL, &old) != 0 || (old.ss_flags & SS_DISABLE) == 0)
        return NULL;
    stack.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp == MAP_FAILED)
        return NULL;
    if (sigaltstack(&stack, NULL) == 0)
        return stack.ss_sp;
    (void)munmap(stack.ss_sp, STACK_BYTES);
    return NULL;
}

void dying_thread_end(void *stack)
{
    stack_t const none = {.ss_flags = SS_DISABLE};
    if (stack == NULL)
        return;
    (void)sigaltstack(&none, NULL);
    (void)munmap(stack, STACK_BYTES);
}

void dying_runs(const struct thole_activity *act)
{
    running = act;
}
