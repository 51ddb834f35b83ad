#!/usr/bin/env bash
# unique_names.sh ROOT: no two source files in the tree have the same name, no two headers the same guard.
set -eu
. "$(dirname "$0")/files.sh"
files_of "$1" '*.c' '*.h' '*.proto' '*.sql' | awk -F/ '
    { if ($NF in seen) print seen[$NF] " and " $0; else seen[$NF] = $0 }' >"$found"
files_of "$1" '*.h' | awk_over "$1" '
    FNR == 1 { guarded = 0 }
    !guarded && /^#ifndef [A-Z0-9_]+_H$/ { guarded = 1; print FILENAME, $2 }' |
    awk '{ if ($2 in seen) print seen[$2] " and " $1 ": guard " $2; else seen[$2] = $1 }' >>"$found"
verdict "file names or header guards used twice"
