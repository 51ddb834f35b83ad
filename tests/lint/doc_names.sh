#!/usr/bin/env bash
# doc_names.sh ROOT: functions and files that the pages name exist: `name()` is an identifier somewhere in the sources, a path or
# a file name in backquotes is one of the project's. Names with capitals are placeholders; blocks of code are left out, and so
# is CHANGELOG.md, which speaks of earlier versions too.
set -eu
. "$(dirname "$0")/files.sh"
names=$(mktemp)
trap 'rm -f "$found" "$names"' EXIT
files_of "$1" '*.md' | grep -vx CHANGELOG.md | awk_over "$1" '
    FNR == 1 { inside = 0 }
    /^```/ { inside = !inside; next }
    inside { next }
    {
        for (rest = $0; match(rest, /[A-Za-z_][A-Za-z0-9_]*\(\)/); rest = substr(rest, RSTART + RLENGTH))
            print "function " substr(rest, RSTART, RLENGTH - 2) " " FILENAME ":" FNR
        for (rest = $0; match(rest, /`[^`]+`/); rest = substr(rest, RSTART + RLENGTH)) {
            n = split(substr(rest, RSTART + 1, RLENGTH - 2), word, /[^A-Za-z0-9_.\/-]+/)
            for (i = 1; i <= n; i++)
                if (word[i] ~ /\// || word[i] ~ /^[A-Za-z0-9_-]+\.(c|h|sh|py|proto|sql)$/) print "file " word[i] " " FILENAME ":" FNR
        }
    }' >"$names"
{
    files_of "$1" '*' | sed 's/^/! /'
    (files_of "$1" '*.c' '*.h' '*.sh' '*.py' '*.proto' '*.sql' | (cd "$1" && tr '\n' '\0' |
        xargs -0 -r grep -ohwE "$(awk '$1 == "function" { print $2 }' "$names" | sort -u | paste -sd '|' | sed 's/^$/^$/')")) |
        sort -u | sed 's/^/= /'
    (files_of "$1" '*.c' '*.h' | (cd "$1" && tr '\n' '\0' | xargs -0 -r grep -ohE '#include <[^>]+>')) |
        sed 's,.*[</],,; s/>//' | sort -u | sed 's/^/< /'
    cat "$names"
} | awk '
    $1 == "=" { known[$2] = 1; next }
    $1 == "<" { base[$2] = 1; next }
    $1 == "!" {
        path = $2
        there[path] = 1
        sub(/\.[a-z]+$/, "", path); there[path] = 1 # a program, by its source
        while (sub(/\/[^\/]*$/, "", path)) there[path] = 1
        top = $2; sub(/\/.*/, "", top); tops[top] = 1
        sub(/.*\//, "", $2); base[$2] = 1
        next
    }
    $2 ~ /[A-Z]/ { next }
    $1 == "function" { if (!($2 in known)) print $3 ": there is no function " $2 "()"; next }
    {
        name = $2
        if (sub(/\/$/, "", name) && name !~ /\//) next # a folder by its last name
        sub(/^\.\//, "", name)
        top = name; sub(/\/.*/, "", top)
        if (name ~ /\// ? !(top in tops) || name in there : name in base) next
        if (name ~ /^_/) # the end of a name: instance_awaits.c, _schedule.c
            for (b in base) if (substr(b, length(b) - length(name) + 1) == name) next
        print $3 ": there is no file " $2
    }' | LC_ALL=C sort -u >"$found"
verdict "functions and files of the pages that are not there"
