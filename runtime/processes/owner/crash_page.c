/* The crash page: writing it, also in handlers of fatal signals, and reading it. */
#include "crash_page.h"
#include "call_site.h"
#include "clock.h"
#include "coro.h"
#include "fatal_signals.h"
#include "message.h"
#include "thread_pointer.h"
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

struct crash_page *crash_page_create(void)
{
    void *const page =
        mmap(NULL, sizeof(struct crash_page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

void crash_page_destroy(struct crash_page *page)
{
    if (page != NULL)
        (void)munmap(page, sizeof *page);
}

void crash_page_clear(struct crash_page *page)
{
    memset(page, 0, sizeof *page);
}

/* ---- places ---- */

void crash_begins(struct crash_place *place, const struct code_run *run)
{
    size_t const id = run->instance.len < sizeof place->instance ? run->instance.len : sizeof place->instance;
    size_t const name = run->orchestration.len < sizeof place->orchestration - 1
                            ? run->orchestration.len
                            : sizeof place->orchestration - 1;
    atomic_thread_fence(memory_order_release); /* a reader of the new values sees that the last run has
                                                  ended */
    place->kind = run->kind;
    place->partition = run->partition;
    place->version = run->version;
    place->execution = run->execution;
    place->event = run->event;
    place->code = run->code;
    place->instance_len = (uint32_t)id;
    memcpy(place->instance, run->instance.ptr, id);
    if (name > 0)
        memcpy(place->orchestration, run->orchestration.ptr, name);
    place->orchestration[name] = '\0';
    atomic_fetch_add_explicit(&place->runs, 1, memory_order_release); /* a reader that sees it sees the
                                                                         values above */
    atomic_store(&place->since_ms, clock_monotonic_ms());
}

void crash_ended(struct crash_place *place)
{
    atomic_store(&place->since_ms, 0);
}

/* The shard's thread may write meanwhile: crash_watch_place() then does not use what was read. */
__attribute__((no_sanitize("thread"))) static void copy_place(const struct crash_place *place,
                                                              struct crash_place *ret)
{
    const volatile uint8_t *const from = (const volatile uint8_t *)place;
    volatile uint8_t *const to = (volatile uint8_t *)ret;
    for (size_t i = 0; i < sizeof *ret; i++)
        to[i] = from[i];
}

bool crash_watch_place(const struct crash_place *place, uint64_t since_ms, struct crash_place *ret)
{
    uint64_t const runs = atomic_load(&place->runs);
    copy_place(place, ret);
    atomic_thread_fence(memory_order_acquire);
    return since_ms != 0 && atomic_load(&place->since_ms) == since_ms && atomic_load(&place->runs) == runs;
}

/* ---- the report ---- */

/* One for the process, since signal handlers are process-wide. The page is NULL when nothing is reported. */
static struct {
    _Atomic(struct crash_page *) page;
    pid_t pid; /* this engine; a process that code has forked has another pid */
    int socket;
    struct stat file; /* identity of the socket's file */
    bool copy;        /* this process is a forked copy of the engine */
} saying;

static struct thread_pointer running; /* to the struct crash_thread of each that has one */

static const struct stack_pool *running_stacks(void)
{
    const struct crash_thread *const thread = thread_pointer_get(&running);
    return thread == NULL ? NULL : thread->stacks;
}

static int running_place(const struct crash_page *page)
{
    const struct crash_thread *const thread = thread_pointer_get(&running);
    return thread != NULL && thread->page == page && atomic_load(&page->places[thread->index].since_ms) != 0
               ? (int)thread->index
               : -1;
}

/* The instruction; after a jump to an invalid address, also the place of the jump. */
static void take_registers(const ucontext_t *context, struct crash *crash)
{
#if defined(__x86_64__)
    uintptr_t const pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    uintptr_t const sp = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
    crash->frames[crash->frames_len++] = (const void *)(pc + 1); /* stored like a return address */
    const struct stack_pool *const stacks = running_stacks();
    if (crash->fault && pc == crash->address && stacks != NULL &&
        stack_pool_runs_on(stacks, (const void *)sp))
        memcpy(&crash->frames[crash->frames_len++], (const void *)sp, sizeof(void *));
#elif defined(__aarch64__)
    crash->frames[crash->frames_len++] = (const void *)(uintptr_t)(context->uc_mcontext.pc + 1);
    if (crash->fault && context->uc_mcontext.pc == crash->address)
        crash->frames[crash->frames_len++] = (const void *)(uintptr_t)context->uc_mcontext.regs[30];
#else
    (void)context;
#endif
}

/* The call stack of the crash, without this handler and its callers. Memory may be corrupted, so what was
 * written before stays valid if this crashes. backtrace() has been called before, or it would load a library
 * now.
 */
static void crash_page_take_frames(struct crash *crash)
{
    void *frames[CRASH_FRAMES_MAX];
    const uint8_t *const pc = crash->frames_len > 0 ? (const uint8_t *)crash->frames[0] - 1 : NULL;
    int const n = backtrace(frames, CRASH_FRAMES_MAX);
    int first = 0;
    while (pc != NULL && first < n && frames[first] != (const void *)pc)
        first++;
    for (int i = pc == NULL ? 0 : first + 1; i < n && crash->frames_len < CRASH_FRAMES_MAX; i++)
        crash->frames[crash->frames_len++] = frames[i];
}

static void crash_page_take(const struct fatal *fatal, struct crash_page *page, int place)
{
    struct crash *const crash = &page->crash;
    uint64_t const overdue = place >= 0 && fatal->number == SIGABRT ? atomic_load(&page->overdue_ms) : 0;
    const struct stack_pool *const stacks = running_stacks();
    crash->place = place;
    crash->frames_len = 0;
    crash->fault = fatal->fault;
    crash->address = fatal->address;
    crash->overflow = fatal->fault && stacks != NULL &&
                      stack_pool_overflown(stacks, (const void *)(uintptr_t)fatal->address);
    crash->stack_bytes = stacks == NULL ? 0 : stack_pool_running_bytes(stacks);
    crash->number = overdue != 0 ? (int)overdue : fatal->number == 0 ? fatal->exit_code : fatal->number;
    crash->kind = overdue != 0 ? CRASH_ENDLESS : fatal->number == 0 ? CRASH_EXIT : CRASH_SIGNAL;
    if (fatal->context != NULL)
        take_registers(fatal->context, crash);
}

/* Code may have closed the socket, and its number may be reused. */
static bool socket_is_ours(void)
{
    struct stat now;
    return saying.socket >= 0 && fstat(saying.socket, &now) == 0 && now.st_dev == saying.file.st_dev &&
           now.st_ino == saying.file.st_ino;
}

/* Async-signal-safe. Only the first report counts: later ones may be its consequence. exit() is a crash only
 * when an orchestration calls it. */
static void crash_page_on_fatal(const struct fatal *fatal)
{
    struct crash_page *const page = atomic_load(&saying.page);
    int unreported = CRASH_UNREPORTED;
    if (page == NULL || getpid() != saying.pid)
        return;
    int const place = running_place(page);
    if (fatal->number == 0 && place < 0)
        return;
    if (atomic_compare_exchange_strong(&page->crash.state, &unreported, CRASH_BEING_REPORTED)) {
        crash_page_take(fatal, page, place);
        crash_page_take_frames(&page->crash);
        atomic_store(&page->crash.state, CRASH_REPORTED);
    }
    if (saying.copy && fatal->number == 0)
        _exit(1); /* skips the handlers of exit(), which are the engine's */
    struct pollfd stored = {.fd = saying.socket, .events = POLLIN | POLLRDHUP};
    if (socket_is_ours() && send(saying.socket, "c", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
        (void)poll(&stored, 1, CRASH_WAIT_MS);
}

void crash_say_endless(struct crash_page *page, int place, uint64_t ms)
{
    struct crash *const crash = &page->crash;
    int unreported = CRASH_UNREPORTED;
    if (!atomic_compare_exchange_strong(&crash->state, &unreported, CRASH_BEING_REPORTED))
        return;
    crash->kind = CRASH_ENDLESS;
    crash->number = (int)ms;
    crash->place = place;
    crash->fault = crash->overflow = false;
    crash->frames_len = 0;
    atomic_store(&crash->state, CRASH_REPORTED);
    if (page == atomic_load(&saying.page) && socket_is_ours())
        (void)send(saying.socket, "c", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void crash_listen(struct crash_page *page, int socket)
{
    void *frame[1];
    (void)backtrace(frame, 1); /* loads its library */
    saying.pid = getpid();
    saying.socket = socket;
    if (socket >= 0)
        (void)fstat(socket, &saying.file);
    atomic_store(&saying.page, page);
    fatal_listen(crash_page_on_fatal);
}

void crash_listen_in_copy(struct crash_page *page)
{
    static struct crash_thread copied; /* the process runs this thread alone */
    copied = (struct crash_thread){.page = page, .stacks = running_stacks()};
    thread_pointer_set(&running, &copied);
    saying.pid = getpid();
    saying.socket = -1;
    saying.copy = true;
    atomic_store(&saying.page, page);
}

void crash_unlisten(void)
{
    atomic_store(&saying.page, NULL);
    fatal_unlisten(crash_page_on_fatal);
}

void crash_thread_begin(const struct crash_thread *thread)
{
    thread_pointer_set(&running, thread);
}

/* ---- reading another process's page ---- */

/* As it came from elsewhere it may be neither 0 nor 1. */
static bool read_bool(const bool *from)
{
    uint8_t byte;
    memcpy(&byte, from, sizeof byte);
    return byte != 0;
}

void crash_take(const struct crash_page *page, struct crash *ret)
{
    memcpy((void *)ret, (const void *)&page->crash, sizeof *ret);
    ret->fault = read_bool(&ret->fault);
    ret->overflow = read_bool(&ret->overflow);
    if (atomic_load(&ret->state) != CRASH_BEING_REPORTED && atomic_load(&ret->state) != CRASH_REPORTED)
        atomic_store(&ret->state, CRASH_UNREPORTED);
    if ((int)ret->kind < CRASH_NONE || (int)ret->kind > CRASH_KILLED)
        ret->kind = CRASH_NONE;
    if (ret->frames_len > CRASH_FRAMES_MAX)
        ret->frames_len = 0;
    if (ret->place < 0 || ret->place >= CRASH_PLACES_MAX)
        ret->place = -1;
}

bool crash_take_place(const struct crash_place *place, struct crash_place *ret)
{
    memcpy((void *)ret, (const void *)place, sizeof *ret);
    if (atomic_load(&ret->since_ms) == 0 || ret->instance_len > sizeof ret->instance ||
        memchr(ret->orchestration, '\0', sizeof ret->orchestration) == NULL)
        return false;
    if ((int)ret->kind < CODE_TURN || (int)ret->kind > CODE_DROP)
        ret->kind = CODE_TURN;
    return id_check((thole_slice){ret->instance, ret->instance_len}, NULL) == THOLE_OK &&
           name_check(thole_slice_from(ret->orchestration), "orchestration", NULL) == THOLE_OK;
}

/* ---- as text ---- */

static const char *code_kind_name(enum code_kind kind)
{
    switch (kind) {
    case CODE_TURN: return "turn";
    case CODE_REPLAY: return "replay";
    case CODE_QUERY: return "query";
    case CODE_DROP: return "drop";
    }
    return "turn";
}

static bool same_object(const void *a, const void *b)
{
    Dl_info of_a, of_b;
    return dladdr(a, &of_a) != 0 && dladdr(b, &of_b) != 0 && of_a.dli_fbase == of_b.dli_fbase;
}

/* The innermost frame in the object of the orchestration: not in a library that it called, nor, after exit(),
 * in the handler of exit(). */
static const void *frame_to_show(const struct crash *crash, const struct crash_place *place)
{
    if (crash->frames_len == 0)
        return NULL;
    if (place == NULL || place->code == NULL)
        return crash->frames[0];
    const void *const code = (const void *)(uintptr_t)place->code;
    size_t at = 0;
    while (crash->kind == CRASH_EXIT && at < crash->frames_len && same_object(crash->frames[at], code))
        at++;
    while (at < crash->frames_len && !same_object(crash->frames[at], code))
        at++;
    return at < crash->frames_len ? crash->frames[at] : crash->frames[0];
}

static void crash_page_signal_text(const struct crash *crash, struct buf *to)
{
    const char *const name = sigabbrev_np(crash->number);
    if (name != NULL)
        buf_printf(to, "SIG%s", name);
    else
        buf_printf(to, "signal %d", crash->number);
    if (crash->fault && !crash->overflow)
        buf_printf(to, " at address 0x%" PRIx64, crash->address);
}

void crash_text(const struct crash *crash, const struct crash_place *place, struct buf *to)
{
    const void *const frame = frame_to_show(crash, place);
    if (crash->overflow)
        buf_printf(to, "stack overflow: %zu KiB, ", crash->stack_bytes / 1024);
    switch (crash->kind) {
    case CRASH_NONE: buf_text(to, "it ended for an unknown reason"); break;
    case CRASH_SIGNAL: crash_page_signal_text(crash, to); break;
    case CRASH_EXIT: buf_printf(to, "exit(%d) was called", crash->number); break;
    case CRASH_ENDLESS: buf_printf(to, "the turn did not end within %d ms", crash->number); break;
    case CRASH_CODE:
        buf_printf(to, "the process ended with code %d: _exit() was called", crash->number);
        break;
    case CRASH_KILLED:
        buf_text(to, "killed by ");
        crash_page_signal_text(crash, to);
        break;
    }
    if (frame == NULL)
        return;
    buf_text(to, crash->kind == CRASH_ENDLESS ? ": at " : " in ");
    call_site_text(frame, to);
}

void crash_report_text(const struct crash *crash, const struct crash_place *place, struct buf *to)
{
    crash_text(crash, place, to);
    buf_printf(to, ", in a %s of orchestration %s, at event %llu", code_kind_name(place->kind),
               place->orchestration, (unsigned long long)place->event);
}

/* ---- build ids ---- */

static void note_text(const uint8_t *at, size_t len, char ret[BUILD_ID_BYTES])
{
    while (len >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        memcpy(&note, at, sizeof note);
        at += sizeof note;
        len -= sizeof note;
        size_t const name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
        size_t const desc = ((size_t)note.n_descsz + 3) & ~(size_t)3;
        if (name > len || desc > len - name)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(at, "GNU", 4) == 0)
            for (size_t i = 0; i < note.n_descsz && 2 * i + 2 < BUILD_ID_BYTES; i++)
                (void)snprintf(ret + 2 * i, 3, "%02x", at[name + i]);
        at += name + desc;
        len -= name + desc;
    }
}

/* The first page of a loaded object has the address of its notes. */
const char *build_id(const void *address, char ret[BUILD_ID_BYTES])
{
    Dl_info info;
    (void)snprintf(ret, BUILD_ID_BYTES, "0");
    if (address == NULL || dladdr(address, &info) == 0 || info.dli_fbase == NULL)
        return ret;
    const uint8_t *const base = info.dli_fbase;
    const Elf64_Ehdr *const elf = info.dli_fbase;
    const Elf64_Phdr *const parts = (const Elf64_Phdr *)(base + elf->e_phoff);
    uintptr_t const from = elf->e_type == ET_DYN ? (uintptr_t)base : 0;
    for (size_t i = 0; i < elf->e_phnum; i++)
        if (parts[i].p_type == PT_NOTE)
            note_text((const uint8_t *)(from + parts[i].p_vaddr), parts[i].p_memsz, ret);
    return ret;
}
