# SPDX-License-Identifier: MIT
#
# For tests of the command line: a work folder, and comparing exit code and output of a command.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checks=0

# code WANTED COMMAND...: the exit code; output goes to $work/out and $work/err
code() {
    local wanted=$1 found=0
    shift
    "$@" >"$work/out" 2>"$work/err" || found=$?
    if [ "$found" != "$wanted" ]; then
        echo "FAILED: $* gave $found, not $wanted" >&2
        cat "$work/out" "$work/err" >&2
        exit 1
    fi
    checks=$((checks + 1))
}

# says TEXT [FILE]: a line of the file (default: what the last command wrote to stderr) holds the text
says() {
    if ! grep -qF -- "$1" "${2:-$work/err}"; then
        echo "FAILED: '$1' is not in:" >&2
        cat "${2:-$work/err}" >&2
        exit 1
    fi
    checks=$((checks + 1))
}

same() {
    cmp "$1" "$2"
    checks=$((checks + 1))
}

empty() {
    if [ -s "$1" ]; then
        echo "FAILED: $1 is not empty:" >&2
        cat "$1" >&2
        exit 1
    fi
    checks=$((checks + 1))
}

finish() { echo "$checks checks passed"; }
