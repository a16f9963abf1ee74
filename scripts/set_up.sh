#!/usr/bin/env bash
# Makes .venv hold exactly the pinned packages of one level: `set_up.sh runtime` or `set_up.sh dev`.
# `set_up.sh peers` and `set_up.sh audit` make environments of their own: for what the benchmarks
# compare cuepost with, and for the scanner of advisories.
# A second call with nothing changed returns at once.
set -euo pipefail

level="${1:?runtime, dev, peers or audit}"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root="$PWD"
venv="$root/.venv"
is_apart() { [ "$level" = peers ] || [ "$level" = audit ]; }
! is_apart || venv="$root/.cache/$level"
python="$venv/bin/python"

find_python() {
    local wanted candidate
    for wanted in '(3, 11) <= v < (3, 14)' 'v >= (3, 11)'; do
        for candidate in "${PYTHON:-python3}" python3 python3.13 python3.12 python3.11 python3.14 \
            /usr/bin/python3 /usr/local/bin/python3; do
            if "$candidate" -c "import sys, venv; v = sys.version_info; sys.exit(not ($wanted))" \
                >/dev/null 2>&1; then
                command -v "$candidate"
                return
            fi
        done
    done
    echo "cuepost needs Python 3.11 or newer on PATH (or PYTHON=/path/to/python3)." >&2
    return 1
}

# The place is part of it: a virtual environment that was copied elsewhere does not work there.
fingerprint() {
    echo "$root"
    if is_apart; then
        cksum <"requirements/$1.txt"
        return
    fi
    cat pyproject.toml packages/receiver/pyproject.toml requirements/build.txt "requirements/$1.txt" | cksum
}

is_current() {
    local stamp="$venv/.set-up-$1"
    [ -x "$python" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint "$1")" ]
}

# The development set contains the runtime set.
nothing_to_do() {
    is_current "$level" || is_current dev
}

make_venv() {
    if "$python" -c '' 2>/dev/null && [ "$(cat "$venv/.made-in" 2>/dev/null)" = "$root" ]; then
        return
    fi
    local base
    base="$(find_python)"
    rm -rf "$venv"
    if command -v uv >/dev/null; then
        uv venv --quiet --python "$base" "$venv"
    elif ! "$base" -m venv "$venv"; then
        rm -rf "$venv"
        echo "Python's venv module did not work: install python3-venv, or uv." >&2
        return 1
    fi
    echo "$root" >"$venv/.made-in"
}

pip_install() {
    "$python" -m pip --version >/dev/null 2>&1 || "$python" -m ensurepip >/dev/null
    "$python" -m pip install --quiet --disable-pip-version-check --no-input --no-compile \
        --root-user-action=ignore "$@"
}

# Here and not by pip, which has one core alone. Some files are for other versions of Python, and
# of large packages most are never used.
compile_packages() {
    "$python" -m compileall -qq -j 0 -x '/(django|moto|mypyc?|openai|pip|pygments|setuptools)/' \
        "$venv"/lib >/dev/null || true
}

# pip has one core alone as well, so two of them share the packages. Each is pinned, with all that
# it needs: nothing has to be resolved.
pip_install_pinned() {
    local halves first status=0
    halves="$(mktemp -d)"
    awk -v halves="$halves" '
        /^[A-Za-z0-9]/ { known = seen[$1]++; if (!known) count++ }
        !known { print > (halves "/" (count % 2) ".txt") }
    ' "$@"
    pip_install --require-hashes --no-deps -r "$halves/0.txt" &
    first=$!
    pip_install --require-hashes --no-deps -r "$halves/1.txt" || status=$?
    wait "$first" || status=$?
    rm -rf "$halves"
    return "$status"
}

install_pinned() {
    if command -v uv >/dev/null; then
        uv pip install --quiet --python "$python" --require-hashes "${@/#/--requirements=}" && return
        echo "uv could not install; trying pip." >&2
    fi
    "$python" -m pip --version >/dev/null 2>&1 || "$python" -m ensurepip >/dev/null
    pip_install_pinned "$@"
}

install() {
    if command -v uv >/dev/null; then
        uv pip install --quiet --python "$python" "$@" && return
        echo "uv could not install; trying pip." >&2
    fi
    pip_install "$@"
}

set_up() {
    echo "Setting up $venv: downloads packages, takes a minute or two the first time." >&2
    rm -f "$venv"/.set-up-*
    make_venv
    if is_apart; then
        install_pinned "requirements/$level.txt"
        fingerprint "$level" >"$venv/.set-up-$level"
        return
    fi
    install_pinned requirements/build.txt "requirements/$level.txt"
    install --no-deps --no-build-isolation --editable packages/receiver --editable .
    command -v uv >/dev/null || compile_packages
    fingerprint "$level" >"$venv/.set-up-$level"
    echo "Set up." >&2
}

nothing_to_do && exit 0
# uv insists on a cache it can write to.
if [ ! -w "${HOME:-/nonexistent}" ]; then
    export UV_CACHE_DIR="${UV_CACHE_DIR:-$root/.cache/uv}"
fi
# Two shells may start at once; the second waits and finds the work done.
if command -v flock >/dev/null; then
    exec 9>"$root/.set-up.lock"
    flock 9
    nothing_to_do && exit 0
fi
set_up
