/*
 * Two accounts of NATS: one has the streams and the engines, the other one the users who are not trusted with
 * them. These functions print all subjects that pass between the two. A reply is delivered in the account
 * that asked, so no request makes the server publish where the streams are.
 */
#ifndef THOLE_NATS_ACCOUNTS_H
#define THOLE_NATS_ACCOUNTS_H
#include "json.h"
#include "nats_permissions.h"

/* THOLE_INVALID with a sentence: no name of an account, a role that belongs into the account of the streams,
 * or, of what is imported, the prefix that the account's own JetStream has. */
THOLE_NODISCARD thole_status accounts_check(const struct permissions *permissions, const char *account,
                                            bool imports, thole_error *reterr);
/* Of the account of the streams, for nats-server's configuration. @p account: the one that may import, and
 * from which it imports what it asks of all workers, if some are there: of one account, since a subject can
 * be imported from one. */
void accounts_print_exports(const struct permissions *permissions, const char *account);
/* Of the other account; @p account: that of the streams. */
void accounts_print_imports(const struct permissions *permissions, const char *account);
/* The exports and imports as members of the claims of an account's JWT. */
void accounts_json_exports(const struct permissions *permissions, const char *account, struct json *json);
void accounts_json_imports(const struct permissions *permissions, const char *account, struct json *json);
#endif
