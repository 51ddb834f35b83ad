/*
 * Signed notes and checkpoints, as c2sp.org/signed-note and c2sp.org/tlog-checkpoint have them: a text, an
 * empty line, and a line for each signature, "— NAME BASE64", of key id and Ed25519 signature. Keys are texts
 * too, those of Go's golang.org/x/mod/sumdb/note:
 *
 *   NAME+ID+BASE64                of the public key
 *   PRIVATE+KEY+NAME+ID+BASE64    of the private one
 *
 * Pure.
 */
#ifndef THOLE_NOTE_H
#define THOLE_NOTE_H
#include "buf.h"
#include "merkle.h"

enum {
    NOTE_NAME_BYTES_MAX = 128,
    NOTE_KEY_BYTES = 32,
    NOTE_TEXT_BYTES_MAX = 64 * 1024,
    NOTE_SIGNATURES_MAX = 64,
};
struct note_key {
    char name[NOTE_NAME_BYTES_MAX + 1];
    uint32_t id;
    uint8_t public_bytes[NOTE_KEY_BYTES];
    uint8_t secret[NOTE_KEY_BYTES]; /* where `signs` */
    bool signs;
};
/* THOLE_INVALID: no key, or one whose id is not its own. The text never has the key. */
THOLE_NODISCARD thole_status note_key_parse(thole_slice text, struct note_key *ret, thole_error *reterr);
/* The pair of that seed, which must be random. THOLE_INVALID: the name. */
THOLE_NODISCARD thole_status note_key_make(thole_slice name, const uint8_t seed[NOTE_KEY_BYTES],
                                           struct note_key *ret, thole_error *reterr);
void note_key_text(const struct note_key *key, bool secret, struct buf *to); /* appends */
void note_key_forget(struct note_key *key);                                  /* overwrites it */

/* Appends the line of a signature to a note: @p note is the text, ending in a line end, or the text with
 * signatures. */
THOLE_NODISCARD thole_status note_sign(struct buf *note, const struct note_key *key, thole_error *reterr);
/* *ret_text: what is signed, borrowed. THOLE_CORRUPT: it is no note; THOLE_NOT_FOUND: the key has not signed
 * it; THOLE_DENIED: a signature of the key that is wrong. Other keys' signatures are ignored. */
THOLE_NODISCARD thole_status note_verify(thole_slice note, const struct note_key *key, thole_slice *ret_text,
                                         thole_error *reterr);

/* Base64 of a known length, at most NOTE_BASE64_BYTES_MAX bytes of it; taken only as it would be put. */
enum { NOTE_BASE64_BYTES_MAX = 96 };
void note_put_base64(struct buf *to, const uint8_t *bytes, size_t len);
bool note_take_base64(thole_slice text, uint8_t *to, size_t len);

struct checkpoint {
    thole_slice origin; /* which log: one line */
    uint64_t size;      /* records */
    struct merkle_hash root;
    thole_slice extension; /* further lines; empty: none */
};
void checkpoint_text(const struct checkpoint *checkpoint, struct buf *to); /* appends */
/* Of a note's text; slices are borrowed. THOLE_CORRUPT. */
THOLE_NODISCARD thole_status checkpoint_parse(thole_slice text, struct checkpoint *ret, thole_error *reterr);
#endif
