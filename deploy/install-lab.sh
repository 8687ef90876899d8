#!/bin/sh
# Installs what the fault lab (`manage.py lab`) needs, from Debian's or Ubuntu's packages: `ip`, `tc` and `nft`. Needs root.
set -eu
if command -v ip >/dev/null && command -v tc >/dev/null && command -v nft >/dev/null; then exit 0; fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends iproute2 nftables >/dev/null
