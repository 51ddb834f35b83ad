/*
 * The folder of `thole dev`: a temporary one, or one that is kept with its password and ports, so that
 * servers that are started again are found where they were. One `thole dev` at a time uses it.
 *
 *   nats/ postgres/   the servers' data and logs
 *   env               the settings, to be sourced by a shell
 *   password ports    what the next start takes over: the password of both servers, and their ports
 *   lock              held as long as it is in use
 */
#ifndef THOLE_DEV_FOLDER_H
#define THOLE_DEV_FOLDER_H
#include "servers.h"

enum {
    DEV_PATH_BYTES = SERVER_PATH_BYTES + 32,
    DEV_PASSWORD_BYTES = 25, /* 24 hex digits */
};

struct dev_folder {
    char path[SERVER_PATH_BYTES]; /* "": not prepared yet */
    bool temporary, made;         /* made: it was not there before */
    int lock;                     /* -1: not held */
    char password[DEV_PASSWORD_BYTES];
    uint16_t nats_port, postgres_port; /* of the last time; 0: none */
};

/* Makes and locks the folder `wish`, or a temporary one for NULL. THOLE_INVALID (path), THOLE_UNAVAILABLE (in
 * use, no random bytes). */
THOLE_NODISCARD thole_status dev_folder_prepare(struct dev_folder *folder, const char *wish,
                                                thole_error *reterr);
/* Writes env and ports, once both servers are ready. */
THOLE_NODISCARD thole_status dev_folder_note(const struct dev_folder *folder, const struct server *nats,
                                             const struct server *postgres, thole_error *reterr);
/* Unlocks it. Removes it when it is temporary, or was made for servers that were never ready. */
void dev_folder_end(struct dev_folder *folder, bool served);

#endif
