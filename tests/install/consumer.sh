#!/usr/bin/env bash
# consumer.sh SOURCE BUILD CMAKE CC: installs into a temporary prefix, moves it, then builds and runs a user's program
# against it: the shared library through find_package and pkg-config, the static one through find_package. Looks at the
# hardening of what is installed (hardening.sh): what the preset built, the static build, and a build of the other compiler.
set -eu
source=$1 build=$2 cmake=$3 cc=$4
here=$source/tests/install
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PKG_CONFIG_PATH=

by_find_package() { # PREFIX FOLDER
    mkdir "$work/$2"
    cp "$here/consumer.c" "$work/$2/"
    cp "$here/project.cmake" "$work/$2/CMakeLists.txt"
    "$cmake" -S "$work/$2" -B "$work/$2/build" -G Ninja -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$1" >/dev/null
    "$cmake" --build "$work/$2/build" >/dev/null
    LD_LIBRARY_PATH= "$work/$2/build/consumer"
}

# What compiles and does nothing, or goes on where it should end, is a warning of the compiler.
slips() { # FLAG...
    local line
    for line in 'thole_call(ctx, in, in)' 'thole_timer(ctx, 1)' 'thole_event(ctx, in)' 'thole_child(ctx, in, in, NULL)' \
        'thole_throw(ctx, "x")' 'thole_throw_as(ctx, in, "x")' 'thole_activity_fail(act, "x")' 'thole_activity_fail_final(act, in, "x")'; do
        printf '#include <thole/activity.h>\n#include <thole/orchestration.h>\nvoid slip(thole_ctx *ctx, thole_activity *act, thole_slice in);\n' >"$work/slip.c"
        printf 'void slip(thole_ctx *ctx, thole_activity *act, thole_slice in) { (void)ctx, (void)act, (void)in; %s; }\n' "$line" >>"$work/slip.c"
        if "$cc" -std=c11 -Werror "$@" -c "$work/slip.c" -o "$work/slip.o" 2>/dev/null; then
            echo "no warning: $line"
            return 1
        fi
    done
}

by_pkg_config() { # PREFIX
    local dir
    dir=$(dirname "$(find "$1" -name thole.pc)")
    export PKG_CONFIG_PATH=$dir
    # shellcheck disable=SC2046
    "$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror "$here/consumer.c" -o "$work/consumer" $(pkg-config --cflags --libs thole)
    LD_LIBRARY_PATH=$(pkg-config --variable=libdir thole) "$work/consumer"
    slips $(pkg-config --cflags thole)
    command -v c++ >/dev/null || return 0
    # shellcheck disable=SC2046
    c++ -std=c++17 -Wall -Wextra -Werror "$here/consumer.cpp" -o "$work/consumer-c++" $(pkg-config --cflags --libs thole)
    LD_LIBRARY_PATH=$(pkg-config --variable=libdir thole) "$work/consumer-c++"
}

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/shared" # nothing in it may know where it was installed
echo "the wire contract"
contract() { # PREFIX: its files, with what is in the source, and no others
    local shared=$1/share/thole name
    for name in gateway history messages; do
        cmp "$source/proto/$name.proto" "$shared/$name.proto"
        cmp "$source/proto/golden/$name.json" "$shared/golden/$name.json"
    done
    for name in vectors.json read_export.py; do
        cmp "$source/proto/golden/exports/$name" "$shared/golden/exports/$name"
    done
    for name in vectors.json record_hash.py; do
        cmp "$source/proto/golden/records/$name" "$shared/golden/records/$name"
    done
    cmp "$source/proto/golden/ranges.json" "$shared/golden/ranges.json"
    [ "$(cd "$shared" && find . -type f \( -name '*.proto' -o -path './golden/*' \) | wc -l)" -eq 11 ]
}
contract "$work/shared"
echo "shared, find_package"
by_find_package "$work/shared" consumer-shared
echo "shared, pkg-config"
by_pkg_config "$work/shared"
if [ -x "$work/shared/bin/thole" ]; then
    "$work/shared/bin/thole" version
fi
"$here/hardening.sh" "$work/shared" || [ $? -eq 77 ]

echo "shared, dlopen"
"$cc" -std=gnu11 "$here/opened.c" -o "$work/opened" -ldl -lpthread
LD_LIBRARY_PATH= "$work/opened" "$(find "$work/shared" -name libthole.so)"

echo "static, find_package"
install_from() { # NAME CC OPTION...: builds optimised into build/install-NAME, installs into the prefix NAME
    local name=$1 compiler=$2
    shift 2
    "$cmake" -S "$source" -B "$build/install-$name" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DTHOLE_BUILD_TESTS=OFF -DTHOLE_BUILD_EXAMPLES=OFF -G Ninja "$@" >/dev/null
    "$cmake" --build "$build/install-$name" --target thole thole_command >/dev/null
    "$cmake" --install "$build/install-$name" --prefix "$work/$name" >/dev/null
    "$here/hardening.sh" "$work/$name" fortified || [ $? -eq 77 ]
}
install_from static "$cc" -DBUILD_SHARED_LIBS=OFF
if find "$work/static" -name 'libthole.so*' | grep .; then
    echo "the static build installed a shared library"
    exit 1
fi
by_find_package "$work/static" consumer-static

other=clang
if "$cc" --version | grep -q clang; then
    other=gcc
fi
if command -v "$other" >/dev/null; then
    echo "shared, built by $other"
    install_from "$other" "$other"
    by_find_package "$work/$other" "consumer-$other"
fi
