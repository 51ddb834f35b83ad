/* Memory of this process. */
#ifndef THOLE_RESIDENT_H
#define THOLE_RESIDENT_H
#include <stdint.h>

/* Bytes that the process has in memory (VmRSS); 0: the system does not say. Any thread. */
uint64_t resident_bytes(void);
#endif
