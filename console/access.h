/* Access control: decisions about a request from its headers and the address that it comes from. Pure. */
#ifndef THOLE_ACCESS_H
#define THOLE_ACCESS_H
#include "console.h"

enum { ACCESS_SECRET_BYTES = 33, ACCESS_TEXT_BYTES = 256 };

struct access_rules {
    const struct console_options *options;
    bool loopback;                    /* the address is of this machine alone */
    char csrf[ACCESS_SECRET_BYTES];   /* secret of this console's pages; made by each process */
    char cookie[ACCESS_SECRET_BYTES]; /* secret of browsers that have shown the token */
};

/* Header values; NULL: there is none. */
struct access_facts {
    const struct sockaddr *peer;
    const char *host, *origin, *fetch_site, *authorization, *csrf, *identity, *cookie;
};

struct access_refusal {
    unsigned code; /* of HTTP; 0: none */
    const char *name;
    char text[ACCESS_TEXT_BYTES];
};

/* THOLE_INVALID: options that contradict each other. Fills *ret, secrets too. */
THOLE_NODISCARD thole_status access_rules_make(const struct console_options *options,
                                               struct access_rules *ret, thole_error *reterr);
/* Whether it may read; each refuses with a sentence. */
bool access_read(const struct access_rules *rules, const struct access_facts *facts,
                 struct access_refusal *ret);
/* Like access_read(), for the stream, to which a browser can only send a cookie. */
bool access_stream(const struct access_rules *rules, const struct access_facts *facts,
                   struct access_refusal *ret);
/* Whether such a user may act at all: for the page, which shows why not. */
bool access_act(const struct access_rules *rules, const struct access_facts *facts,
                struct access_refusal *ret);
/* Whether this request may act: comes from a page of this console, and access_act(). */
bool access_action(const struct access_rules *rules, const struct access_facts *facts,
                   struct access_refusal *ret);
/* Whether the request has shown the token. */
bool access_has_token(const struct access_rules *rules, const struct access_facts *facts);
#endif
