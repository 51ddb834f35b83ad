#include "played_text.h"
#include "thole_cunit.h"
#include <ctype.h>

void played_text(FILE *to, thole_slice text)
{
    if (text.len == 0)
        (void)fputc('-', to);
    if (text.len > 100)
        (void)fprintf(to, "%zu bytes of ", text.len);
    for (size_t i = 0; i < text.len && i < 100; i++)
        if (isalnum(text.ptr[i]) || strchr("_.:@$\\?*%", text.ptr[i]) != NULL)
            (void)fputc(text.ptr[i], to);
        else
            (void)fprintf(to, "%%%02X", text.ptr[i]);
}

size_t played_unescape(const char *word, size_t len, char *ret, size_t cap)
{
    size_t n = 0;
    CU_ASSERT_FATAL(len < cap);
    if (len == 1 && word[0] == '-')
        return 0;
    for (size_t i = 0; i < len; i++) {
        unsigned byte = (unsigned char)word[i];
        if (word[i] == '%' && i + 2 < len && sscanf(word + i + 1, "%2x", &byte) == 1)
            i += 2;
        ret[n++] = (char)byte;
    }
    return n;
}
