#!/bin/sh
# Installs torch, for the test of a real job, beside the project: it is too large to be one of its dependencies.
# Prints the variable that the test looks for. On machines without a GPU a CPU build is enough: name it as TORCH.
set -eu
venv="${1:-$HOME/.cache/dossier-torch}"
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet "${TORCH:-torch}" numpy
echo "export TORCH_PYTHON=$venv/bin/python"
