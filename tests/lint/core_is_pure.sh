#!/usr/bin/env bash
# core_is_pure.sh OBJECT... -- OBJECT...: the first objects call only each other, the second ones (generated
# code) and the functions allowed here: no clock, no randomness, no I/O, no threads; and keep no writable globals.
set -eu
. "$(dirname "$0")/files.sh"
allowed='calloc free malloc realloc memchr memcmp memcpy memmem memmove memset qsort bsearch
    strchr strcmp strlen strncmp strnlen snprintf vsnprintf abort __assert_fail __stack_chk_fail _GLOBAL_OFFSET_TABLE_
    __isoc99_sscanf'
coroutine='mmap munmap mprotect getcontext makecontext swapcontext sysconf __register_frame_info'
pure=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do pure+=("$1") && shift; done
[ $# -eq 0 ] || shift
own=$(nm -g --defined-only --format=posix "${pure[@]}" "$@" | awk 'NF > 1 { print $1 }')
for object in "${pure[@]}"; do
    extra=
    case $(basename "$object") in coro.c.o | coro_*.c.o) extra=$coroutine ;; esac
    nm -u --format=posix "$object" | awk -v object="$(basename "$object" .o)" -v names="$allowed $extra $own" '
        BEGIN { n = split(names, list, /[ \t\n]+/); for (i = 1; i <= n; i++) known[list[i]] = 1 }
        { plain = $1; sub("^__", "", plain); sub("_chk$", "", plain) } # fortified: __memcpy_chk
        NF > 1 && !($1 in known) && !(plain in known) && $1 !~ /^protobuf_c_/ { print object ": calls " $1 }'
    objdump -t "$object" | awk -v object="$(basename "$object" .o)" '
        / O / && $0 ~ / (\.data|\.bss|\.tdata|\.tbss|\*COM\*)/ && $0 !~ /\.data\.rel\.ro/ { print object ": writable global " $NF }'
done >"$found"
verdict "impurities"
