/*
 * A test program that dies in an orchestration's code dies as it would without the kit, but first writes in
 * which orchestration, and of what. First what is certain, then where in the source, which calls what a
 * signal handler should not call; an alarm ends it if that hangs.
 */
#include "kit_crash.h"
#include "coro.h"
#include "fatal_signals.h"
#include "thread_pointer.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 512, LOOK_UP_S = 10 };

static struct thread_pointer watched; /* to the struct crash_page of the kit whose code the thread runs */

static void write_line(const char *line, int len)
{
    if (len > 0)
        (void)!write(STDERR_FILENO, line, len < LINE_BYTES ? (size_t)len : LINE_BYTES - 1);
}

static const char *kit_crash_describe(const struct crash *crash, char ret[64])
{
    if (crash->overflow)
        (void)snprintf(ret, 64, "stack overflow");
    else if (crash->kind == CRASH_EXIT)
        (void)snprintf(ret, 64, "exit(%d) was called", crash->number);
    else
        (void)snprintf(ret, 64, "SIG%s",
                       sigabbrev_np(crash->number) == NULL ? "?" : sigabbrev_np(crash->number));
    return ret;
}

static void kit_crash_on_fatal(const struct fatal *fatal)
{
    char line[LINE_BYTES], text[64], size[32] = "";
    const struct crash_page *const page = thread_pointer_get(&watched);
    (void)fatal;
    if (page == NULL || atomic_load(&page->crash.state) != CRASH_REPORTED || page->crash.place < 0)
        return;
    const struct crash_place *const place = &page->places[0];
    if (page->crash.overflow)
        (void)snprintf(size, sizeof size, ": %zu KiB", page->crash.stack_bytes / 1024);
    write_line(line, snprintf(line, sizeof line, "thole test kit: %s in orchestration %s%s; instance %.*s\n",
                              kit_crash_describe(&page->crash, text), place->orchestration, size,
                              (int)place->instance_len, (const char *)place->instance));
    struct buf report;
    (void)alarm(LOOK_UP_S);
    buf_init(&report, LINE_BYTES);
    crash_report_text(&page->crash, place, &report);
    if (buf_status(&report) == THOLE_OK)
        write_line(line, snprintf(line, sizeof line, "thole test kit: %s\n", buf_cstr(&report)));
    (void)alarm(0);
}

static void kit_crash_begins(void *arg, const struct code_run *run)
{
    struct kit_crash *const crash = arg;
    thread_pointer_set(&watched, crash->page);
    crash_listen(crash->page, -1); /* a test may have forked, or use several kits */
    crash_thread_begin(&crash->thread);
    crash_begins(&crash->page->places[0], run);
}

static void kit_crash_ended(void *arg)
{
    const struct kit_crash *const crash = arg;
    crash_ended(&crash->page->places[0]);
    crash_thread_begin(NULL);
    thread_pointer_set(&watched, NULL);
}

bool kit_crash_watch(struct kit_crash *crash, const struct stack_pool *stacks)
{
    crash->page = crash_page_create();
    if (crash->page == NULL)
        return false;
    crash->page->places_len = 1;
    crash->thread = (struct crash_thread){.page = crash->page, .stacks = stacks};
    crash->watch = (struct code_watch){.begins = kit_crash_begins, .ended = kit_crash_ended, .arg = crash};
    crash_listen(crash->page, -1); /* before the one that reads what it says */
    fatal_listen(kit_crash_on_fatal);
    (void)fatal_thread_begin(); /* the thread's for ever: other kits use it, too */
    return true;
}

void kit_crash_release(struct kit_crash *crash)
{
    if (crash->page == NULL)
        return;
    crash_unlisten();
    crash_page_destroy(crash->page);
}
