/* Tokens that say where the next page of a list begins: numbers and an instance, of the last row. */
#ifndef THOLE_PAGE_H
#define THOLE_PAGE_H
#include "buf.h"

enum { PAGE_TOKEN_BYTES = THOLE_ID_BYTES_MAX * 3 + 96 };

void page_token(char ret[PAGE_TOKEN_BYTES], const uint64_t *numbers, size_t numbers_len,
                thole_slice instance);
/* An empty token leaves zeroes. @p instance is initialized, with room for an id. THOLE_INVALID: it is none.
 */
THOLE_NODISCARD thole_status page_read(thole_slice token, uint64_t *numbers, size_t numbers_len,
                                       struct buf *instance, thole_error *reterr);
#endif
