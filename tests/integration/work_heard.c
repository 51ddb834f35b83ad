#include "work_heard.h"
#include "stack.h"
#include <nats/nats.h>
#include <pthread.h>
#include <stdlib.h>

enum { SEQUENCES_MAX = 8192, STEP_MS = 2, WAIT_MS = 20000 };

#define STREAM "THOLE_default_WORK"

static struct {
    pthread_mutex_t lock;
    natsConnection *nats;
    natsSubscription *subscription;
    struct work_heard of[SEQUENCES_MAX];
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* $JS.ACK.STREAM.CONSUMER.DELIVERED.SEQUENCE.…, in newer servers with a domain and an account after ACK. */
static bool read_subject(const char *subject, uint64_t *ret_deliveries, uint64_t *ret_sequence)
{
    unsigned long long deliveries = 0, sequence = 0;
    const char *const at = strstr(subject, "." STREAM ".");
    if (at == NULL || sscanf(at, "." STREAM ".%*[^.].%llu.%llu.", &deliveries, &sequence) != 2)
        return false;
    *ret_deliveries = deliveries;
    *ret_sequence = sequence;
    return sequence < SEQUENCES_MAX;
}

static void on_word(natsConnection *nats, natsSubscription *subscription, natsMsg *message, void *arg)
{
    uint64_t deliveries, sequence;
    const char *const word = natsMsg_GetData(message);
    int const len = natsMsg_GetDataLength(message);
    (void)nats, (void)subscription, (void)arg;
    if (read_subject(natsMsg_GetSubject(message), &deliveries, &sequence) && len >= 4) {
        pthread_mutex_lock(&heard.lock);
        struct work_heard *const of = &heard.of[sequence];
        of->acks += strncmp(word, "+ACK", 4) == 0;
        of->naks += len == 4 && strncmp(word, "-NAK", 4) == 0;
        of->delayed += len > 4 && strncmp(word, "-NAK", 4) == 0;
        of->deliveries = deliveries > of->deliveries ? deliveries : of->deliveries;
        pthread_mutex_unlock(&heard.lock);
    }
    natsMsg_Destroy(message);
}

void work_heard_open(const char *nats_url)
{
    natsStatus status = natsConnection_ConnectTo(&heard.nats, nats_url);
    if (status == NATS_OK)
        status = natsConnection_Subscribe(&heard.subscription, heard.nats, "$JS.ACK.>", on_word, NULL);
    if (status == NATS_OK)
        status = natsConnection_Flush(heard.nats); /* has arrived */
    if (status == NATS_OK)
        return;
    fprintf(stderr, "words about messages cannot be heard: %s\n", natsStatus_GetText(status));
    exit(1);
}

void work_heard_close(void)
{
    natsSubscription_Destroy(heard.subscription);
    natsConnection_Destroy(heard.nats);
}

struct work_heard work_heard_of(uint64_t sequence)
{
    pthread_mutex_lock(&heard.lock);
    struct work_heard const of = sequence < SEQUENCES_MAX ? heard.of[sequence] : (struct work_heard){0};
    pthread_mutex_unlock(&heard.lock);
    return of;
}

void work_heard_check_ack(const char *id, uint64_t sequence)
{
    struct work_heard of = {0};
    for (int i = 0; i < WAIT_MS / STEP_MS && of.acks + of.naks + of.delayed == 0; i++) {
        pause_ms(STEP_MS);
        of = work_heard_of(sequence);
    }
    bool const good = of.acks == 1 && of.naks + of.delayed == 0 && of.deliveries == 1;
    if (!good)
        fprintf(stderr, "\n  [%s] message %llu: %u +ACK, %u -NAK, %u with a delay, delivered %llu times\n",
                id, (unsigned long long)sequence, of.acks, of.naks, of.delayed,
                (unsigned long long)of.deliveries);
    CU_ASSERT_TRUE_FATAL(good);
}

/* The server looks at the sequence alone. */
void work_heard_redeliver(const char *queue, uint64_t sequence)
{
    char subject[256];
    snprintf(subject, sizeof subject, "$JS.ACK." STREAM ".q_%s.1.%llu.1.1.0", queue,
             (unsigned long long)sequence);
    CU_ASSERT_EQUAL(natsConnection_PublishString(heard.nats, subject, "-NAK"), NATS_OK);
    CU_ASSERT_EQUAL(natsConnection_Flush(heard.nats), NATS_OK);
}

uint64_t work_heard_ack_wait_ms(const char *queue)
{
    char consumer[96];
    jsCtx *js = NULL;
    jsConsumerInfo *info = NULL;
    uint64_t wait_ms = 0;
    snprintf(consumer, sizeof consumer, "q_%s", queue);
    if (natsConnection_JetStream(&js, heard.nats, NULL) == NATS_OK &&
        js_GetConsumerInfo(&info, js, STREAM, consumer, NULL, NULL) == NATS_OK)
        wait_ms = (uint64_t)info->Config->AckWait / 1000000;
    jsConsumerInfo_Destroy(info);
    jsCtx_Destroy(js);
    return wait_ms;
}
