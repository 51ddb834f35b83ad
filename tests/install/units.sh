#!/usr/bin/env bash
# units.sh SOURCE: the units of deploy/systemd as systemd reads them, and options in them that the programs have.
set -eu
command -v systemd-analyze >/dev/null || { echo "needs systemd-analyze"; exit 77; }
units=$1/deploy/systemd
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$units"/*.service "$work"
out=$(cd "$work" && systemd-analyze verify ./thole-engine.service ./thole-worker@video.service 2>&1) || {
    echo "$out" >&2
    exit 1
}
# What it does not know it only warns of.
[ -z "$(grep -E 'thole-(engine|worker)' <<<"$out" || true)" ] || { echo "$out" >&2; exit 1; }
for name in $(grep -ohE 'THOLE_[A-Z_]+' "$units"/*.service | sort -u); do
    grep -q "\`$name\`" "$1/docs/operations.md" || { echo "$name is no setting of docs/operations.md" >&2; exit 1; }
done
for unit in thole-engine thole-worker@; do
    for line in Type=notify NoNewPrivileges=yes ProtectSystem=strict CapabilityBoundingSet= DynamicUser=yes; do
        grep -qx "$line" "$units/$unit.service" || { echo "$unit.service: no $line" >&2; exit 1; }
    done
done

# A stop of the worker: SIGTERM to the worker alone, and the command waits for its end.
stop=$(sed -n 's/^ExecStop=//p' "$units/thole-worker@.service" | sed 's/\$\$/$/g') # as systemd unquotes it
bash -c 'echo $$ >"$0/worker"; trap "touch $0/told; sleep 1; touch $0/ended; exit 0" TERM
    bash -c "echo \$\$ >$0/other; trap \"touch $0/other-told\" TERM; for i in {1..300}; do sleep 0.1; done" &
    for i in {1..300}; do sleep 0.1; done' "$work" &
until [ -s "$work/worker" ] && [ -s "$work/other" ]; do sleep 0.1; done
sleep 0.5 # for the traps
MAINPID=$(cat "$work/worker") timeout 20 bash -c "$stop" || { echo "ExecStop fails: $stop" >&2; exit 1; }
[ -e "$work/ended" ] || { echo "ExecStop does not wait: $stop" >&2; exit 1; }
kill -0 "$(cat "$work/other")" && [ ! -e "$work/other-told" ] || { echo "ExecStop ends others: $stop" >&2; exit 1; }
kill -KILL "$(cat "$work/other")"
for line in worker@:KillMode=control-group engine:KillMode=mixed worker@:OOMPolicy=continue engine:OOMPolicy=continue; do
    grep -qx "${line#*:}" "$units/thole-${line%%:*}.service" || { echo "thole-${line%%:*}: no ${line#*:}" >&2; exit 1; }
done
echo "units: $(ls "$units" | wc -l)"
