#!/bin/sh
# Makes .venv and installs the versions that a lock file names: `deploy/bootstrap.sh requirements.lock` (to run Dossier) or
# `requirements-dev.lock` (to work on it). Does nothing when that is already there. What the lock named before and names no
# more is removed; plugins and whatever else was installed by hand stay.
# PYTHON names the interpreter (default python3). A package index of your own: set PIP_INDEX_URL and UV_DEFAULT_INDEX.
set -eu
cd "$(dirname "$0")/.."
lock=$1
python=${PYTHON:-python3}
stamp=.venv/.installed
before=.venv/.lock
want=$(cat "$lock" pyproject.toml | sha256sum | cut -d' ' -f1)
# What is needed to work on Dossier is enough to run it.
more=$(cat requirements-dev.lock pyproject.toml | sha256sum | cut -d' ' -f1)
have=$(cat "$stamp" 2>/dev/null || true)
if [ "$have" = "$want" ] || [ "$have" = "$more" ]; then exit 0; fi

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    echo "Dossier needs Python 3.11 or newer; $python is $("$python" --version 2>&1). Set PYTHON=/path/to/python3." >&2
    exit 1
}
if [ ! -x .venv/bin/python ]; then
    echo "==> Making .venv"
    "$python" -m venv .venv 2>/dev/null || {
        rm -rf .venv
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null && "$python" -m venv .venv
        else
            echo "$python cannot make virtual environments. On Debian and Ubuntu: sudo apt-get install python3-venv" >&2
            exit 1
        fi
    }
fi
echo "==> Installing the packages of $lock"
if [ ! -x .venv/bin/uv ]; then .venv/bin/pip install --quiet --disable-pip-version-check uv || true; fi
if [ -x .venv/bin/uv ]; then
    export VIRTUAL_ENV="$PWD/.venv"
    pip="$PWD/.venv/bin/uv pip"
    offline=--offline yes=
else # no uv for this platform: slower, the same result
    pip="$PWD/.venv/bin/pip --disable-pip-version-check"
    offline= yes=--yes
fi
names() { sed -nE 's/^([A-Za-z0-9._-]+)==.*/\1/p' "$1" | sort -u; }
# What the last lock named and this one does not. What else is there, people installed: plugins stay.
if [ -f "$before" ]; then
    names "$lock" > .venv/.names
    gone=$(names "$before" | comm -23 - .venv/.names)
    # shellcheck disable=SC2086
    if [ -n "$gone" ]; then $pip uninstall --quiet $yes $gone; fi
fi
$pip install --quiet --no-deps --require-hashes -r "$lock"
$pip install --quiet --no-deps --no-build-isolation $offline -e .
cp "$lock" "$before"
$pip check > .venv/.check 2>&1 || {
    echo "A package that is installed beside the lock does not fit its versions:" >&2
    cat .venv/.check >&2
}
echo "$want" > "$stamp"
