#include "note.h"
#include "memory.h"
#include "sha256.h"
#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

enum {
    KIND_ED25519 = 1, /* the byte in front of a key */
    ID_BYTES = 4,
    SIGNATURE_BYTES = 64,
    MEANT_BYTES = ID_BYTES + SIGNATURE_BYTES,
    TYPED_BYTES = 1 + NOTE_KEY_BYTES,
};
static const char private_prefix[] = "PRIVATE+KEY+", dash[] = "\xe2\x80\x94 "; /* an em dash */

/* ---- base64 of a known length ---- */

void note_put_base64(struct buf *to, const uint8_t *bytes, size_t len)
{
    uint8_t text[NOTE_BASE64_BYTES_MAX + 1];
    assert(len <= NOTE_BASE64_BYTES_MAX / 4 * 3);
    buf_append(to, text, (size_t)EVP_EncodeBlock(text, bytes, (int)len));
    OPENSSL_cleanse(text, sizeof text);
}

/* Only the encoding that note_put_base64() would have made. */
bool note_take_base64(thole_slice text, uint8_t *to, size_t len)
{
    uint8_t bytes[NOTE_BASE64_BYTES_MAX], again[NOTE_BASE64_BYTES_MAX + 1];
    size_t const encoded = (len + 2) / 3 * 4;
    bool fits = text.len == encoded && encoded <= NOTE_BASE64_BYTES_MAX &&
                EVP_DecodeBlock(bytes, text.ptr, (int)text.len) >= 0;
    fits = fits && EVP_EncodeBlock(again, bytes, (int)len) == (int)encoded &&
           memcmp(again, text.ptr, encoded) == 0;
    if (fits)
        memcpy(to, bytes, len);
    OPENSSL_cleanse(bytes, sizeof bytes);
    OPENSSL_cleanse(again, sizeof again);
    return fits;
}

/* ---- keys ---- */

static bool name_fits(thole_slice name)
{
    bool fits = name.len > 0 && name.len <= NOTE_NAME_BYTES_MAX;
    for (size_t i = 0; fits && i < name.len; i++)
        fits = name.ptr[i] > ' ' && name.ptr[i] < 0x7f && name.ptr[i] != '+';
    return fits;
}

/* The first bytes of SHA-256 of the name, a line end, and the key with its kind. */
static uint32_t id_of(const struct note_key *key)
{
    uint8_t text[NOTE_NAME_BYTES_MAX + 1 + TYPED_BYTES], hash[MERKLE_HASH_BYTES];
    size_t const len = strlen(key->name);
    memcpy(text, key->name, len);
    text[len] = '\n';
    text[len + 1] = KIND_ED25519;
    memcpy(text + len + 2, key->public_bytes, NOTE_KEY_BYTES);
    sha256_of(&(thole_slice){text, len + 1 + TYPED_BYTES}, 1, hash);
    return (uint32_t)hash[0] << 24 | (uint32_t)hash[1] << 16 | (uint32_t)hash[2] << 8 | hash[3];
}

thole_status note_key_make(thole_slice name, const uint8_t seed[NOTE_KEY_BYTES], struct note_key *ret,
                           thole_error *reterr)
{
    size_t len = NOTE_KEY_BYTES;
    if (!name_fits(name))
        return thole_fail(reterr, THOLE_INVALID,
                          "the name of a key is 1 to %d printable ASCII characters without spaces and +",
                          NOTE_NAME_BYTES_MAX);
    *ret = (struct note_key){.signs = true};
    memcpy(ret->name, name.ptr, name.len);
    memcpy(ret->secret, seed, NOTE_KEY_BYTES);
    EVP_PKEY *pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, NOTE_KEY_BYTES);
    if (pair == NULL || EVP_PKEY_get_raw_public_key(pair, ret->public_bytes, &len) != 1)
        memory_give_up(1, NOTE_KEY_BYTES); /* libcrypto has no memory */
    EVP_PKEY_free(pair);
    ret->id = id_of(ret);
    return THOLE_OK;
}

/* Cuts what is in front of the next +. */
static thole_slice note_cut(thole_slice *rest)
{
    thole_slice part = *rest;
    const uint8_t *plus = rest->len == 0 ? NULL : memchr(rest->ptr, '+', rest->len);
    if (plus == NULL) {
        *rest = (thole_slice){0};
        return part;
    }
    part.len = (size_t)(plus - part.ptr);
    *rest = (thole_slice){plus + 1, rest->len - part.len - 1};
    return part;
}

static thole_status no_key(thole_error *reterr, const char *why)
{
    return thole_fail(reterr, THOLE_INVALID, "this is no key of thole audit keygen: %s", why);
}

thole_status note_key_parse(thole_slice text, struct note_key *ret, thole_error *reterr)
{
    size_t const prefix = strlen(private_prefix);
    bool const secret = text.len > prefix && memcmp(text.ptr, private_prefix, prefix) == 0;
    while (text.len > 0 && (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == '\r'))
        text.len--;
    thole_slice rest = secret ? (thole_slice){text.ptr + prefix, text.len - prefix} : text;
    thole_slice const name = note_cut(&rest), id = note_cut(&rest); /* base64 may have a + of its own */
    uint8_t typed[TYPED_BYTES];
    char digits[2 * ID_BYTES + 1];
    struct note_key key = {.signs = secret};
    if (!name_fits(name) || id.len != 2 * ID_BYTES)
        return no_key(reterr, "it is not NAME+ID+BASE64");
    if (!note_take_base64(rest, typed, sizeof typed) || typed[0] != KIND_ED25519)
        return no_key(reterr, "its last part is no Ed25519 key");
    if (secret)
        THOLE_TRY(note_key_make(name, typed + 1, &key, reterr));
    memcpy(key.name, name.ptr, name.len);
    if (!secret)
        memcpy(key.public_bytes, typed + 1, NOTE_KEY_BYTES);
    key.id = id_of(&key);
    OPENSSL_cleanse(typed, sizeof typed);
    (void)snprintf(digits, sizeof digits, "%08x", key.id);
    if (memcmp(digits, id.ptr, id.len) != 0)
        return no_key(reterr, "its id is not that of name and key");
    *ret = key;
    return THOLE_OK;
}

void note_key_text(const struct note_key *key, bool secret, struct buf *to)
{
    uint8_t typed[TYPED_BYTES] = {KIND_ED25519};
    assert(!secret || key->signs);
    memcpy(typed + 1, secret ? key->secret : key->public_bytes, NOTE_KEY_BYTES);
    buf_printf(to, "%s%s+%08x+", secret ? private_prefix : "", key->name, key->id);
    note_put_base64(to, typed, sizeof typed);
    OPENSSL_cleanse(typed, sizeof typed);
}

void note_key_forget(struct note_key *key)
{
    OPENSSL_cleanse(key, sizeof *key);
}

/* ---- notes ---- */

/* Where the signatures begin, after the empty line; 0: the note has none. */
static size_t signatures_at(thole_slice note)
{
    for (size_t at = note.len; at >= 2; at--)
        if (note.ptr[at - 1] == '\n' && note.ptr[at - 2] == '\n')
            return at;
    return 0;
}

thole_status note_sign(struct buf *note, const struct note_key *key, thole_error *reterr)
{
    uint8_t meant[MEANT_BYTES] = {(uint8_t)(key->id >> 24), (uint8_t)(key->id >> 16), (uint8_t)(key->id >> 8),
                                  (uint8_t)key->id};
    size_t len = SIGNATURE_BYTES;
    size_t const at = signatures_at(buf_bytes(note));
    if (!key->signs)
        return thole_fail(reterr, THOLE_INVALID, "%s is a public key: only the private one can sign",
                          key->name);
    if (note->len == 0 || note->ptr[note->len - 1] != '\n')
        return thole_fail(reterr, THOLE_INVALID, "a note ends in a line end");
    EVP_PKEY *pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key->secret, NOTE_KEY_BYTES);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (pair == NULL || context == NULL || EVP_DigestSignInit(context, NULL, NULL, NULL, pair) != 1 ||
        EVP_DigestSign(context, meant + ID_BYTES, &len, note->ptr, at == 0 ? note->len : at - 1) != 1)
        memory_give_up(1, sizeof meant); /* libcrypto has no memory */
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(pair);
    buf_printf(note, "%s%s%s ", at == 0 ? "\n" : "", dash, key->name);
    note_put_base64(note, meant, sizeof meant);
    buf_text(note, "\n");
    return buf_status(note);
}

/* The next line of signatures, without its end. False: no more lines, or the rest is no line. */
static bool next_line(thole_slice *rest, thole_slice *ret)
{
    const uint8_t *end = rest->len == 0 ? NULL : memchr(rest->ptr, '\n', rest->len);
    if (end == NULL)
        return false;
    *ret = (thole_slice){rest->ptr, (size_t)(end - rest->ptr)};
    rest->ptr = end + 1;
    rest->len -= ret->len + 1;
    return true;
}

/* "— NAME BASE64" of the key: true, and *ret is the signature. */
static bool note_is_of(thole_slice line, const struct note_key *key, uint8_t ret[SIGNATURE_BYTES])
{
    uint8_t meant[MEANT_BYTES];
    size_t const begin = strlen(dash), name = strlen(key->name);
    if (line.len < begin + name + 1 || memcmp(line.ptr, dash, begin) != 0 ||
        memcmp(line.ptr + begin, key->name, name) != 0 || line.ptr[begin + name] != ' ')
        return false;
    thole_slice const base64 = {line.ptr + begin + name + 1, line.len - begin - name - 1};
    uint32_t id = 0;
    if (!note_take_base64(base64, meant, sizeof meant))
        return false;
    for (size_t i = 0; i < ID_BYTES; i++)
        id = id << 8 | meant[i];
    memcpy(ret, meant + ID_BYTES, SIGNATURE_BYTES);
    return id == key->id;
}

static bool is_right(thole_slice text, const struct note_key *key, const uint8_t signature[SIGNATURE_BYTES])
{
    EVP_PKEY *public = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key->public_bytes, NOTE_KEY_BYTES);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (public == NULL || context == NULL || EVP_DigestVerifyInit(context, NULL, NULL, NULL, public) != 1)
        memory_give_up(1, NOTE_KEY_BYTES); /* libcrypto has no memory */
    bool const right = EVP_DigestVerify(context, signature, SIGNATURE_BYTES, text.ptr, text.len) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(public);
    return right;
}

thole_status note_verify(thole_slice note, const struct note_key *key, thole_slice *ret_text,
                         thole_error *reterr)
{
    size_t const at = note.len > NOTE_TEXT_BYTES_MAX ? 0 : signatures_at(note);
    if (at < 3 || note.ptr[note.len - 1] != '\n')
        return thole_fail(reterr, THOLE_CORRUPT, "it is no signed note");
    thole_slice const text = {note.ptr, at - 1};
    thole_slice rest = {note.ptr + at, note.len - at}, line;
    uint8_t signature[SIGNATURE_BYTES];
    for (size_t i = 0; i < NOTE_SIGNATURES_MAX && next_line(&rest, &line); i++) {
        if (!note_is_of(line, key, signature))
            continue;
        if (!is_right(text, key, signature))
            return thole_fail(reterr, THOLE_DENIED, "the signature of %s is not that of this text",
                              key->name);
        *ret_text = text;
        return THOLE_OK;
    }
    return thole_fail(reterr, THOLE_NOT_FOUND, "%s has not signed it", key->name);
}

/* ---- checkpoints ---- */

void checkpoint_text(const struct checkpoint *checkpoint, struct buf *to)
{
    buf_slice(to, checkpoint->origin);
    buf_printf(to, "\n%llu\n", (unsigned long long)checkpoint->size);
    note_put_base64(to, checkpoint->root.bytes, sizeof checkpoint->root.bytes);
    buf_text(to, "\n");
    buf_slice(to, checkpoint->extension);
}

static bool take_size(thole_slice digits, uint64_t *ret)
{
    uint64_t size = 0;
    bool fits = digits.len > 0 && digits.len <= 19 && (digits.len == 1 || digits.ptr[0] != '0');
    for (size_t i = 0; fits && i < digits.len; i++) {
        fits = digits.ptr[i] >= '0' && digits.ptr[i] <= '9';
        size = size * 10 + (uint64_t)(digits.ptr[i] - '0');
    }
    *ret = size;
    return fits;
}

thole_status checkpoint_parse(thole_slice text, struct checkpoint *ret, thole_error *reterr)
{
    thole_slice size, root;
    struct checkpoint checkpoint = {.size = 0};
    if (!next_line(&text, &checkpoint.origin) || checkpoint.origin.len == 0 || !next_line(&text, &size) ||
        !take_size(size, &checkpoint.size) || !next_line(&text, &root) ||
        !note_take_base64(root, checkpoint.root.bytes, sizeof checkpoint.root.bytes))
        return thole_fail(reterr, THOLE_CORRUPT, "it is no checkpoint");
    checkpoint.extension = text;
    *ret = checkpoint;
    return THOLE_OK;
}
