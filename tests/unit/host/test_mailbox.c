/* The queue between threads: order, bounds, deadlines, closing. */
#include "clock.h"
#include "mailbox.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include <poll.h>
#include <time.h>

enum { SENDERS = 4, EACH = 20000, ROOM = 16 };

struct letter {
    struct mail mail;
    size_t sender, number;
};
struct sender {
    struct mailbox *mb;
    size_t number;
    bool held_back;
    pthread_t thread;
    struct letter letters[EACH];
};
static struct sender senders[SENDERS];

static void *send_all(void *arg)
{
    struct sender *const s = arg;
    for (size_t i = 0; i < EACH; i++) {
        s->letters[i] = (struct letter){.sender = s->number, .number = i};
        if (!s->held_back)
            mailbox_push(s->mb, &s->letters[i].mail);
        else if (!mailbox_put(s->mb, &s->letters[i].mail, ROOM))
            return NULL;
    }
    return NULL;
}

static void start_senders(struct mailbox *mb, bool held_back)
{
    for (size_t i = 0; i < SENDERS; i++) {
        senders[i].mb = mb;
        senders[i].number = i;
        senders[i].held_back = held_back;
        CU_ASSERT_EQUAL_FATAL(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
    }
}

static void join_senders(void)
{
    for (size_t i = 0; i < SENDERS; i++)
        (void)pthread_join(senders[i].thread, NULL);
}

/* Takes all there will ever be, and checks that each sender's letters come in its order. */
static size_t receive_all(struct mailbox *mb, size_t most)
{
    size_t next[SENDERS] = {0}, n = 0, wrong = 0;
    while (n < (size_t)SENDERS * EACH) {
        size_t batch = 0;
        (void)mailbox_wait(mb, UINT64_MAX);
        for (struct mail *mail = mailbox_take_all(mb); mail != NULL; mail = mail->next, batch++) {
            const struct letter *const letter = (const struct letter *)mail;
            wrong += letter->number != next[letter->sender]++;
        }
        wrong += batch > most;
        n += batch;
    }
    return wrong;
}

static void test_order(void)
{
    struct mailbox mb;
    mailbox_init(&mb);
    start_senders(&mb, false);
    CU_ASSERT_EQUAL(receive_all(&mb, SIZE_MAX), 0);
    join_senders();
    CU_ASSERT_PTR_NULL(mailbox_take_all(&mb));
    mailbox_release(&mb);
}

static void test_held_back(void)
{
    struct mailbox mb;
    mailbox_init(&mb);
    start_senders(&mb, true);
    CU_ASSERT_EQUAL(receive_all(&mb, ROOM), 0);
    join_senders();
    mailbox_release(&mb);
}

static void test_bounds(void)
{
    struct mailbox mb;
    struct letter a, b, c;
    mailbox_init(&mb);
    CU_ASSERT_TRUE(mailbox_offer(&mb, &a.mail, 1));
    CU_ASSERT_FALSE(mailbox_offer(&mb, &b.mail, 1));
    mailbox_push(&mb, &c.mail);
    CU_ASSERT_EQUAL(mailbox_len(&mb), 2);
    struct mail *const first = mailbox_take_all(&mb);
    CU_ASSERT_PTR_EQUAL(first, &a.mail);
    CU_ASSERT_PTR_EQUAL(first->next, &c.mail);
    CU_ASSERT_PTR_NULL(c.mail.next);
    CU_ASSERT_TRUE(mailbox_offer(&mb, &b.mail, 1));
    CU_ASSERT_PTR_EQUAL(mailbox_take_all(&mb), &b.mail);
    mailbox_release(&mb);
}

static void test_deadline(void)
{
    struct mailbox mb;
    struct letter a;
    mailbox_init(&mb);
    uint64_t const deadline_ms = clock_monotonic_ms() + 30;
    CU_ASSERT_FALSE(mailbox_wait(&mb, deadline_ms));
    CU_ASSERT_TRUE(clock_monotonic_ms() >= deadline_ms);
    CU_ASSERT_FALSE(mailbox_wait(&mb, 0)); /* over already */
    mailbox_push(&mb, &a.mail);
    CU_ASSERT_TRUE(mailbox_wait(&mb, 0)); /* but there is something */
    CU_ASSERT_TRUE(mailbox_wait(&mb, UINT64_MAX));
    (void)mailbox_take_all(&mb);
    mailbox_release(&mb);
}

static void test_close(void)
{
    struct mailbox mb;
    struct letter a, b;
    mailbox_init(&mb);
    start_senders(&mb, true); /* they fill it and wait */
    while (mailbox_len(&mb) < ROOM)
        (void)mailbox_wait(&mb, clock_monotonic_ms() + 1);
    mailbox_close(&mb);
    mailbox_close(&mb);
    join_senders();
    CU_ASSERT_TRUE(mailbox_is_closed(&mb));
    CU_ASSERT_EQUAL(mailbox_len(&mb), ROOM);
    CU_ASSERT_TRUE(mailbox_wait(&mb, UINT64_MAX)); /* nodes inside may still be taken */
    (void)mailbox_take_all(&mb);
    CU_ASSERT_FALSE(mailbox_wait(&mb, UINT64_MAX));
    CU_ASSERT_FALSE(mailbox_offer(&mb, &a.mail, ROOM));
    mailbox_push(&mb, &b.mail); /* an answer is never refused */
    CU_ASSERT_PTR_EQUAL(mailbox_take_all(&mb), &b.mail);
    mailbox_release(&mb);
}

static uint64_t cpu_ms(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000 + (uint64_t)used.tv_nsec / 1000000;
}

/* Waiting is sleeping, until the time that is meant. */
static void test_waiting_costs_nothing(void)
{
    enum { WAIT_MS = 300 };
    struct mailbox mb;
    mailbox_init(&mb);
    uint64_t const cpu = cpu_ms(), began = clock_monotonic_ms();
    CU_ASSERT_FALSE(mailbox_wait(&mb, began + WAIT_MS));
    CU_ASSERT_TRUE(clock_monotonic_ms() - began >= WAIT_MS);
    CU_ASSERT_TRUE(cpu_ms() - cpu < WAIT_MS / 10);
    mailbox_release(&mb);
}

static bool is_readable(int fd)
{
    struct pollfd of = {.fd = fd, .events = POLLIN};
    return poll(&of, 1, 0) == 1;
}

/* An owner that waits for a descriptor: woken once for all that comes while it rests, and not for its own. */
static void test_wakeup(void)
{
    struct mailbox mb;
    struct letter a, b, c;
    mailbox_init(&mb);
    CU_ASSERT_EQUAL(mailbox_wakeup(&mb), -1);
    CU_ASSERT_EQUAL_FATAL(mailbox_open_wakeup(&mb, NULL), THOLE_OK);
    CU_ASSERT_TRUE(mailbox_rest(&mb));
    CU_ASSERT_FALSE(is_readable(mailbox_wakeup(&mb)));
    mailbox_push(&mb, &a.mail);
    mailbox_push(&mb, &b.mail);
    CU_ASSERT_TRUE(is_readable(mailbox_wakeup(&mb)));
    mailbox_awake(&mb);
    CU_ASSERT_FALSE(is_readable(mailbox_wakeup(&mb)));
    mailbox_push(&mb, &c.mail);
    CU_ASSERT_FALSE(is_readable(mailbox_wakeup(&mb)));
    CU_ASSERT_FALSE(mailbox_rest(&mb)); /* something waits */
    mailbox_awake(&mb);
    CU_ASSERT_PTR_EQUAL(mailbox_take_all(&mb), &a.mail);
    CU_ASSERT_TRUE(mailbox_rest(&mb));
    mailbox_close(&mb);
    CU_ASSERT_TRUE(is_readable(mailbox_wakeup(&mb)));
    mailbox_awake(&mb);
    CU_ASSERT_FALSE(mailbox_rest(&mb)); /* closed */
    mailbox_awake(&mb);
    mailbox_release(&mb);
}

static const struct thole_test tests[] = {
    {"from many threads, in order", test_order},
    {"senders are held back", test_held_back},
    {"offers are refused", test_bounds},
    {"deadlines", test_deadline},
    {"closing", test_close},
    {"waiting costs nothing", test_waiting_costs_nothing},
    {"an owner that waits for a descriptor", test_wakeup},
};
THOLE_TEST_MAIN("mailbox", tests)
