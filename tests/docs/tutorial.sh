#!/usr/bin/env bash
# tutorial.sh SOURCE BUILD CMAKE CC: follows docs/tutorial.md, with thole installed from BUILD instead of being built by
# scripts/quickstart; scripts/test-newcomer does that too, on a bare Debian. As root in a chroot: an overlay of this
# machine, whose /usr/local, HOME and ld.so.cache the page may change. Else in folders of its own, which take the place
# of /usr/local and /var/tmp on the page.
set -eu
source=$1 build=$2 cmake=$3 cc=$4
here=$source/tests/docs
export CC=$cc CFLAGS="-Wall -Wextra -Werror" # the programs of the page have no warnings
for dir in "${POSTGRES_BIN:-}" /usr/lib/postgresql/*/bin; do
    [ ! -x "$dir/initdb" ] || postgres=$dir
done
[ -n "${postgres:-}" ] || { echo "skipped: there is no Postgres server here" && exit 77; }
"$build/cli/thole" dev -- true >/dev/null 2>&1 || "$build/cli/thole" dev -- true || {
    echo "skipped: thole dev cannot start its servers here"
    exit 77
}

# Run again by unshare, alone with its mounts and processes.
if [ "${5:-}" = chroot ]; then
    work=$6
    mount -t tmpfs -o mode=711 tmpfs "$work"
    mkdir "$work/upper" "$work/spare" "$work/all"
    mount -t overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/spare" overlay "$work/all"
    mount -t proc proc "$work/all/proc"
    mount -t tmpfs -o mode=1777 tmpfs "$work/all/tmp" # before what is in it
    for dir in /dev "$source" "$build" "$(dirname "$(realpath "$cmake")")" ${NATS_SERVER:+"$(dirname "$NATS_SERVER")"}; do
        mkdir -p "$work/all$dir"
        mount --rbind "$dir" "$work/all$dir"
    done
    home=$(mktemp -d "$work/all/home/XXXXXX")
    rm -rf "$work/all/usr/local/lib/cmake/thole" "$work/all/var/tmp/trial"
    cd "$source"
    if [ -x build/tools/nats/usr/sbin/nats-server ]; then
        unset NATS_SERVER # it is installed from there, and found
    fi
    env -u TMPDIR HOME="${home#"$work/all"}" PATH="/usr/local/bin:$(dirname "$cmake"):$PATH" \
        FOLLOW_INSTEAD="'$cmake' --install '$build' --prefix /usr/local && ldconfig" \
        chroot "$work/all" bash -c 'cd "$1" && exec tests/docs/follow.sh docs/tutorial.md' follow "$source"
    sleep 0.1
    for name in thole trial nats-server postgres; do
        if pgrep -x "$name" >/dev/null; then
            echo "left behind: $name" && ps -ef && exit 1
        fi
    done
    exit
fi

work=$(mktemp -d)
chmod 711 "$work"
trap 'rm -rf "$work"' EXIT
if [ "$(id -u)" -eq 0 ] && unshare -m bash -c 'mount -t tmpfs tmpfs "$0" && mkdir "$0"/{a,b,c} &&
        mount -t overlay -o "lowerdir=/,upperdir=$0/a,workdir=$0/b" overlay "$0/c"' "$work" 2>/dev/null; then
    unshare -m -p -f --kill-child --mount-proc "$0" "$source" "$build" "$cmake" "$cc" chroot "$work"
    exit
fi
mkdir "$work/home" "$work/prefix"
sed -e "s#/usr/local#$work/prefix#g; s#/var/tmp/trial#$work/trial-data#g" "$source/docs/tutorial.md" >"$work/tutorial.md"
cd "$source"
HOME=$work/home PATH=$work/prefix/bin:$(dirname "$cmake"):$PATH CMAKE_PREFIX_PATH=$work/prefix \
    FOLLOW_INSTEAD="'$cmake' --install '$build' --prefix '$work/prefix'" "$here/follow.sh" "$work/tutorial.md"
