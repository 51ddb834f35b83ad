#!/usr/bin/env bash
# Run by test_cli_command under `thole dev`: the verbs for operators, with engines and workers that come and go.
# cli_operator.sh THOLE CHECKOUT. Prints one line for each check that fails; exit code 0 when there is none.
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
export THOLE_NAMESPACE=shop

# fits PATTERN WORDS...
fits() {
    local pattern=$1
    shift
    "$thole" "$@" 2>&1 | grep -q -- "$pattern"
}
start_engine() {
    "$checkout" engine --node n-1 --partitions 5 >"$log.engine" 2>&1 &
    engine=$!
    await 60 says '"partitions":[0,1,2,3,4]' nodes -o json
}

expect 3 'Try: start an engine' nodes
expect 3 'Try: start an engine' partitions
expect 0 'no engine has set up a namespace here' namespaces
start_engine
expect 0 'n-1                                   engine ' nodes
expect 0 '5 partitions: 0-4' nodes
expect 0 '{"schema":"thole.node_list.v1","nodes":[{"node":"n-1","role":"engine","heartbeat_ms":' nodes -o json
expect 0 '"orchestrations":1,"partitions":[0,1,2,3,4]}],"complete":true}' nodes -o json
lacks worker nodes || { echo 'nodes: a worker that is not there' && bad=1; }
# By the server's clock: a heartbeat comes every third of the 10 s after which it is removed.
age=$("$thole" nodes -o jsonl | grep -o '"heartbeat_ms":[0-9]*' | cut -d: -f2)
[ "${age:-99999}" -lt 10000 ] || { echo "nodes: a heartbeat of $age ms" && bad=1; }
"$checkout" worker --node w-1 >"$log.worker" 2>&1 &
worker=$!
await 60 says '"role":"worker","queue":"default","slots":16,"activities":["' nodes -o jsonl
expect 0 'worker    answers  -                         queue default, 16 slots, 5 activities' nodes

expect 0 'PARTITION  OWNER' partitions
expect 0 '        4  n-1                                   open              1  20' partitions
expect 0 '{"schema":"thole.partition.v1","partition":4,"owner":"n-1","epoch":1,"state":"open","closed_lately":0,"opened_by":"n-1","opened":"20' partitions -o jsonl
[ "$("$thole" partitions | wc -l)" -eq 6 ] || { echo "partitions: $("$thole" partitions)" && bad=1; }
expect 0 ' INBOX LAG  PROJECTION LAG  OPENED' partitions --lag
expect 0 '           0               0  20' partitions --lag
[ "$("$thole" partitions --lag -o jsonl | grep -c '"inbox_lag":0,"projection_lag":0}')" -eq 5 ] || { echo "partitions: $("$thole" partitions --lag)" && bad=1; }

# A stopped engine has taken back its heartbeat.
kill -TERM "$engine" && wait "$engine"
engine=
lacks n-1 nodes || { echo 'nodes: an engine that has stopped' && bad=1; }
expect 0 'queue default' nodes
expect 0 '        0  no owner                              ?                 1  20' partitions
expect 0 '{"schema":"thole.partition_list.v1","partitions":[{"partition":0,"owner":null,"epoch":1,"opened_by":"n-1",' partitions -o json
kill -TERM "$worker" && wait "$worker"
worker=
expect 0 'no engine and no worker runs in this namespace' nodes
expect 0 '"nodes":[],"complete":true}' nodes -o json
"$thole" start checkout --id waiting --input 'order=1' >"$log.out" 2>&1
[ "$("$thole" partitions --lag -o jsonl | grep -c '"inbox_lag":1,"projection_lag":0}')" -eq 1 ] || { echo "partitions: $("$thole" partitions --lag)" && bad=1; }

# Who opens a partition next has the next epoch.
start_engine
await 20 says '        0  n-1                                   open              2  20' partitions
# What waits there without a worker: since when.
await 20 says '"waiting":1,' queue list -o json
await 20 fits '"oldest_ms":[1-9][0-9]*,"delivered":' queue list -o json
fits '^default  *1  *[1-9][0-9]*m*s ' queue list || { echo "queue list: $("$thole" queue list)" && bad=1; }
await 20 says '"inbox_lag":0,' partitions --lag -o jsonl
"$thole" terminate waiting >"$log.out" 2>&1
expect 0 'shop                                           5         1           2  262144' namespaces
THOLE_NAMESPACE=a_b "$checkout" engine --partitions 2 --payload-max 65536 >"$log.other" 2>&1 &
other=$!
await 60 says 'a_b                                            2         1           2  65536' namespaces
expect 0 '{"schema":"thole.namespace_list.v1","namespaces":[{"namespace":"a_b","partitions":2,"replicas":1,"format":' namespaces -o json
expect 0 '{"schema":"thole.namespace.v1","namespace":"shop","partitions":5,"replicas":1,"format":' namespaces -o jsonl
kill -TERM "$other" && wait "$other"

# The web console, until it is asked to end; its verb has no other output. integration.console is about what it serves.
"$thole" console --http 127.0.0.1:0 -o json >"$log.console" &
console=$!
for _ in $(seq 100); do [ -s "$log.console" ] && break || sleep 0.1; done
address=$(sed -n 's,^{"schema":"thole.console.v1"\,"url":"http://\(.*\)/"}$,\1,p' "$log.console")
expect 6 "cannot listen on $address" console --http "$address"
exec 3<>"/dev/tcp/${address/:/\/}" && printf 'GET /api/v1/nodes HTTP/1.0\r\nHost: %s\r\n\r\n' "$address" >&3
grep -q '"node":"n-1"' <&3 || { echo "console: $address does not answer" && bad=1; }
exec 3>&-
kill -TERM "$console" && wait "$console" || { echo "console: exit code $?" && bad=1; }

# The doctor: all is well with an engine and a worker, as far as one server can be.
"$checkout" worker --node w-2 >"$log.worker" 2>&1 &
worker=$!
await 60 says w-2 nodes
for line in 'OK    nats             nats-server 2.' 'OK    jetstream        ' 'OK    namespace        shop has 5 partitions, format 2, ' \
    'OK    nats_clock       the clock of the NATS server is 0 ms ' 'OK    replicas         the server is alone, ' \
    'SKIP  sync_interval    this user cannot see it' 'OK    engines          1 with a heartbeat, ' \
    'OK    partitions       each of 5 has an owner' 'OK    workers          1 answer' 'OK    postgres         Postgres 1' \
    'OK    tables           namespace shop is at migration ' 'OK    postgres_clock   the clock of Postgres is 0 ms ' \
    'OK    rows             those of 5 partitions are as new as the histories' ' OK, 0 WARN, 0 FAIL, 4 SKIP' 'OK    room             account: ' \
    'OK    room             hist (5 streams, ' 'SKIP  audit ' 'SKIP  storage '; do
    expect 0 "$line" doctor
done
# There is a line about room for each kind of stream, and one for the database when an engine has looked at it.
checks=$("$thole" doctor | grep '^OK ' | grep -vc '^OK    room ')
[ "$checks" -eq 21 ] || { echo "thole doctor: $checks checks beside room are OK, instead of 21" && bad=1; }
expect 0 '{"schema":"thole.doctor.v1","checks":[{"check":"nats","result":"OK","seen":"nats-server 2.' doctor -o json
expect 0 '{"schema":"thole.check.v1","check":"partitions","result":"OK","seen":"each of 5 has an owner"}' doctor -o jsonl
THOLE_POSTGRES='' expect 0 'SKIP  postgres         Postgres was not looked at' doctor
THOLE_POSTGRES="${THOLE_POSTGRES/:*@/:wrong@}" expect 12 'FAIL  postgres  ' doctor
expect 12 'FAIL  namespace        namespace nowhere has not been set up' doctor -n nowhere
expect 12 'FAIL  tables           namespace nowhere has no tables' doctor -n nowhere
expect 12 '"check":"nats","result":"FAIL","seen":"' doctor --nats nats://127.0.0.1:1 -o json
expect 12 'OK    postgres ' doctor --nats nats://127.0.0.1:1
expect 2 '--nats-permissions is missing' doctor --verb start
kill -TERM "$worker" && wait "$worker"
worker=
expect 0 'WARN  workers          no worker answers' doctor
kill -TERM "$engine" && wait "$engine"
engine=
expect 12 'FAIL  engines          no engine has a heartbeat' doctor
expect 12 'FAIL  partitions       5 of 5 have no owner: 0, 1, 2, 3, 4' doctor
exit "$bad"
