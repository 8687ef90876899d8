#!/bin/sh
# Installs a CPU build of torch, for the test of a real job, beside the project: with 1 GB it is too large to be one of
# its dependencies. Prints the variable that the test looks for. Where the registry has no CPU build: TORCH=torch.
set -eu
venv="${1:-$HOME/.cache/dossier-torch}"
if ! "$venv/bin/python" -c "import torch" 2>/dev/null; then
    python3 -m venv "$venv" >&2
    "$venv/bin/pip" install --quiet "${TORCH:-torch==2.13.0+cpu}" numpy >&2
fi
echo "export TORCH_PYTHON=$venv/bin/python"
