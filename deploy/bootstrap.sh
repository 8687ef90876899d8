#!/bin/sh
# Makes .venv and installs exactly what a lock file names: `deploy/bootstrap.sh requirements.lock` (to run Dossier) or
# `requirements-dev.lock` (to work on it). Does nothing when that is already there.
# PYTHON names the interpreter (default python3). A package index of your own: set PIP_INDEX_URL and UV_DEFAULT_INDEX.
set -eu
cd "$(dirname "$0")/.."
lock=$1
python=${PYTHON:-python3}
stamp=.venv/.installed
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
    VIRTUAL_ENV="$PWD/.venv" .venv/bin/uv pip sync --quiet "$lock"
    VIRTUAL_ENV="$PWD/.venv" .venv/bin/uv pip install --quiet --no-deps --no-build-isolation --offline -e .
else # no uv for this platform: slower, the same result
    .venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
    .venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
fi
echo "$want" > "$stamp"
