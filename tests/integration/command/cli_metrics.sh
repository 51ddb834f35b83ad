#!/usr/bin/env bash
# Run by test_cli_command under `thole dev`: what an engine and a worker show at /metrics while orders wait, run, end and are
# cancelled; with promtool, where it is on PATH, also that Prometheus takes it.
# cli_metrics.sh THOLE CHECKOUT. Prints one line for each check that fails; exit code 0 when there is none.
set -u
thole=$1
checkout=$2
bad=0
log=$(mktemp)
engine=
worker=
finish() {
    for pid in $engine $worker; do
        kill -TERM "$pid" && wait "$pid"
    done
    rm -f "$log" "$log".*
}
trap finish EXIT
. "$(dirname "$0")/cli_checks.sh"
export THOLE_NAMESPACE=meters

# port LOG: where the program answers.
port() { sed -n 's,.*answers http://127.0.0.1:\([0-9]*\)/.*,\1,p' "$1"; }
# page PORT PATH
page() {
    exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
    printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&3
    sed '1,/^\r$/d' <&3
    exec 3<&-
}
# value PORT SERIES: the whole part of its value.
value() { page "$1" /metrics | awk -v series="$2" '$1 == series { print int($2 + 0.999) }'; }
# shows PORT SERIES MIN [MAX]
shows() {
    local got
    got=$(value "$1" "$2")
    echo "$2 is ${got:-not there}"
    [ -n "$got" ] && [ "$got" -ge "$3" ] && [ "$got" -le "${4:-999999999}" ]
}

"$checkout" engine --partitions 2 --sweep 2s --http 127.0.0.1:0 >"$log.engine" 2>&1 &
engine=$!
await 60 says '"partitions":[0,1]' nodes -o json
at=$(port "$log.engine")
for i in 1 2 3; do "$thole" start checkout --id "m-$i" --input "order=$i;pay_ms=10;limit_ms=60000" >"$log.out"; done
await 30 shows "$at" thole_engine_open_activities 3 3
await 30 shows "$at" thole_engine_oldest_waiting_activity_seconds 1

"$checkout" worker --lease 1s --stop-limit 1s --http 127.0.0.1:0 >"$log.worker" 2>&1 &
worker=$!
for i in 1 2 3; do expect 0 "order $i shipped" wait "m-$i" --timeout 60s; done
to=$(port "$log.worker")
"$thole" start checkout --id m-4 --input 'order=4;pay_ms=60000;limit_ms=60000' >"$log.out"
await 30 shows "$to" thole_worker_running 1 1
"$thole" cancel m-4 >"$log.out"
expect 9 '' wait m-4 --timeout 60s
await 30 shows "$to" 'thole_worker_cancellations_total{path="push"}' 1 1
"$thole" start checkout --id m-5 --input 'order=5;pay_ms=60000;limit_ms=60000' >"$log.out"
await 30 shows "$to" 'thole_worker_queue_messages{state="ack_pending"}' 1 1
await 5 shows "$to" 'thole_worker_queue_messages{state="pending"}' 0 0
await 30 shows "$at" thole_engine_oldest_waiting_activity_seconds 0 0 # m-5 has a worker

for series in 'thole_engine_partitions{state="open"} 2 2' 'thole_engine_partitions_opened_total 2 2' 'thole_engine_turns_total 8' \
    'thole_engine_appends_in_flight 0 9' 'thole_engine_inbox_messages_total 8' 'thole_engine_inbox_delay_seconds_count 8' \
    'thole_engine_unprojected_records 0 9' 'thole_engine_instances 1 5' 'thole_engine_parked_instances 1 1' 'thole_engine_cancel_pushes_total 1 1' \
    'thole_engine_cancel_push_delay_seconds_count 1 1' 'thole_engine_requests_total{request="append"} 5' \
    'thole_engine_request_duration_seconds_count{request="append"} 5' 'thole_engine_partitions_closed_total{cause="postgres_lost"} 0 0' \
    'thole_postgres_errors_total{class="unavailable"} 0 0' 'thole_nats_errors_total{class="denied"} 0 0' \
    'thole_serving{role="engine"} 1 1' 'thole_postgres_connections{state="up"} 1'; do
    # shellcheck disable=SC2086
    await 5 shows "$at" $series
done
for series in 'thole_worker_claims_total{outcome="claimed"} 5' 'thole_worker_renewals_total{outcome="renewed"} 0' \
    'thole_worker_completions_total{outcome="accepted"} 3' 'thole_worker_activity_duration_seconds_count{activity="charge"} 4 4' \
    'thole_worker_cancellation_grace_seconds_count 1 1' 'thole_worker_cancellation_delay_seconds_count{path="push"} 1 1' 'thole_worker_tokens_fired_total{path="push"} 1 1' 'thole_worker_slots 16 16' \
    'thole_worker_queue_ok 1 1' 'thole_serving{role="worker"} 1 1'; do
    # shellcheck disable=SC2086
    await 5 shows "$to" $series
done
[ "$(page "$at" /readyz | head -n 1)" != "" ] || { echo '/readyz says nothing' && bad=1; }
if command -v promtool >"$log.out"; then
    for port in "$at" "$to"; do
        page "$port" /metrics | promtool check metrics >"$log.out" 2>&1 || { echo "promtool: $(cat "$log.out")" && bad=1; }
    done
fi
exit "$bad"
