/**
 * Types shared by every part of thole: status codes, byte slices, error text.
 * Compiles alone as C11 and as C++17. Nothing in this header allocates or blocks.
 */
#ifndef THOLE_TYPES_H
#define THOLE_TYPES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__GNUC__)
#define THOLE_API __attribute__((visibility("default")))
#define THOLE_NODISCARD __attribute__((warn_unused_result))
#define THOLE_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define THOLE_API
#define THOLE_NODISCARD
#define THOLE_PRINTF(f, a)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/** An instance id: 1..200 bytes of valid UTF-8 without NUL. */
#define THOLE_ID_BYTES_MAX 200
/** Where a version of an orchestration is asked for: the highest that there is where it starts. */
#define THOLE_VERSION_NEWEST 0
/** Of thole_continue_as_new(): the version that runs now. */
#define THOLE_VERSION_SAME 0
/** A namespace, queue, orchestration, activity or event name: [A-Za-z0-9_-]{1,64}. */
#define THOLE_NAME_BYTES_MAX 64
/** Default ceiling of one payload (input, output, failure text), in bytes; see --payload-max. */
#define THOLE_PAYLOAD_BYTES_DEFAULT (256 * 1024)

/*
 * One list feeds the enum, the names and the texts. Append only: values are stored in history.
 */
#define THOLE_STATUS_MAP(X)                                                                                  \
    X(OK, 0, "success")                                                                                      \
    X(NOMEM, 1, "out of memory")                                                                             \
    X(INVALID, 2, "invalid argument")                                                                        \
    X(LIMIT, 3, "a configured limit was reached")                                                            \
    X(CORRUPT, 4, "stored bytes do not decode")                                                              \
    X(NONDETERMINISM, 5, "orchestration diverged from its history")                                          \
    X(CANCELLED, 6, "cancelled")                                                                             \
    X(APP, 7, "orchestration or activity reported a failure")                                                \
    X(CONFLICT, 8, "already exists, or another writer was first")                                            \
    X(UNAVAILABLE, 9, "stream or database not reachable")                                                    \
    X(NOT_FOUND, 10, "not found")                                                                            \
    X(TIMEOUT, 11, "timed out")                                                                              \
    X(UNSUPPORTED, 12, "not supported by this server or version")                                            \
    X(DENIED, 13, "permission denied")                                                                       \
    X(FENCED, 14, "a newer owner has taken over")                                                            \
    X(LATER, 15, "is completed later, from outside")

/** Result of every fallible call. THOLE_OK is 0. */
typedef enum thole_status {
#define X(name, value, text) THOLE_##name = value,
    THOLE_STATUS_MAP(X)
#undef X
} thole_status;

/** Borrowed bytes; never freed by the receiver; not NUL-terminated; ptr may be NULL when len is 0. */
typedef struct thole_slice {
    const uint8_t *ptr;
    size_t len;
} thole_slice;

/** A slice over a string literal, without its NUL. */
#ifdef __cplusplus
#define THOLE_STR(literal) (thole_slice{reinterpret_cast<const uint8_t *>("" literal), sizeof(literal) - 1})
#else
#define THOLE_STR(literal) ((thole_slice){(const uint8_t *)("" literal), sizeof(literal) - 1})
#endif
/** THOLE_STR() where C requires a constant: `static const thole_slice queue = THOLE_STR_INIT("gpu");` */
#ifdef __cplusplus
#define THOLE_STR_INIT(literal) THOLE_STR(literal)
#else
#define THOLE_STR_INIT(literal)                                                                              \
    {                                                                                                        \
        (const uint8_t *)("" literal), sizeof(literal) - 1                                                   \
    }
#endif
/** Both arguments of a "%.*s" conversion. The slice is evaluated twice. */
#define THOLE_FMT(s) (int)(s).len, (const char *)(s).ptr

/** Where a failing call says what happened. Caller-owned; plain data; text is NUL-terminated UTF-8. */
typedef struct thole_error {
    thole_status status;
    char text[504];
} thole_error;

/** A slice over the bytes of @p text without its NUL; NULL gives an empty slice. Borrowed. */
THOLE_API thole_slice thole_slice_from(const char *text);
/** A slice over @p len bytes at @p ptr, which may be NULL when @p len is 0. Borrowed. */
static inline thole_slice thole_slice_of(const void *ptr, size_t len)
{
    thole_slice slice;
    slice.ptr = (const uint8_t *)ptr;
    slice.len = len;
    return slice;
}
/** Reads the number that @p text is in decimal digits, without any other byte before or after it. @return
 * THOLE_OK; THOLE_INVALID (no number, or it does not fit): *ret is not written. */
THOLE_NODISCARD THOLE_API thole_status thole_slice_u64(thole_slice text, uint64_t *ret);
/** Like thole_slice_u64(), with an optional sign. */
THOLE_NODISCARD THOLE_API thole_status thole_slice_i64(thole_slice text, int64_t *ret);
/** True when both hold the same bytes. */
THOLE_API bool thole_slice_equal(thole_slice a, thole_slice b);

/** "OK", "INVALID", …; "UNKNOWN" for a value this library does not know. Static text. */
THOLE_API const char *thole_status_name(thole_status status);
/** One sentence for people. Static text. */
THOLE_API const char *thole_status_text(thole_status status);
/** Fills @p err (may be NULL) and returns @p status, so that a caller can write `return thole_fail(…)`. */
THOLE_API thole_status thole_fail(thole_error *err, thole_status status, const char *fmt, ...)
    THOLE_PRINTF(3, 4);

/** Passes any status but THOLE_OK up to the caller. */
#define THOLE_TRY(expr)                                                                                      \
    do {                                                                                                     \
        thole_status try_status_ = (expr);                                                                   \
        if (try_status_ != THOLE_OK)                                                                         \
            return try_status_;                                                                              \
    } while (0)
#ifdef __cplusplus
}
#endif
#endif
