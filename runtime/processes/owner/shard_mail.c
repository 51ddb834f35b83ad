/* Mails: what the other threads of the engine role send to a shard. */
#include "engine.h"
#include "engine_clock.h"
#include "memory.h"
#include <assert.h>

void *shard_mail_create(enum shard_mail_kind kind, uint32_t p, size_t bytes)
{
    assert(bytes >= sizeof(struct shard_mail));
    struct shard_mail *mail = memory_new(bytes);
    mail->kind = kind;
    mail->p = p;
    return mail;
}

void shard_send(struct shard *shard, struct shard_mail *mail)
{
    mailbox_push(&shard->mailbox, &mail->node);
}

struct owned *shard_owned(struct shard *shard, uint32_t p)
{
    size_t const i = p / shard->engine->shards_len;
    assert(p % shard->engine->shards_len == shard->index && i < shard->owned_len);
    return &shard->owned[i];
}

void shard_input(struct owned *owned, const struct partition_in *in)
{
    owned->touched = true;
    /* Out of memory closes it: CLOSED follows. */
    (void)partition_input(owned->machine, in, engine_clock_ms(owned->clock));
}

void shard_cause(struct owned *owned, enum closed_cause cause)
{
    if (owned->cause == CLOSED_OTHER)
        owned->cause = cause;
}

void shard_step_down(struct owned *owned, const char *text)
{
    assert(text != NULL);
    shard_input(owned, &(struct partition_in){.kind = PARTITION_IN_STEP_DOWN,
                                              .generation = partition_generation(owned->machine),
                                              .step_down = {text}});
}
