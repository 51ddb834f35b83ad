#!/usr/bin/env bash
# memory.sh ROOT: "Memory" in CONTRIBUTING.md: the product takes its small blocks from memory.h, what has a ceiling from arena.h
# or buf.h. malloc and its like are called in the files of this list alone, for the reason that stands there, and so is
# abort(), which memory.h calls with a sentence. A file that needs its line no more loses it.
set -eu
. "$(dirname "$0")/files.sh"
list='
base/memory.c             malloc calloc realloc abort  the small blocks themselves
base/arena.c              malloc                what has a ceiling
base/buf.c                realloc               what has a ceiling
base/coro.c               calloc abort          a status, since an abort in a turn is blamed on the code; a coroutine that has ended was resumed
engine/core/instance_turn.c      realloc               a status, since an abort in a turn is blamed on the code
runtime/client/client_calls.c     calloc                a result, which the user frees: THOLE_NOMEM
runtime/client/client_query.c     malloc                an answer, which the user frees: THOLE_NOMEM
runtime/processes/owner/membership.c malloc                another node says how long its heartbeat is; the next one comes soon
testkit/kit_base.c        abort                 in a test, with a sentence
testkit/kit_drive.c       abort                 in a test, with a sentence
'
product='^(base|engine|platform|streams|projections|runtime|testkit|cli|devservers)/'
names='malloc|calloc|realloc|reallocarray|aligned_alloc|posix_memalign|strdup|strndup|asprintf|vasprintf|getline|abort'
files_of "$1" '*.c' '*.h' | { grep -E "$product" || true; } | code_of "$1" | awk -F'\t' -v list="$list" -v names="(^|[^A-Za-z0-9_])($names)[ \t]*[(]" '
    BEGIN { n = split(list, lines, "\n")
            for (i = 1; i <= n; i++) {
                words = split(lines[i], word, " ")
                for (w = 2; w <= words && word[w] ~ "^(malloc|calloc|realloc|abort)$"; w++) may[word[1] " " word[w]] = 1
                if (words > 0 && w > words) print "memory.sh: " word[1] ": without a reason"
            } }
    { file = $1; line = $2; code = substr($0, length($1) + length($2) + 3) }
    { here[file] = 1
      while (match(code, names)) {
          name = substr(code, RSTART, RLENGTH); gsub(/[^a-z_]/, "", name)
          used[file " " name] = 1
          if (!((file " " name) in may)) printf "%s:%d: %s(): a small block comes from memory.h, what has a ceiling from arena.h or buf.h\n", file, line, name
          code = substr(code, RSTART + RLENGTH)
      } }
    END { for (key in may) { split(key, word, " ")
              if (word[1] in here && !(key in used)) print word[1] ": calls " word[2] "() no more: take it from the list in memory.sh" } }' >"$found"
verdict "bare allocations, or a list that is too long"
