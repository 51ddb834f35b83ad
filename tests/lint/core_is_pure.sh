#!/usr/bin/env bash
# core_is_pure.sh OBJECT... -- OBJECT...: the first objects call only each other, the second ones (generated
# code) and the functions allowed here: no clock, no randomness, no I/O, no threads; and keep no writable globals.
set -eu
. "$(dirname "$0")/files.sh"
allowed='calloc free malloc realloc bcmp memchr memcmp memcpy memmem memmove memset qsort bsearch
    strchr strcmp strlen strncmp strnlen strspn strcspn snprintf vsnprintf abort __assert_fail __stack_chk_fail _GLOBAL_OFFSET_TABLE_
    __isoc99_sscanf SHA256_Init SHA256_Update SHA256_Final EVP_sha256 EVP_MD_CTX_new EVP_DigestInit_ex EVP_DigestUpdate EVP_DigestFinal_ex EVP_MD_CTX_free
    CRYPTO_memcmp OPENSSL_cleanse EVP_Digest EVP_EncodeBlock EVP_DecodeBlock EVP_PKEY_new_raw_private_key
    EVP_PKEY_new_raw_public_key EVP_PKEY_get_raw_public_key EVP_PKEY_free EVP_DigestSignInit EVP_DigestSign
    EVP_DigestVerifyInit EVP_DigestVerify'
coroutine='mmap munmap mprotect madvise mincore getcontext makecontext swapcontext sysconf __register_frame_info'
abort_calls='write' # memory.c: of a process that aborts
pure=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do pure+=("$1") && shift; done
[ $# -eq 0 ] || shift
own=$(nm -g --defined-only --format=posix "${pure[@]}" "$@" | awk 'NF > 1 { print $1 }')
{
    nm -A -u --format=posix "${pure[@]}" | awk -v names="$allowed $own" -v more="$coroutine" -v last="$abort_calls" '
        BEGIN { n = split(names, list, /[ \t\n]+/); for (i = 1; i <= n; i++) known[list[i]] = 1
                n = split(more, list, /[ \t\n]+/); for (i = 1; i <= n; i++) switches[list[i]] = 1 }
        object == "memory.c" && $2 == last { next }
        { object = $1; sub(":$", "", object); sub(".*/", "", object); sub("[.]o$", "", object)
          plain = $2; sub("^__", "", plain); sub("_chk$", "", plain) } # fortified: __memcpy_chk
        object ~ /^coro(_.*)?[.]c$/ && $2 in switches { next }
        NF > 2 && !($2 in known) && !(plain in known) && $2 !~ /^protobuf_c_/ { print object ": calls " $2 }'
    objdump -t "${pure[@]}" | awk '
        /: +file format / { object = $1; sub(":$", "", object); sub(".*/", "", object); sub("[.]o$", "", object) }
        / O / && $0 ~ / (\.data|\.bss|\.tdata|\.tbss|\*COM\*)/ && $0 !~ /\.data\.rel\.ro/ { print object ": writable global " $NF }'
} >"$found"
verdict "impurities"
