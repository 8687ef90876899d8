#!/bin/sh
# Installs the Chromium that the browser tests drive, from Debian's or Ubuntu's packages. Needs root.
set -eu
if command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then exit 0; fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
