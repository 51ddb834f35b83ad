/* The hash of a record as docs/audit.md says it, written from the page: it shares nothing with the core's. */
#include "checks.h"
#include <openssl/evp.h>
#include <string.h>

enum level { RECORD, TURN, EVENT, BODY };
struct salts {
    uint64_t fields[8];
    const uint8_t *salt[8], *payload[8];
    size_t payload_len[8], n;
};
struct span {
    const uint8_t *at, *end;
};
struct piece {
    struct span tag, whole, value; /* value: after the length, of type 2 */
    uint64_t number, type, as_number;
};

static uint64_t varint(struct span *from)
{
    uint64_t n = 0;
    for (unsigned shift = 0; from->at < from->end; shift += 7) {
        n |= (uint64_t)(*from->at & 127) << shift;
        if (*from->at++ < 128)
            break;
    }
    return n;
}

static struct piece next(struct span *from)
{
    struct piece piece = {.tag.at = from->at, .whole.at = from->at};
    uint64_t const tag = varint(from);
    piece.tag.end = from->at;
    piece.number = tag / 8;
    piece.type = tag % 8;
    piece.as_number = piece.type == 5 ? 4 : piece.type == 1 ? 8 : varint(from);
    piece.value.at = from->at;
    if (piece.type != 0)
        from->at += piece.as_number;
    piece.value.end = piece.whole.end = from->at;
    return piece;
}

static void add(EVP_MD_CTX *to, const void *bytes, size_t len)
{
    EVP_DigestUpdate(to, bytes, len);
}

static void read_salts(struct span event, struct salts *salts)
{
    struct span body = {0};
    salts->n = 0;
    while (event.at < event.end) {
        struct piece const piece = next(&event);
        if (piece.number >= 3 && piece.number <= 999)
            body = piece.value;
        struct span note = piece.value;
        if (piece.number == 1002) {
            salts->payload_len[salts->n] = 0;
            salts->fields[salts->n] = next(&note).as_number;
            salts->salt[salts->n++] = next(&note).value.at;
        }
    }
    while (body.at < body.end) {
        struct piece const piece = next(&body);
        for (size_t i = 0; i < salts->n; i++)
            if (salts->fields[i] == piece.number) {
                salts->payload[i] = piece.value.at;
                salts->payload_len[i] = (size_t)(piece.value.end - piece.value.at);
            }
    }
}

static void add_salted(EVP_MD_CTX *to, const struct salts *salts, size_t i)
{
    uint8_t hash[32], number[4] = {0, 0, 0, (uint8_t)salts->fields[i]};
    EVP_MD_CTX *const own = EVP_MD_CTX_new();
    EVP_DigestInit_ex(own, EVP_sha256(), NULL);
    add(own, "thole.payload.v1", 17);
    add(own, salts->salt[i], 16);
    if (salts->payload_len[i] > 0)
        add(own, salts->payload[i], salts->payload_len[i]);
    EVP_DigestFinal_ex(own, hash, NULL);
    EVP_MD_CTX_free(own);
    add(to, number, 4);
    add(to, hash, 32);
}

static bool is_cut(const struct salts *salts, uint64_t number)
{
    bool cut = false;
    for (size_t i = 0; i < salts->n; i++)
        cut |= salts->fields[i] == number;
    return cut;
}

static void outline(EVP_MD_CTX *to, enum level level, struct span bytes, struct salts *salts)
{
    if (level == EVENT)
        read_salts(bytes, salts);
    for (size_t note = 0; bytes.at < bytes.end;) {
        struct piece const piece = next(&bytes);
        bool const opens = (level == RECORD && piece.number == 7) || (level == TURN && piece.number == 8) ||
                           (level == EVENT && piece.number >= 3 && piece.number <= 999);
        bool const salted = level == EVENT && piece.number == 1002;
        if (level == BODY && is_cut(salts, piece.number))
            continue;
        struct span const as_it_is = opens || salted ? piece.tag : piece.whole;
        add(to, as_it_is.at, (size_t)(as_it_is.end - as_it_is.at));
        if (salted)
            add_salted(to, salts, note++);
        if (!opens)
            continue;
        outline(to, level + 1, piece.value, salts);
        add(to, "", 1);
    }
}

struct record_hash model_hash_of(uint32_t partition, thole_slice record, bool salted)
{
    char head[] = "thole.record.v1\0sim\0\0\0\0";
    uint8_t const last = (uint8_t)partition;
    struct record_hash hash = {{0}};
    struct salts salts = {.n = 0};
    EVP_MD_CTX *const context = EVP_MD_CTX_new();
    head[14] = salted ? '2' : '1';
    EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    add(context, head, sizeof head - 1);
    add(context, &last, 1);
    if (salted)
        outline(context, RECORD, (struct span){record.ptr, record.ptr + record.len}, &salts);
    else
        add(context, record.ptr, record.len);
    EVP_DigestFinal_ex(context, hash.bytes, NULL);
    EVP_MD_CTX_free(context);
    return hash;
}
