#include "percent.h"

static int percent_hex_digit(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int percent_byte(thole_slice text, size_t at)
{
    if (at >= text.len || text.len - at < 3 || text.ptr[at] != '%')
        return -1;
    int const high = percent_hex_digit(text.ptr[at + 1]), low = percent_hex_digit(text.ptr[at + 2]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}
