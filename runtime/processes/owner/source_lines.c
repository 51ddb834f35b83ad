#include "source_lines.h"
#include "call_site.h"
#include "mailbox.h"
#include "memory.h"
#include "query_reply.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KNOWN_MAX = 64, TEXT_BYTES = 1024 };

struct source_lines {
    struct connection *connection;
    struct mailbox questions;
    pthread_t thread;
    /* The thread's: */
    struct known {
        const void *address;
        char text[TEXT_BYTES];
    } known[KNOWN_MAX];
    size_t known_next; /* the next to be replaced */
};

struct source_question {
    struct mail mail;
    const void *address;
    bool json;
    char reply[];
};

static const char *source_lines_text_of(struct source_lines *lines, const void *address)
{
    struct buf text;
    for (size_t i = 0; i < KNOWN_MAX; i++)
        if (lines->known[i].address == address)
            return lines->known[i].text;
    struct known *const known = &lines->known[lines->known_next++ % KNOWN_MAX];
    buf_init(&text, TEXT_BYTES - 1);
    call_site_text(address, &text);
    (void)snprintf(known->text, sizeof known->text, "%s", buf_cstr(&text));
    known->address = address;
    buf_release(&text);
    return known->text;
}

static void *source_lines_main(void *arg)
{
    struct source_lines *const lines = arg;
    while (mailbox_wait(&lines->questions, UINT64_MAX))
        for (struct mail *at = mailbox_take_all(&lines->questions), *next; at != NULL; at = next) {
            struct source_question *const question = (struct source_question *)(void *)at;
            next = at->next;
            if (!mailbox_is_closed(&lines->questions))
                query_reply_text(lines->connection, question->reply, question->json, THOLE_OK,
                                 source_lines_text_of(lines, question->address));
            free(question);
        }
    return NULL;
}

thole_status source_lines_start(struct connection *connection, struct source_lines **ret, thole_error *reterr)
{
    struct source_lines *const lines = memory_new(sizeof *lines);
    lines->connection = connection;
    mailbox_init(&lines->questions);
    int const code = pthread_create(&lines->thread, NULL, source_lines_main, lines);
    if (code == 0) {
        *ret = lines;
        return THOLE_OK;
    }
    mailbox_release(&lines->questions);
    free(lines);
    return thole_fail(reterr, THOLE_NOMEM, "no thread for source lines: %s", strerror(code));
}

bool source_lines_ask(struct source_lines *lines, const char *reply, bool json, const void *address)
{
    size_t const len = strlen(reply);
    struct source_question *const question = memory_new(sizeof *question + len + 1);
    memcpy(question->reply, reply, len);
    question->json = json;
    question->address = address;
    if (mailbox_offer(&lines->questions, &question->mail, SOURCE_QUESTIONS_MAX))
        return true;
    free(question);
    return false;
}

void source_lines_stop(struct source_lines *lines)
{
    if (lines == NULL)
        return;
    mailbox_close(&lines->questions);
    (void)pthread_join(lines->thread, NULL);
    mailbox_release(&lines->questions);
    free(lines);
}
