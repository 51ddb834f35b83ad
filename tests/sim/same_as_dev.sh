#!/usr/bin/env bash
# same_as_dev.sh SIM ROOT: a seed means the same run whatever compiler and options built the simulation. Compares the
# digest of the traces with that of the preset dev; skipped where that is not built, or not from these sources.
set -eu
sim=$1
root=$2
dev=$root/build/dev/tests/sim
seeds='1 60'
if [ ! -x "$dev" ]; then
    echo "$dev is not built"
    exit 77
fi
newer=$(find "$root/include" "$root/engine" "$root/proto" "$root/tests/sim" "$root/tests/lib" \
    -name '*.[ch]' -newer "$dev" -print -quit)
if [ -n "$newer" ]; then
    echo "$newer is newer than $dev"
    exit 77
fi
# shellcheck disable=SC2086
digest() { "$1" $seeds 2>/dev/null | grep '^digest' || true; }
mine=$(digest "$sim")
theirs=$(digest "$dev")
echo "$sim: $mine"
echo "$dev: $theirs"
[ -n "$mine" ] && [ "$mine" = "$theirs" ]
