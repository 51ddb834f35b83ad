#!/usr/bin/env bash
# source_lists.sh ROOT: the CMakeLists.txt of a layer names each of its sources, sorted by name, and none that is not
# there; deploy/ is not built. Only tests/, bench/ and examples/ find theirs by pattern: there a file's name says what it is.
set -eu
. "$(dirname "$0")/files.sh"
export LC_ALL=C
named=$(mktemp)
trap 'rm -f "$found" "$named"' EXIT
files_of "$1" '*CMakeLists.txt' | grep -vE '^(tests|bench|examples)/' | while IFS= read -r list; do
    grep -nE 'file\(GLOB' "$1/$list" | sed "s,^\([0-9]*:\),$list:\1 ," >>"$found" || true
    awk -v list="$list" -v named="$named" '
        BEGIN { folder = list; sub("[^/]*$", "", folder) }
        { line = $0; sub(/#.*/, "", line); n = split(line, words, /[ \t()"]+/)
          if (line ~ /\(/) last = ""
          for (i = 1; i <= n; i++) if (words[i] ~ /^[A-Za-z0-9_\/]+\.(c|sql)$/) {
              if (words[i] <= last) print list ":" NR ": " words[i] " after " last
              last = words[i]
              print folder words[i] >>named } }' "$1/$list"
done >>"$found"
sort -o "$named" "$named"
files_of "$1" '*.c' '*.sql' | grep -vE '^(tests|bench|examples|deploy)/' | comm -3 "$named" - |
    awk -F'\t' '{ print $1 != "" ? $1 " is not there" : $2 " is in no list" }' >>"$found"
verdict "source lists that do not fit their folder"
