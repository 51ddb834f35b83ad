#!/usr/bin/env bash
# writers.sh ROOT: each part of an instance's state is assigned to by one file, as engine/core/instance_state.h says above
# the part: "Written by FILE.c", or behind a member of struct instance: "By FILE.c". What is written through a pointer
# is not seen. And a file includes only the headers of files above it in the list there.
set -eu
. "$(dirname "$0")/files.sh"
state=engine/core/instance_state.h
writers=$(awk '
    /Written by|Written$/ { after = 1; sub(/.*Written/, "") }
    after && match($0, /[a-z_]+\.c/) { writer = substr($0, RSTART, RLENGTH); after = 0 }
    /^struct [a-z_]+ \{/ { if (writer != "") of[$2] = writer; whole = $2 == "instance" }
    /^}/ { writer = ""; whole = 0 }
    whole && /^    struct [a-z_]+ [a-z_]+;/ { name = $3; sub(/;/, "", name); if ($2 in of) print name " " of[$2] }
    whole && /By instance_[a-z_]+\.c/ { match($0, /instance_[a-z_]+\.c/); file = substr($0, RSTART, RLENGTH)
        name = $0; sub(/;.*/, "", name); sub(/.*[ *]/, "", name); print name " " file }' "$1/$state")
order=$(sed -n 's/^ \*   \(instance[a-z_]*\.c\) .*/\1/p' "$1/$state")
files_of "$1" '*.c' | grep '^engine/core/instance[a-z_]*\.c$' | code_of "$1" | awk -F'\t' -v writers="$writers" -v order="$order" '
    BEGIN { n = split(writers, rows, "\n")
            for (i = 1; i <= n; i++) { split(rows[i], row, " "); part[i] = row[1]; file[i] = row[2] }
            listed = split(order, names, "\n")
            for (i = 1; i <= listed; i++) place_of[names[i]] = i }
    { name = $1; sub(/.*\//, "", name)
      if (!(name in place_of)) place_of[name] = listed + 1
      if ($3 ~ /^#include "instance_[a-z_]+\.h"/ && $3 !~ /instance_state\.h/) {
          needs = $3; sub(/^#include "/, "", needs); sub(/\.h".*/, ".c", needs)
          if (!(needs in place_of)) print $1 ":" $2 ": " needs " is not in the list of instance_state.h"
          else if (place_of[needs] > place_of[name]) print $1 ":" $2 ": " needs " stands below " name " in instance_state.h"
      }
      for (i = 1; i <= n; i++) if (name != file[i]) {
          place = "(^|[^a-z_])(in|instance)->" part[i] "(\\.[a-z_.]+)?(\\[[^]]*\\])?"
          if ($3 ~ (place " *([-+|&]?=[^=]|\\+\\+|--)") || $3 ~ ("(\\+\\+|--)" place))
              print $1 ":" $2 ": " part[i] " is written by " file[i] } }
    END { if (n < 10) print "only " n " parts are found in instance_state.h" }' >"$found"
verdict "parts of an instance that another file writes, or files out of order"
