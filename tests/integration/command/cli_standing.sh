#!/usr/bin/env bash
# Run by test_standing under `thole dev`: instances that do not go on, and where that is seen.
# cli_standing.sh THOLE BUILD. Prints one line for each check that fails; exit code 0 when there is none.
set -u
thole=$1
verbs=$2/tests/program_verbs
approval=$2/examples/approval
bad=0
log=$(mktemp)
programs=
finish() {
    for pid in $programs; do
        kill -TERM "$pid" 2>/dev/null && wait "$pid"
    done
    rm -f "$log" "$log".*
}
trap finish EXIT
. "$(dirname "$0")/cli_checks.sh"
export THOLE_NAMESPACE=stands

# begin NAME PROGRAM WORDS...: its log is $log.NAME, its process $begun.
begin() {
    local name=$1
    shift
    "$@" >"$log.$name" 2>&1 &
    begun=$!
    programs="$programs $begun"
}
end() {
    kill -TERM "$1" && wait "$1"
    programs=${programs/ $1/}
}
logged() { grep -qF -- "$1" "$log.$2"; }
metric() { curl -s "http://$address/metrics" | grep -qF -- "$1"; }

# ---- one engine, no worker ----
begin one "$verbs" engine --node n-1 --partitions 5 --http 127.0.0.1:0
one=$begun
await 60 says '"partitions":[0,1,2,3,4]' nodes -o json
address=$(grep -o '127.0.0.1:[0-9]*' "$log.one" | head -1)

await 30 says 'OK    instances        none waits for code, is Stuck or is paused' doctor
await 30 "$thole" doctor
expect 0 's-1' start steps --id s-1
expect 8 'instance "s-1" does not go on: activity echo waits: no worker serves queue default' wait s-1 --timeout 6s
expect 8 'Try: start a worker for that queue' run steps --id s-2 --timeout 6s
expect 0 'WARN  queues           2 of activity echo wait: no worker serves queue default' doctor
expect 0 'next step       start a worker for that queue' show s-1
expect 0 '"hindrances":[{"kind":"no_worker","text":"activity echo waits: ' show s-1 -o json

# ---- no code: the text, and where it is seen ----
expect 0 'c-1' start expense --id c-1
await 20 says 'Waiting' show c-1
expect 0 "engine n-1, which owned partition" show c-1
expect 0 "does not have orchestration 'expense': all engines of a namespace must have the same orchestrations" show c-1
expect 0 'reason          no_code' show c-1
expect 0 'next step       no engine that runs has it: start the program that registers it' show c-1
expect 0 '"reason":"no_code","next_step":"an engine that has it lets it go on' show c-1 -o json
expect 8 'instance "c-1" does not go on: the instance waits for code: engine n-1, which owned' wait c-1 --timeout 6s
expect 0 'WARN  instances        1 of orchestration expense: Waiting, no_code, such as c-1 since ' doctor
expect 0 'Try: thole show c-1; an engine that has it lets it go on, thole terminate c-1 ends' doctor
await 5 logged 'orchestration expense waits for code: engine n-1, which owned' one
[ "$(grep -cF 'orchestration expense waits for code' "$log.one")" -eq 1 ] || { echo 'said more than once' && bad=1; }
await 40 metric 'thole_engine_standing_instances{orchestration="expense",reason="no_code"} 1'
metric 'thole_engine_events_total{event="stopped_no_code"} 1' || { echo 'no count of stopped_no_code' && bad=1; }

# ---- paused, and an event under a mistyped name ----
expect 0 'g-1' start gate --id g-1
expect 0 'accepted' pause g-1 --reason 'the audit'
await 20 says 'Paused' show g-1
expect 0 'detail          the audit' show g-1
expect 0 'next step       thole resume g-1 lets it go on' show g-1
expect 0 'g-2' start gate --id g-2
expect 0 'is stored' signal g-2 goo
expect 0 'is stored' signal g-2 goo
await 20 says 'event kept      goo (2): nothing has waited for it yet' show g-2
expect 0 '"events_kept":[{"name":"goo","count":2}]' show g-2 -o json

# ---- lists ----
expect 0 'c-1' list --status waiting
lacks c-1 list --status running || { echo 'running has one that waits' && bad=1; }
for wish in '--status open' '--status waiting,paused,running' '--status waiting --status paused --status running'; do
    # shellcheck disable=SC2086
    [ "$("$thole" list $wish -o name | sort | tr '\n' ' ')" = 'c-1 g-1 g-2 s-1 s-2 ' ] || { echo "list $wish: $("$thole" list $wish)" && bad=1; }
done
expect 2 'none of: any, running' list --status waiting,tired

# ---- a point that is not there ----
expect 3 'instance "s-1" has no execution 5, or it was pruned: its latest is 1' show s-1 --at 5.1

# ---- a child that does not go on ----
expect 0 'p-1' start parent --id p-1
await 20 says 'event go' show p-1-child
expect 0 'accepted' pause p-1-child --reason 'the audit'
await 20 says 'Paused' show p-1-child
expect 8 'instance "p-1" does not go on: child "p-1-child" does not go on: the instance is paused: the audit' wait p-1 --timeout 6s
expect 0 '"hindrances":[{"kind":"child","text":"child \"p-1-child\" does not go on: ' show p-1 -o json
expect 0 'child p-1-child: thole resume p-1-child lets it go on' show p-1
expect 0 'accepted' resume p-1-child
await 20 says 'Running' show p-1-child
lacks 'does not go on' show p-1 || { echo 'p-1 goes on' && bad=1; }

# ---- another program joins ----
begin two "$approval" engine --node n-2 --partitions 5
two=$begun
await 30 logged 'engine n-2 has other orchestrations than this one: it lacks ' one
await 30 logged 'engine n-1 has other orchestrations than this one: it lacks expense' two
await 30 says 'WARN  code             engines have different orchestrations: ' doctor
await 30 says 'Running' show c-1 # its partition goes to the engine that knows it
end "$two"

# ---- other code ----
begin work "$verbs" worker --node w-1
expect 0 'h-1' start halts --id h-1
await 30 says 'event go' show h-1
end "$one"
VERBS_CHANGED=1 begin three "$verbs" engine --node n-3 --partitions 5 --http 127.0.0.1:0
await 60 says '"partitions":[0,1,2,3,4]' nodes -o json
address=$(grep -o '127.0.0.1:[0-9]*' "$log.three" | head -1)
expect 0 'is stored' signal h-1 go
await 30 says 'Stuck' show h-1
expect 0 'asked for at halts (program_verbs.c:' show h-1
expect 0 'reason          divergence' show h-1
expect 0 'next step       it goes on with the code that its history is from' show h-1
expect 0 'WARN  instances        1 of orchestration halts: Stuck, divergence, such as h-1 since ' doctor
logged 'orchestration halts is Stuck: event ' three || { echo "no warning: $(cat "$log.three")" && bad=1; }
logged 'asked for at halts (program_verbs.c:' three || { echo 'the warning has no line' && bad=1; }
await 40 metric 'thole_engine_standing_instances{orchestration="halts",reason="divergence"} 1'
expect 8 'instance "h-1" does not go on: the instance is Stuck: event ' wait h-1 --timeout 6s
expect 0 '{"schema":"thole.retry.v1","instance":"h-1","accepted":true' retry h-1 -o json

# ---- a second cancellation, which changes nothing ----
expect 0 'the cancellation is kept until its code runs again' cancel h-1 --reason 'the first'
await 20 says 'CancelRequested' history h-1
expect 0 'already: this one changes nothing, and its reason is not kept' cancel h-1 --reason 'the second'

# ---- the gate ----
expect 126 'true has not said what it has replayed' replay g-2 -- true
expect_of env 11 'NO_CODE h-1 execution 1 turn 1: it runs, and verbs has no version 1 of orchestration halts' VERBS_WITHOUT=1 "$thole" replay h-1 -- "$verbs"
expect 5 'DIVERGED h-1 execution 1' replay h-1 -- env VERBS_CHANGED=1 "$verbs"
expect 0 '0 diverged' replay g-2 -- "$verbs"
exit "$bad"
