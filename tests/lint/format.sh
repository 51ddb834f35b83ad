#!/usr/bin/env bash
# format.sh ROOT: clang-format has nothing to change. Versions differ in details; 14 is the one that decides.
set -eu
. "$(dirname "$0")/files.sh"
decides=14
tool=$(command -v "clang-format-$decides" || command -v clang-format) || {
    echo "no clang-format: skipped"
    exit 77
}
version=$("$tool" --version | sed -E 's/.*version ([0-9]+).*/\1/')
if [ "$version" != "$decides" ]; then
    echo "clang-format is version $version, formatting is decided by $decides: skipped"
    exit 77
fi
root=$1
cd "$root"
files_of "$root" '*.c' '*.h' | xargs -r -n 40 -P "$(nproc)" "$tool" --dry-run 2>&1 | grep -E ': (warning|error)' |
    cut -d: -f1 | LC_ALL=C sort | uniq -c | awk '{ print $2 ": " $1 " places" }' >"$found" || true
verdict "files to format with clang-format -i"
