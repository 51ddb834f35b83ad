/* Where in a program an address is, for people: by the symbols that are loaded, and by addr2line where it is
 * installed. Runs a program: for tools, not for servers. */
#ifndef THOLE_CALL_SITE_H
#define THOLE_CALL_SITE_H
#include "buf.h"

/* Appends "checkout (checkout.c:42)", "checkout+0x1f in program", "program+0x1234", or "unknown". @p address:
 * a return address; the call before it is meant. */
void call_site_text(const void *address, struct buf *to);
#endif
