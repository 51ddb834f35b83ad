#!/usr/bin/env bash
# circles.sh OBJECT...: within a folder no files need each other in a circle: such files can be read, built and tested only
# together. A file needs another when it uses a symbol that the other defines, as the compiler wrote it down; types and
# inline functions of a header do not count.
set -eu
. "$(dirname "$0")/files.sh"
nm -g -A --format=posix "$@" | awk '
    # .../engine/CMakeFiles/thole_core.dir/core/buf.c.o is in core; .../cli/CMakeFiles/thole_cli.dir/help.c.o in cli
    function folder_of(path) {
        gsub(/\/\.\//, "/", path)
        if (path ~ /\.dir\/[^\/]*$/) sub(/\/CMakeFiles\/.*/, "", path)
        else { sub(/.*\.dir\//, "", path); sub(/\/[^\/]*$/, "", path); return path }
        sub(/.*\//, "", path)
        return path
    }
    function file_of(path) { sub(/.*\//, "", path); sub(/\.o$/, "", path); return path }
    function in_circle(i, j) { return i == j || (((i, j) in needs) && ((j, i) in needs)) }
    function print_edges(f,    a, b) {
        for (a = 1; a <= n; a++) for (b = 1; b <= n; b++)
            if (folder[a] == f && folder[b] == f && a != b && in_circle(a, b) && ((a, b) in edge))
                print "    " name[a] " -> " name[b] ":" edge[a, b]
    }
    { path = $1; sub(/:$/, "", path); sub(/\[.*/, "", path) # of an archive: lib.a[member.o]
      if (!(path in id)) { id[path] = ++n; folder[n] = folder_of(path); name[n] = file_of(path) }
      if ($3 == "U") { user[++uses] = id[path]; used[uses] = $2 }
      else owner[$2] = id[path] }
    END {
        for (u = 1; u <= uses; u++) {
            from = user[u]; to = owner[used[u]]
            if (!to || to == from || folder[to] != folder[from]) continue
            needs[from, to] = 1; edge[from, to] = edge[from, to] " " used[u]
        }
        for (k = 1; k <= n; k++) for (i = 1; i <= n; i++) if ((i, k) in needs)
            for (j = 1; j <= n; j++) if (folder[j] == folder[k] && ((k, j) in needs)) needs[i, j] = 1
        for (i = 1; i <= n; i++) {
            size = 0; text = ""
            for (j = 1; j <= n; j++) if (folder[j] == folder[i] && in_circle(i, j)) { size++; text = text " " name[j] }
            if (size > 1 && size > largest[folder[i]] + 0) { largest[folder[i]] = size; who[folder[i]] = text }
        }
        for (f in largest) {
            printf "%s: %d files in a circle:%s\n", f, largest[f], who[f]
            print "    Return what the caller needs instead of calling back, or move what both need to a file of its own."
            print_edges(f)
        }
    }' >"$found"
verdict "circles of files"
