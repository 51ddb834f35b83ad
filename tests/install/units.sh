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
echo "units: $(ls "$units" | wc -l)"
