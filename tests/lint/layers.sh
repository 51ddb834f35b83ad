#!/usr/bin/env bash
# layers.sh ROOT: each folder includes only its own headers and those of the folders above it in this order;
# rooms of one machine, which stand side by side, not each other's;
# nats/nats.h only in streams/, libpq-fe.h only in projections/; microhttpd.h only in runtime/metrics/ and console/; examples/ only the installed headers.
set -eu
. "$(dirname "$0")/files.sh"
order='include/thole proto base engine/core engine/audit engine/partition/base engine/partition/log engine/partition/projection engine/partition/instances engine/partition engine/rows engine/worker platform streams projections runtime/metrics runtime/host runtime/cloudevents runtime/activities runtime/client runtime/reconcile runtime/processes/owner runtime/processes/worker runtime/processes/gateway runtime/processes/binder runtime/processes/replay runtime/processes testkit devservers views console cli'
rooms='engine/partition/log engine/partition/projection engine/partition/instances'
{
    files_of "$1" '*.h' | sed 's,^,header ,'
    files_of "$1" '*.c' '*.h' | code_of "$1" | awk -F'\t' '
        $3 ~ /^[ \t]*#[ \t]*include/ { sub(/.*include[ \t]*/, "", $3); print "include", $1, $2, $3 }'
} | awk -v order="$order" -v rooms="$rooms" '
    function folder(path) { sub("/[^/]*$", "", path); return path }
    function free(path) { return path ~ /^(tests|bench)\// } # may include everything
    function say(text) { printf "%s:%s: %s %s\n", $2, $3, $4, text }
    BEGIN { n = split(order, names, " "); for (i = 1; i <= n; i++) rank[names[i]] = i
            n = split(rooms, names, " "); for (i = 1; i <= n; i++) room[names[i]] = 1 }
    $1 == "header" { name = $2; sub(".*/", "", name); where[name] = folder($2); next }
    free($2) { next }
    $4 ~ /^<nats\// && folder($2) != "streams" { say("is for streams/ alone"); next }
    $4 ~ /libpq/ && folder($2) != "projections" { say("is for projections/ alone"); next }
    $4 ~ /microhttpd/ && folder($2) !~ /^(runtime\/metrics|console)$/ { say("is for runtime/metrics/ and console/ alone"); next }
    $4 ~ /^</ && $4 !~ /^<thole\// { next }
    { name = substr($4, 2, length($4) - 2); from = folder($2)
      if (name ~ /\.\./ || (name ~ /\// && name !~ /^thole\/[^\/]*$/)) { say("must be a plain name or thole/NAME"); next }
      public = name ~ /^thole\//
      if (from ~ /^examples/) { if (!public && where[name] != from) say("is not an installed header"); next }
      if (!(from in rank)) { say("is in a folder that is not a layer"); next }
      sub(".*/", "", name)
      to = public ? "include/thole" : name ~ /\.pb-c\.h$/ ? "proto" : where[name]
      if (to == "") { say("does not exist"); next }
      if (!(to in rank)) { say("is in " to ", which is not a layer"); next }
      if (to != from && (to in room) && (from in room)) say("is in " to ", a room beside " from)
      if (rank[to] > rank[from]) say("is in " to ", below " from) }' >"$found"
verdict "includes against the order of the folders"
