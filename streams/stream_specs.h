/* Inside streams/: what each stream and bucket of a namespace is made as. @p replicas 0: as existing. */
#ifndef THOLE_STREAM_SPECS_H
#define THOLE_STREAM_SPECS_H
#include "topology_spec.h"

struct stream_spec stream_spec_inbox(const char *ns, uint32_t p, uint32_t replicas);
struct stream_spec stream_spec_history(const char *ns, uint32_t p, uint32_t replicas);
struct stream_spec stream_spec_work(const char *ns, uint32_t replicas);
struct stream_spec stream_spec_rejected(const char *ns, uint32_t replicas);
/* @p age_ms 0: any. */
struct stream_spec stream_spec_events(const char *ns, uint64_t age_ms, uint32_t replicas);
/* @p kind "CONFIG", "NODES", "CRASHES", "SECRET". */
struct stream_spec stream_spec_bucket(const char *ns, const char *kind, uint64_t ttl_ms, uint32_t replicas);
/* A store that not every namespace has. */
enum { STORE_HOLDS_HISTORY = 64, STORE_BINDINGS_HISTORY = 16 };
struct stream_spec stream_spec_store(const char *ns, enum namespace_store store, uint32_t replicas);
#endif
