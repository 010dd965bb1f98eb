#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The example program against the installed tree: found by pkg-config and as a CMake package, shared and static, in C and
# in C++. All of them have to say the same. Then what is installed is looked at: names, exported symbols, leftovers.
source "$(dirname "$0")/../cli/lib.sh"

DESTDIR=$work/root cmake --install "$SOTTO_BUILD" >"$work/installed"
prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:.*=//p' "$SOTTO_BUILD/CMakeCache.txt")
root=$work/root$prefix
pc=$(find "$root" -name sotto.pc)
lib=$(dirname "$(dirname "$pc")")
grep -qF "$root/bin/sotto" "$work/installed"
code 0 "$root/bin/sotto" help

"$SOTTO_BUILD"/tests/write_tiny_model "$work/tiny.gguf"
{
    printf 'RIFF\x24\xFA\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x80\x3E\0\0\0\x7D\0\0\2\0\x10\0data\0\xFA\0\0'
    yes sotto | head -c 64000
} 2>/dev/null >"$work/sound.wav" || true

example=$SOTTO_SOURCE/examples/transcribe.c
warnings=(-Wall -Wextra -pedantic -Werror)
found() { PKG_CONFIG_SYSROOT_DIR=$work/root PKG_CONFIG_PATH=$(dirname "$pc") pkg-config "$@" sotto-speech sotto-media; }

# runs PROGRAM: usage, a file that is not there, and a recording; the first one's words are what all have to say
runs() {
    code 2 "$1"
    says "usage:"
    code 1 "$1" "$work/tiny.gguf" /nonexistent.wav
    says "SOTTO_E_IO"
    code 0 "$1" "$work/tiny.gguf" "$work/sound.wav"
    empty "$work/err"
    [ -f "$work/expected" ] || mv "$work/out" "$work/expected"
    [ ! -f "$work/out" ] || same "$work/out" "$work/expected"
}

# both KIND FLAG...: compile as C and as C++ with pkg-config's flags, and run
both() {
    local kind=$1 flags
    shift
    read -ra flags <<<"$(found "$@")"
    "${CC:-cc}" -std=c11 "${warnings[@]}" "$example" -o "$work/c-$kind" "${flags[@]}"
    "${CXX:-c++}" -std=c++17 "${warnings[@]}" -x c++ "$example" -x none -o "$work/c++-$kind" "${flags[@]}"
    runs "$work/c-$kind"
    runs "$work/c++-$kind"
}

mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.21)
project(example C)
find_package(sotto 0.1 CONFIG REQUIRED COMPONENTS \${KIND})
add_executable(example $example)
target_link_libraries(example PRIVATE sotto::speech sotto::media)
add_executable(convert convert.c)
target_link_libraries(convert PRIVATE sotto::models)
EOF
cat >"$work/project/convert.c" <<EOF
#include <sotto/models.h>
int main(int argc, char ** argv) { return argc == 3 && sotto_convert(argv[1], argv[2], NULL) == SOTTO_OK ? 0 : 1; }
EOF

# package KIND: the same through find_package
package() {
    cmake -S "$work/project" -B "$work/cmake-$1" -DKIND="$1" -DCMAKE_PREFIX_PATH="$root" >"$work/log"
    cmake --build "$work/cmake-$1" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    runs "$work/cmake-$1/example"
    code 0 "$work/cmake-$1/convert" "$work/tiny.gguf" "$work/tiny.bin"
}

if [ -e "$lib/libsotto.so" ]; then
    export LD_LIBRARY_PATH=$lib
    both shared --cflags --libs
    package shared
    readelf -d "$work/c-shared" >"$work/needed"
    says "libsotto-speech.so." "$work/needed"
    for library in "$lib"/libsotto*.so; do
        # a name with a version, and nothing exported that is not ours
        readelf -d "$library" >"$work/needed"
        says "SONAME" "$work/needed"
        [ -e "$lib/$(sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p' "$work/needed")" ]
        nm -D --defined-only --format=posix "$library" | awk '$1 !~ /^sotto_/ { print $1 }' >"$work/foreign"
        empty "$work/foreign"
        nm -D --defined-only --format=posix "$library" | awk '$1 ~ /^sotto_i_/ { print $1 }' >"$work/internal"
        empty "$work/internal"
    done
    rm "$lib"/libsotto*.so* # so that -lsotto means the archive
fi
unset LD_LIBRARY_PATH
both static --static --cflags --libs
package static
readelf -d "$work/c-static" | grep libsotto >"$work/needed" || true
empty "$work/needed"
says " - " "$work/expected"
finish
