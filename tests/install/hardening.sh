#!/usr/bin/env bash
# hardening.sh PREFIX [fortified]: what cmake/TholeHardening.cmake promises, read from the installed files.
# "fortified": they were built with optimisation.
set -eu
prefix=$1 fortified=${2:-}
failed=0
missing() { # FILE WHAT
    echo "$1: $2" >&2
    failed=1
}
command -v readelf >/dev/null && command -v objdump >/dev/null || { echo "needs binutils (readelf, objdump)"; exit 77; }

look_at() { # FILE
    local headers dynamic symbols
    headers=$(readelf -W -h -l "$1")
    dynamic=$(readelf -W -d "$1")
    symbols=$(readelf -W --dyn-syms "$1")
    grep -q 'Type: *DYN' <<<"$headers" || missing "$1" "is not position-independent (PIE)"
    grep -q 'GNU_RELRO' <<<"$headers" || missing "$1" "has no RELRO segment"
    grep -qE 'BIND_NOW|Flags:.* NOW' <<<"$dynamic" || missing "$1" "binds lazily (no BIND_NOW): its RELRO is partial"
    grep 'GNU_STACK' <<<"$headers" | grep -qv 'RWE' || missing "$1" "has an executable stack"
    ! grep -q 'TEXTREL' <<<"$dynamic" || missing "$1" "has text relocations"
    ! grep -q 'STATIC_TLS' <<<"$dynamic" || missing "$1" "needs static TLS: dlopen() of it may fail"
    ! grep -qE 'RPATH|RUNPATH' <<<"$dynamic" || missing "$1" "has a search path of its own for libraries"
    grep -q '__stack_chk_fail' <<<"$symbols" || missing "$1" "has no stack protector"
    if [ -n "$fortified" ]; then
        grep -qE '__[a-z]+_chk@' <<<"$symbols" || missing "$1" "is not fortified (_FORTIFY_SOURCE)"
    fi
    if [ "$(uname -m)" = x86_64 ]; then # a stack of more than a page is touched page by page
        objdump -d --no-show-raw-insn "$1" | awk '
            before && /(or|mov)q +\$0x0,(0x[0-9a-f]+)?\(%rsp\)/ { probes++ }
            { before = /sub +\$0x1000,%rsp/ }
            END { exit probes == 0 }' || missing "$1" "has no stack-clash protection"
    fi
}

# libexec holds the nats-server that was fetched: another project's
files=$(find "$prefix" -path "$prefix/libexec" -prune -o -type f \( -perm -u+x -o -name '*.so*' \) -print | sort)
[ -n "$files" ] || { echo "nothing is installed in $prefix" >&2; exit 1; }
for file in $files; do
    [ "$(head -c 4 "$file" | tail -c 3)" = ELF ] || continue
    look_at "$file"
done
[ "$failed" -eq 0 ] && echo "hardened: $(wc -l <<<"$files") files"
