#!/usr/bin/env bash
# exports.sh ROOT libthole.so: the library exports thole_* and nothing else, and all that the headers declare.
set -eu
. "$(dirname "$0")/files.sh"
exported=$(nm -D --defined-only "$2" | awk '{ sub("@.*", "", $NF); print $NF }' | LC_ALL=C sort -u)
if [ -z "$exported" ]; then
    echo "exports nothing at all" >"$found"
fi
printf '%s\n' "$exported" | awk 'NF && !/^thole_/ { print "exported but not thole_*: " $1 }' >>"$found"
declared=$(files_of "$1" '*.h' | grep '^include/thole/' | code_of "$1" | cut -f3- | grep -v '^[ \t]*#' | tr '\n' ' ' |
    awk 'BEGIN { RS = "THOLE_API" } NR > 1 { sub("[(].*", ""); n = split($0, w, /[^A-Za-z0-9_]+/); print w[n] == "" ? w[n - 1] : w[n] }' |
    LC_ALL=C sort -u)
LC_ALL=C comm -13 <(printf '%s\n' "$exported") <(printf '%s\n' "$declared") | sed 's,^,declared but not exported: ,' >>"$found"
verdict "surprises among the exported symbols"
