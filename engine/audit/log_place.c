#include "log_place.h"

static const char begin[] = "thole.place.v1 ";

void log_place_text(const struct log_place *place, const struct merkle_tree *tree, struct buf *to)
{
    buf_printf(to, "%s%llu %llu %llu ", begin, (unsigned long long)place->sequence,
               (unsigned long long)place->epoch, (unsigned long long)place->n);
    note_put_base64(to, place->last.bytes, sizeof place->last.bytes);
    for (unsigned i = MERKLE_PEAKS_MAX; i-- > 0;)
        if ((tree->size >> i & 1) != 0) {
            buf_text(to, " ");
            note_put_base64(to, tree->peaks[i].bytes, sizeof tree->peaks[i].bytes);
        }
    buf_text(to, "\n");
}

/* Up to the next space or line end, which is taken too. */
static thole_slice next_word(thole_slice *rest)
{
    thole_slice word = {rest->ptr, 0};
    while (word.len < rest->len && rest->ptr[word.len] != ' ' && rest->ptr[word.len] != '\n')
        word.len++;
    size_t const taken = word.len < rest->len ? word.len + 1 : word.len;
    *rest = (thole_slice){rest->ptr + taken, rest->len - taken};
    return word;
}

static bool next_number(thole_slice *rest, uint64_t *ret)
{
    thole_slice const word = next_word(rest);
    uint64_t number = 0;
    bool fits = word.len > 0 && word.len <= 19;
    for (size_t i = 0; fits && i < word.len; i++) {
        fits = word.ptr[i] >= '0' && word.ptr[i] <= '9';
        number = number * 10 + (uint64_t)(word.ptr[i] - '0');
    }
    *ret = number;
    return fits;
}

bool log_place_parse(const struct checkpoint *checkpoint, struct log_place *ret, struct merkle_tree *ret_tree)
{
    thole_slice rest = checkpoint->extension;
    struct log_place place;
    struct merkle_tree tree = {.size = checkpoint->size};
    size_t const len = sizeof begin - 1;
    if (rest.len < len || !thole_slice_equal((thole_slice){rest.ptr, len}, THOLE_STR("thole.place.v1 ")))
        return false;
    rest = (thole_slice){rest.ptr + len, rest.len - len};
    bool fits = checkpoint->size > 0 && next_number(&rest, &place.sequence) &&
                next_number(&rest, &place.epoch) && next_number(&rest, &place.n) &&
                note_take_base64(next_word(&rest), place.last.bytes, sizeof place.last.bytes);
    for (unsigned i = MERKLE_PEAKS_MAX; fits && i-- > 0;)
        if ((tree.size >> i & 1) != 0)
            fits = note_take_base64(next_word(&rest), tree.peaks[i].bytes, sizeof tree.peaks[i].bytes);
    if (!fits || place.sequence == 0 || place.n >= place.sequence)
        return false;
    struct merkle_hash const root = merkle_root(&tree);
    if (!merkle_equal(&root, &checkpoint->root))
        return false;
    *ret = place;
    *ret_tree = tree;
    return true;
}

thole_status checkpoint_sign(thole_slice origin, const struct log_place *place,
                             const struct merkle_tree *tree, const struct note_key *keys, size_t keys_len,
                             struct buf *to, thole_error *reterr)
{
    struct buf line;
    buf_init(&line, LOG_PLACE_BYTES_MAX);
    log_place_text(place, tree, &line);
    struct checkpoint const checkpoint = {
        .origin = origin, .size = tree->size, .root = merkle_root(tree), .extension = buf_bytes(&line)};
    checkpoint_text(&checkpoint, to);
    thole_status status = buf_status(&line);
    buf_release(&line);
    for (size_t i = 0; i < keys_len && status == THOLE_OK; i++)
        status = note_sign(to, &keys[i], reterr);
    return status == THOLE_OK ? buf_status(to) : status;
}
