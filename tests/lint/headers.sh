#!/usr/bin/env bash
# headers.sh ROOT CC: each public header compiles alone, as C11 and as C++17.
set -eu
. "$(dirname "$0")/files.sh"
cxx=
for candidate in c++ g++ clang++; do
    if command -v "$candidate" >/dev/null; then cxx=$candidate && break; fi
done
alone() { # COMPILER LANGUAGE STANDARD HEADER
    printf '#include "thole/%s"\n' "$4" |
        "$1" -x "$2" "-std=$3" -Wall -Wextra -Wpedantic -Werror -fsyntax-only "-I$root/include" - 2>&1 | sed "s,^,$3: ,"
}
root=$1
for header in "$root"/include/thole/*.h; do
    alone "$2" c c11 "$(basename "$header")"
    [ -z "$cxx" ] || alone "$cxx" c++ c++17 "$(basename "$header")"
done >"$found"
for header in "$root"/include/thole/*.hpp; do
    [ ! -e "$header" ] || [ -z "$cxx" ] || alone "$cxx" c++ c++17 "$(basename "$header")" >>"$found"
done
verdict "lines of complaint about public headers"
if [ -z "$cxx" ]; then
    echo "no C++ compiler: the C++17 half did not run"
    exit 77
fi
