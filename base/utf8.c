/* UTF-8. */
#include "utf8.h"

/* Length of a character by its first byte, and the smallest value that needs so many bytes; 0: not a first
 * byte. */
static size_t utf8_head(uint8_t byte, uint32_t *ret_value, uint32_t *ret_least)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t const n = byte < 0x80   ? 1
                     : byte < 0xc0 ? 0
                     : byte < 0xe0 ? 2
                     : byte < 0xf0 ? 3
                     : byte < 0xf8 ? 4
                                   : 0;
    *ret_value = n <= 1 ? byte : byte & (0xffu >> (n + 1));
    *ret_least = least[n];
    return n;
}

size_t utf8_character(thole_slice text)
{
    uint32_t value, least;
    size_t const n = text.len == 0 ? 0 : utf8_head(text.ptr[0], &value, &least);
    if (n == 0 || n > text.len)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((text.ptr[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (text.ptr[i] & 0x3fu);
    }
    if (value < least || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
        return 0;
    return n;
}

bool utf8_is_valid(thole_slice text)
{
    for (size_t at = 0, n; at < text.len; at += n) {
        n = utf8_character((thole_slice){text.ptr + at, text.len - at});
        if (n == 0)
            return false;
    }
    return true;
}

bool utf8_is_control(const uint8_t *at, size_t n)
{
    return (n == 1 && (at[0] < 0x20 || at[0] == 0x7f)) || (n == 2 && at[0] == 0xc2 && at[1] < 0xa0);
}
