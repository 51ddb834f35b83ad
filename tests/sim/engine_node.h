/* A node that hosts partition machines: it does what they say, over links that fail. */
#ifndef THOLE_ENGINE_NODE_H
#define THOLE_ENGINE_NODE_H
#include "net_fake.h"
#include "partition.h"

struct engine;
struct engine *engine_create(struct world *w, unsigned index);
void engine_destroy(struct engine *engine);

/* The engine's opinion on whether it owns the partition; opinions of several nodes may contradict each
 * other. */
void engine_wants(struct world *w, struct engine *engine, uint32_t partition, bool wants);
/* A turn of @p by is on its way: another engine may open that partition just now. */
void engines_rival(struct world *w, const struct engine *by, uint32_t partition);
void engine_crash(struct world *w, struct engine *engine, uint64_t down_ms);
void engine_learns(struct world *w, struct engine *engine); /* from its next start on it knows everything */
void engine_loses_link(struct world *w, struct engine *engine, enum server server);
struct node *engine_node(struct engine *engine);
bool engine_knows_all(const struct engine *engine);

void engines_inbox_stirs(struct world *w, uint32_t partition);
void engines_inbox_went_back(struct world *w, uint32_t partition);
/* One open machine for each partition, and nothing in flight anywhere. */
bool engines_serve(struct world *w); /* each partition is open somewhere */
bool engines_idle(struct world *w, char *why, size_t size);
#endif
