#!/usr/bin/env bash
# The web shop: orders through five programs in four languages, each of which is killed once with -9 while an order is on its way.
#   thole dev -- examples/webshop/webshop.sh BUILD_DIR PAY PYTHON SHIP
# PAY: the program of pay/; PYTHON: one that has nats-py; SHIP: ship.mjs, where it finds the Node client (scripts/test-webshop
# prepares all three). Prints what came of each order, and how long a customer's cancellation takes to the charge that runs.
# Exit code 0: every order ended right, and the fastest cancellation took less than 5 ms.
set -eu -o pipefail
[ $# -eq 4 ] || { echo "usage: thole dev -- $0 BUILD_DIR PAY PYTHON SHIP" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
thole=$1/cli/thole webshop=$1/examples/webshop pay=$2 python=$3 ship=$4
logs=$(mktemp -d)
declare -A pid

finish() {
    trap - EXIT
    trap '' INT TERM
    for name in "${!pid[@]}"; do kill -KILL -- "-${pid[$name]}" 2>/dev/null || true; done
    [ -n "${WEBSHOP_KEEP:-}" ] || rm -rf "$logs"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

die() {
    echo "webshop: $*" >&2
    tail -n 5 "$logs"/*.log >&2
    exit 1
}

# start NAME COMMAND...: in a process group of its own, so that -9 reaches all of it.
start() {
    local name=$1
    shift
    setsid "$@" >>"$logs/$name.log" 2>&1 </dev/null &
    pid[$name]=$!
}

run() {
    case $1 in
        engine) start engine "$webshop" engine --events-age 1h --events-mode structured --node-ttl 2s ;;
        gateway) start gateway "$thole" gateway --lease 2s --node "gateway-$RANDOM" ;;
        binder) start binder "$thole" binder ;;
        pay) start pay "$pay" ;;
        ship) start ship node "$ship" ;;
    esac
}

# killed NAME: kill -9, and once more from the beginning.
killed() {
    echo "  kill -9 of $1"
    kill -KILL -- "-${pid[$1]}"
    wait "${pid[$1]}" 2>/dev/null || true
    run "$1"
}

# until_true COMMAND...: at most a minute.
until_true() {
    local tries=0
    until "$@" >/dev/null 2>&1; do
        [ $((tries += 1)) -le 600 ] || die "not after a minute: $*"
        sleep 0.1
    done
}

logged() { grep -qF -- "$2" "$logs/$1.log"; }
order() { timeout 120 "$python" "$here/shop.py" "$@" >>"$logs/shop.log" 2>&1; }

# check ORDER OUTPUT: the instance ended, and once.
check() {
    local got
    got=$("$thole" wait "order-$1" --timeout 60s) || die "order $1 did not complete: $got"
    [ "$got" = "$2" ] || die "order $1 gave $got, not $2"
    echo "order $1: $got"
}

shipped() { printf '{"order":%d,"parcel":"P-%d"}' "$1" "$1"; }

"$python" "$here/shop.py" setup || die "no stream SHOP"
for name in engine gateway binder; do run "$name"; done
until_true "$thole" bind set placed --subject shop.order.placed --action start --orchestration order --to 'order-{json.order}'
until_true "$thole" bind set withdrawn --subject shop.order.withdrawn --action signal --event-name withdrawn --to 'order-{json.order}'
for name in pay ship; do run "$name"; done

echo "== an order"
order 1 50 || die "the shop heard nothing of it"
check 1 "$(shipped 1)"

number=10
for name in engine gateway binder pay ship; do
    echo "== $name is killed while an order is charged"
    order $number 1500 &
    shop=$!
    [ "$name" = binder ] || until_true logged pay "charging order-$number "
    killed "$name"
    wait "$shop" || die "the shop failed: $(tail -n 3 "$logs/shop.log")"
    check $number "$(shipped $number)"
    number=$((number + 1))
done

echo "== the shop is killed, and places its order again"
setsid "$python" "$here/shop.py" 20 800 >>"$logs/shop.log" 2>&1 &
shop=$!
until_true logged pay "charging order-20 "
kill -KILL -- "-$shop"
wait "$shop" 2>/dev/null || true
order 20 800 || die "the shop heard nothing of it"
check 20 "$(shipped 20)"
[ "$(grep -c 'charging order-20 ' "$logs/pay.log")" = 1 ] || die "order 20 was charged twice"

echo "== customers change their minds while they are charged"
: >"$logs/times"
for number in $(seq 100 119); do
    order "$number" 60000 200 || die "the shop heard nothing of it"
    check "$number" cancelled >/dev/null
    from=$(sed -n "s/^withdrawing order-$number at_us=\([0-9]*\)$/\1/p" "$logs/shop.log")
    until_true logged pay "stopped order-$number "
    to=$(sed -n "s/^stopped order-$number at_us=\([0-9]*\)$/\1/p" "$logs/pay.log")
    echo $((to - from)) >>"$logs/times"
done
times=$(sort -n "$logs/times")
least=$(head -n 1 <<<"$times")
median=$(sed -n 10p <<<"$times")
echo "from the shop's publish to the charge's end: least $least us, median $median us, of 20"
[ "$least" -lt 5000 ] || die "the fastest cancellation took $least us"
echo "all orders ended right"
