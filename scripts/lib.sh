# shellcheck shell=bash
# Sourced by the scripts here: brings a Debian 12 or 13 to the point where thole builds and its servers start.
# Installs only what is missing, so that a second run needs no network. Nothing of the system is replaced.
set -eu -o pipefail
THOLE_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
THOLE_TOOLS=$THOLE_TOP/build/tools
mkdir -p "$THOLE_TOP/build" # for logs, also when nothing has to be installed or fetched
NATS_VERSION_MIN=2.10.23 # older ones can lose what they acknowledged; Debian 12 has 2.9.10

PACKAGES_BUILD='gcc libc6-dev cmake make ninja-build pkg-config libnats-dev libprotobuf-c-dev protobuf-c-compiler libpq-dev libssl-dev libmicrohttpd-dev libyaml-dev'
PACKAGES_TEST='g++ binutils git libcunit1-dev clang clang-format libcjson-dev protobuf-compiler bsdutils procps python3 pgbouncer zsh fish'
PACKAGES_FUZZ='clang libclang-rt-dev'

say() { printf '%s\n' "$*" >&2; }

# The head of a script says what it does, what it takes and how long that lasts.
case ${1:-} in
    -h | --help)
        sed -n '2,${/^#/!q; s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
esac

# What a script does not take is refused before it does anything.
unknown_option() { # ARGUMENT
    say "error: $(basename "$0") does not take $1"
    say "Try: $0 --help"
    exit 2
}
take_words() { # MOST "$@": no options, and at most so many words
    local most=$1 word
    shift
    for word in "$@"; do
        case $word in -*) unknown_option "$word" ;; esac
    done
    [ $# -le "$most" ] || unknown_option "${*:most+1}"
}
take_pair() { # OPTION [VALUE]: an option that wants a value
    [ $# -ge 2 ] || { say "error: $1 wants a value" && exit 2; }
}
die() {
    say "error: $*"
    exit 1
}

# logged LOG COMMAND...: what it writes goes to LOG; of a build, how far it is, every ten seconds.
logged() {
    local log=$1 teller code=0
    shift
    : >"$log"
    while sleep 10; do tail -n 1 "$log" | grep -oE '^\[[0-9]+/[0-9]+\]' >&2 || true; done &
    teller=$!
    "$@" >"$log" 2>&1 || code=$?
    kill "$teller" 2>/dev/null && wait "$teller" 2>/dev/null || true
    return "$code"
}

# missing_packages NAME...: those that are not installed.
missing_packages() {
    local name
    for name in "$@"; do
        case $(dpkg-query -W -f '${Status}' "$name" 2>/dev/null) in
            *' installed') ;;
            *) printf '%s ' "$name" ;;
        esac
    done
}

# apt_get ARGUMENT...: quietly; what it wrote is shown when it fails.
apt_get() {
    local log=$THOLE_TOP/build/apt.log
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1 </dev/null || {
        tail -n 20 "$log" >&2
        return 1
    }
}

# need_packages NAME...: installs what is missing, or says what to type.
need_packages() {
    local missing
    if ! command -v dpkg-query >/dev/null; then
        say "note: no dpkg here, so what is missing cannot be installed: $*"
        return
    fi
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ]; then # all at once: also the server that would be missed next
        [ "$*" = postgresql ] || find_postgres || missing+=postgresql
        die "packages are missing. As root: apt-get update && apt-get install -y --no-install-recommends ${missing% }"
    fi
    say "installing: $missing"
    apt_get update || die "apt-get update failed: is there a network, and is a Debian mirror configured?"
    # shellcheck disable=SC2086
    apt_get install -y --no-install-recommends $missing || die "could not install: $missing"
}

# ---- Postgres ------------------------------------------------------------------------------------------------

# The newest installed server. /usr/lib/postgresql first: what is on PATH may be a client, or of another origin.
find_postgres() {
    local dir
    if [ -n "${POSTGRES_BIN:-}" ] && [ -x "$POSTGRES_BIN/initdb" ]; then
        return 0
    fi
    for dir in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -t/ -k5 -rn); do
        if [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ]; then
            POSTGRES_BIN=$dir
            return 0
        fi
    done
    return 1
}

# debian_root FOLDER: this machine's Debian, its smallest variant, from this machine's mirror. Made once.
debian_root() {
    local mirror suite
    [ ! -e "$1.ready" ] || return 0
    mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true; } | awk '/^URIs:/ {print $2; exit} /^deb / {print $2; exit}')
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    say "making a Debian $suite"
    rm -rf "$1"
    debootstrap --variant=minbase --include=ca-certificates "$suite" "$1" "$mirror" >"$1.log" 2>&1 || die "see $1.log"
    rm -f "$1/etc/apt/sources.list"
    cp -r /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d /etc/apt/keyrings "$1/etc/apt/" 2>/dev/null || true
    : >"$1.ready"
}

# Debian's package makes and starts a cluster of its own on port 5432 unless it is told not to; the wish is taken
# back afterwards, on Ctrl-C too.
install_postgres() (
    conf=/etc/postgresql-common/createcluster.conf
    if [ -z "$(missing_packages postgresql-common)" ]; then
        need_packages postgresql
        exit
    fi
    need_packages postgresql-common
    cp -p "$conf" "$conf.thole" || exit 1
    trap 'mv "$conf.thole" "$conf"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    printf 'create_main_cluster = false\n' >>"$conf"
    need_packages postgresql
)

need_postgres() {
    find_postgres || {
        install_postgres || exit
        find_postgres || die "no Postgres server in /usr/lib/postgresql; set POSTGRES_BIN to the folder of initdb and postgres"
    }
    export POSTGRES_BIN
}

# ---- NATS ----------------------------------------------------------------------------------------------------

# nats_is_new_enough PATH
nats_is_new_enough() {
    local version
    [ -n "$1" ] && [ -x "$1" ] || return 1
    version=$("$1" --version 2>/dev/null | sed -n 's/.*v\([0-9][0-9.]*\).*/\1/p')
    [ -n "$version" ] && [ "$(printf '%s\n%s\n' "$NATS_VERSION_MIN" "$version" | sort -V | head -n 1)" = "$NATS_VERSION_MIN" ]
}

find_nats() {
    local candidate
    for candidate in "${NATS_SERVER:-}" "$(command -v nats-server || true)" /usr/sbin/nats-server "$THOLE_TOOLS/nats/usr/sbin/nats-server"; do
        if nats_is_new_enough "$candidate"; then
            NATS_SERVER=$candidate
            return 0
        fi
    done
    return 1
}

# debian_sources SUITE FOLDER: this machine's own Debian mirror entries, for another suite, into FOLDER. Entries of
# other vendors are left out: an entry counts when it offers the suite that this machine runs, with component main.
debian_sources() {
    local here file
    here=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -f "$file" ] || continue
        awk -v here="$here" -v suite="$1" '
            $1 == "deb" { at = 2
                if ($2 ~ /^\[/) { while (at < NF && $at !~ /\]$/) at++; at++ }
                if ($(at + 1) == here && $0 ~ /[ \t]main([ \t]|$)/) { $(at + 1) = suite; print } }' "$file"
    done >"$2/debian.list"
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -f "$file" ] || continue
        awk -v here="$here" -v suite="$1" '
            function flush() {
                if (text != "" && suites ~ "(^|[ \t])" here "([ \t]|$)" && components ~ /(^|[ \t])main([ \t]|$)/ && !off) print text
                text = suites = components = ""; off = 0 }
            /^[ \t]*$/ { flush(); next }
            /^#/ { next }
            tolower($1) == "suites:" { suites = $0; sub(/^[^:]*:[ \t]*/, "", suites); text = text "Suites: " suite "\n"; next }
            tolower($1) == "components:" { components = $0; sub(/^[^:]*:[ \t]*/, "", components); text = text "Components: main\n"; next }
            tolower($1) == "types:" { text = text "Types: deb\n"; next }
            tolower($1) == "enabled:" { off = tolower($2) == "no"; next }
            { text = text $0 "\n" }
            END { flush() }' "$file"
    done >"$2/debian.sources"
    [ -s "$2/debian.list" ] || [ -s "$2/debian.sources" ]
}

# fetch_nats SUITE: downloads SUITE's package with a package state of its own, and unpacks it privately. It is never
# installed: an installed package would start a server on port 4222, and on Debian 12 belongs to another release.
fetch_nats() {
    local apt=$THOLE_TOOLS/apt-$1 options
    rm -rf "$apt"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/parts"
    debian_sources "$1" "$apt/parts" || return 1
    options=(-o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o Dir::Etc::sourcelist=/dev/null
        -o "Dir::Etc::sourceparts=$apt/parts" -o APT::Get::List-Cleanup=0 -o Acquire::Languages=none
        -o APT::Sandbox::User=root)
    say "fetching nats-server of Debian $1 into build/tools"
    apt_get "${options[@]}" update || return 1
    (cd "$apt" && apt_get "${options[@]}" download nats-server) || return 1
    rm -rf "$THOLE_TOOLS/nats"
    mkdir -p "$THOLE_TOOLS/nats"
    dpkg-deb -x "$apt"/nats-server_*.deb "$THOLE_TOOLS/nats" || return 1
    rm -rf "$apt"
    nats_is_new_enough "$THOLE_TOOLS/nats/usr/sbin/nats-server"
}

# Puts promtool on PATH, if it can be had: of Debian's package, unpacked privately, since an installed one starts a server.
want_promtool() {
    local at=$THOLE_TOOLS/prometheus
    ! command -v promtool >/dev/null || return 0
    if [ ! -x "$at/usr/bin/promtool" ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        say "fetching promtool into build/tools"
        rm -rf "$at"
        mkdir -p "$at"
        (cd "$at" && apt_get -o APT::Sandbox::User=root download prometheus && dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb) || true
    fi
    [ ! -x "$at/usr/bin/promtool" ] || export PATH=$at/usr/bin:$PATH
    command -v promtool >/dev/null || say "note: there is no promtool: what Prometheus says of metrics and rules is not tested"
}

need_nats() {
    local suite
    if ! find_nats; then
        command -v apt-get >/dev/null || die "nats-server $NATS_VERSION_MIN or newer is needed: put it on PATH, or set NATS_SERVER"
        suite=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
        [ "$suite" != bookworm ] || suite=trixie
        fetch_nats "$suite" && find_nats || die "could not fetch nats-server $NATS_VERSION_MIN or newer from the configured" \
            "Debian mirror. Put one on PATH, or set NATS_SERVER to its path; see https://github.com/nats-io/nats-server/releases"
    fi
    export NATS_SERVER
}

# at_least MINIMUM VERSION
at_least() { [ -n "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }
