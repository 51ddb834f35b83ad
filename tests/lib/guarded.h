/* Memory that ends at a page that nobody may read: one byte too far is a crash, without a sanitizer too. */
#ifndef THOLE_GUARDED_H
#define THOLE_GUARDED_H
#include <stddef.h>
#include <stdint.h>

/* A copy of @p bytes, valid until the next call in this process; its last byte is the last that can be read.
 */
const uint8_t *guarded_copy(const uint8_t *bytes, size_t len);
#endif
