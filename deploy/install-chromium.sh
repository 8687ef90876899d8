#!/bin/sh
# Installs the Chromium that the browser tests drive, from Debian's or Ubuntu's packages. Needs root.
set -eu
for name in chromium-headless-shell chromium chromium-browser; do
    if command -v "$name" >/dev/null; then exit 0; fi
done
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# Without windows, menus and extensions: the tests need two thirds of the time.
apt-get install -y -qq --no-install-recommends chromium-headless-shell fonts-dejavu-core >/dev/null 2>&1 ||
    apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
