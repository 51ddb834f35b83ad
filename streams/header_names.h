/* Headers of messages. The first list is part of the contract of docs/wire.md, which unit.wire compares with
 * it. */
#ifndef THOLE_HEADER_NAMES_H
#define THOLE_HEADER_NAMES_H

/* of cancel pushes and live events */
#define HEADER_ACTIVITIES "Thole-Activities"
#define HEADER_DECIDED "Thole-Decided"
#define HEADER_EARLY "Thole-Early"
#define HEADER_EXECUTION "Thole-Execution"
#define HEADER_KIND "Thole-Kind"
#define HEADER_PROOFS "Thole-Proofs"
#define HEADER_REQUEST "Thole-Request"
#define HEADER_TRY "Thole-Try"
/* of messages to an instance: who sends it, and with what */
#define HEADER_ACTOR "Thole-Actor"
#define HEADER_CLIENT "Thole-Client"
/* of messages to an instance, work and live events: W3C Trace Context */
#define HEADER_TRACEPARENT "traceparent"
#define HEADER_TRACESTATE "tracestate"
/* of answers to a roll call */
#define HEADER_QUEUE "Thole-Queue"
#define HEADER_SLOTS "Thole-Slots"
#define HEADER_WORKER "Thole-Worker"
/* of rejected messages */
#define HEADER_BYTES "Thole-Bytes"
#define HEADER_CODE "Thole-Code"
#define HEADER_REASON "Thole-Reason"
#define HEADER_SEQUENCE "Thole-Sequence"
#define HEADER_SUBJECT "Thole-Subject"
#define HEADER_TIME "Thole-Time"
#define HEADERS_OF_CONTRACT                                                                                  \
    HEADER_ACTIVITIES, HEADER_ACTOR, HEADER_CLIENT, HEADER_DECIDED, HEADER_EARLY, HEADER_EXECUTION,          \
        HEADER_KIND, HEADER_PROOFS, HEADER_REQUEST, HEADER_TRY, HEADER_QUEUE, HEADER_SLOTS, HEADER_WORKER,   \
        HEADER_BYTES, HEADER_CODE, HEADER_REASON, HEADER_SEQUENCE, HEADER_SUBJECT, HEADER_TIME,              \
        HEADER_TRACEPARENT, HEADER_TRACESTATE

/* of work; not part of it */
#define HEADER_ACTIVITY "Thole-Activity"
#define HEADER_NONCE "Thole-Nonce"
#define HEADER_RESULTS "Thole-Results"
#endif
