#!/bin/sh
# Builds the image with buildah, or says in one line why it cannot be built here. Installs buildah from Debian's or
# Ubuntu's packages where it may. Ends with an error only where base and packages were there and the image failed.
#
#   deploy/containers/build.sh [NAME]      BASE names another base, SECONDS_AT_MOST another limit than four minutes
set -eu
cd "$(dirname "$0")/../.."
name=${1:-dossier}
base=${BASE:-$(sed -n 's/^ARG BASE=//p' deploy/containers/Containerfile)}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

not_built() {
    echo "Image not built: $1"
    exit 0
}

if ! command -v buildah >/dev/null; then
    [ "$(id -u)" = 0 ] || not_built "buildah is not here, and only root installs it"
    { timeout 60 apt-get update -qq && DEBIAN_FRONTEND=noninteractive timeout 120 \
        apt-get install -y -qq --no-install-recommends buildah; } >"$log" 2>&1 || not_built "apt has no buildah"
fi
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
timeout 60 buildah pull --quiet "$base" >"$log" 2>&1 ||
    not_built "its base $base cannot be pulled ($(tail -n 1 "$log" | cut -c 1-200))"
pip=
# The index and the certificates of this machine, while it is built.
if [ -e /etc/pip.conf ]; then
    pip="--volume /etc/pip.conf:/etc/pip.conf:ro --volume /etc/ssl/certs:/etc/ssl/certs:ro"
fi
# Only the image itself may fail below: what this machine does not give is found out here.
probe=$(buildah from "$base" 2>"$log") || not_built "buildah cannot unpack its base here ($(tail -n 1 "$log" | cut -c 1-200))"
timeout 60 buildah run "$probe" -- true >"$log" 2>&1 ||
    not_built "this machine lets buildah run nothing ($(tail -n 1 "$log" | cut -c 1-200))"
# shellcheck disable=SC2016,SC2086  # the directory is one of the container
timeout 60 buildah run $pip "$probe" -- sh -c \
    'cd "$(mktemp -d)" && python3 -m venv . && bin/pip download -q --no-deps packaging' >"$log" 2>&1 ||
    not_built "its packages cannot be fetched from inside ($(tail -n 1 "$log" | cut -c 1-200))"
buildah rm "$probe" >"$log" 2>&1 || true
status=0
# shellcheck disable=SC2086
timeout "${SECONDS_AT_MOST:-240}" buildah build --quiet $pip --build-arg BASE="$base" \
    --ignorefile deploy/containers/Containerfile.dockerignore -f deploy/containers/Containerfile -t "$name" . \
    >"$log" 2>&1 || status=$?
if [ $status = 124 ]; then not_built "not finished within ${SECONDS_AT_MOST:-240} s"; fi
if [ $status != 0 ]; then
    tail -n 30 "$log" >&2
    exit 1
fi
made=$(buildah from "$name")
buildah run "$made" -- /opt/dossier/.venv/bin/python manage.py --version >"$log" 2>&1 || {
    tail -n 30 "$log" >&2
    exit 1
}
version=$(tail -n 1 "$log")
buildah rm "$made" >"$log" 2>&1 || true
echo "Image $name built: Dossier's command ran in it (Django $version)."
