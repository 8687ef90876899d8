#!/bin/sh
# Installs the monitoring systems whose own programs the tests let send alerts here: Prometheus, and Alertmanager with
# amtool, from Debian's or Ubuntu's packages. Starts none of them, now or at boot. Needs root.
# Their clients in Python (pagerduty, cloudevents, OpenTelemetry) are in requirements-dev.lock.
set -eu
if command -v prometheus >/dev/null && command -v prometheus-alertmanager >/dev/null && command -v amtool >/dev/null; then
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# Packages ask policy-rc.d whether they may start what they bring; 101 is no.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod +x "$policy"
fi
apt-get update -qq
apt-get install -y -qq --no-install-recommends prometheus prometheus-alertmanager >/dev/null
if [ -d /run/systemd/system ]; then
    systemctl disable --quiet prometheus prometheus-alertmanager
fi
