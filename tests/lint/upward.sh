#!/usr/bin/env bash
# upward.sh OBJECT...: no object of a top folder uses a symbol of a folder below it in this order, as the compiler wrote it
# down. What the linker fills in (the program's own main) and what is generated from proto/ do not count.
set -eu
. "$(dirname "$0")/files.sh"
order='base engine platform streams projections runtime testkit devservers views console cli'
nm -g -A --format=posix "$@" | awk -v order="$order" '
    BEGIN { n = split(order, names, " "); for (i = 1; i <= n; i++) rank[names[i]] = i }
    # .../engine/CMakeFiles/thole_core.dir/core/buf.c.o is in engine
    function folder_of(path) { sub(/\/CMakeFiles\/.*/, "", path); sub(/.*\//, "", path); return path }
    function file_of(path) { sub(/.*\//, "", path); sub(/\.o$/, "", path); return path }
    { path = $1; sub(/:$/, "", path); sub(/\[.*/, "", path)
      if (!(path in folder)) { folder[path] = folder_of(path)
          if (!(folder[path] in rank)) printf "%s: %s is in no order\n", file_of(path), folder[path] }
      if ($3 == "U") { user[++uses] = path; used[uses] = $2 }
      else owner[$2] = path }
    END { for (u = 1; u <= uses; u++) {
        to = owner[used[u]]
        if (to != "" && rank[folder[to]] > rank[folder[user[u]]])
            printf "%s/%s: uses %s of %s/%s\n", folder[user[u]], file_of(user[u]), used[u], folder[to], file_of(to) } }' |
    sort -u >"$found"
verdict "uses of functions of a lower folder"
