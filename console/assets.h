/* The files of console/assets, which are part of the program. */
#ifndef THOLE_ASSETS_H
#define THOLE_ASSETS_H
#include <stddef.h>
#include <stdint.h>

struct asset {
    const char *name; /* "index.html" */
    const uint8_t *bytes;
    size_t len;
};
/* By name; made by cmake/EmbedAssets.cmake. */
extern const struct asset assets[];
extern const size_t assets_len;

/* NULL: there is none. */
const struct asset *asset_find(const char *name);
/* By what the name ends with. */
const char *asset_type(const char *name);
#endif
