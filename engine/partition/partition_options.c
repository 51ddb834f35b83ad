/* The defaults of a partition's options. */
#include "partition.h"
#include "partition_env.h"

void partition_options_init(struct partition_options *options)
{
    *options = (struct partition_options){.payload_max = THOLE_PAYLOAD_BYTES_DEFAULT,
                                          .instance_memory_max = 64u * 1024 * 1024,
                                          .record_max = 1000 * 1000,
                                          .parked_max = 1000,
                                          .parked_memory_max = 48u * 1024 * 1024,
                                          .early_memory_max = 8u * 1024 * 1024,
                                          .crash_limit = 2,
                                          .window_max = 256,
                                          .idle_ms = 1000,
                                          .timer_horizon_ms = 60 * 1000,
                                          .early_event_ms = UINT64_C(7) * 24 * 3600 * 1000,
                                          .quarantine_ms = 3600 * 1000,
                                          .waiting_max = PARTITION_WAITING_MAX,
                                          .ahead_max = PARTITION_AHEAD_MAX,
                                          .log_chunk = 2000,
                                          .resting_max = PARTITION_RESTING_MAX,
                                          .executions_span_ms = 60 * 1000,
                                          .row_age_ms = 10 * 1000,
                                          .events = EVENTS_OUT_EMITTED,
                                          .known_max = PARTITION_KNOWN_MAX};
}

size_t partition_record_min(const struct partition_options *options)
{
    return env_record_beside(options) + options->payload_max + EVENT_BYTES_BESIDE;
}
