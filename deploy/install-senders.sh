#!/bin/sh
# Installs the monitoring systems whose own programs the tests let send alerts here: Prometheus, Alertmanager with
# amtool, Nagios, Icinga and Zabbix' server, from Debian's or Ubuntu's packages. Starts none of them, now or at boot.
# Needs root.
# Their clients in Python (pagerduty, cloudevents, OpenTelemetry) are in requirements-dev.lock.
set -eu
missing=
for program in prometheus prometheus-alertmanager amtool nagios4 icinga2 zabbix_server curl; do
    command -v "$program" >/dev/null || missing="$missing $program"
done
if [ -z "$missing" ]; then exit 0; fi
export DEBIAN_FRONTEND=noninteractive
# Packages ask policy-rc.d whether they may start what they bring; 101 is no.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod +x "$policy"
fi
apt-get update -qq
apt-get install -y -qq --no-install-recommends prometheus prometheus-alertmanager \
    nagios4-core icinga2-bin zabbix-server-pgsql curl >/dev/null
if [ -d /run/systemd/system ]; then
    for service in prometheus prometheus-alertmanager nagios4 icinga2 zabbix-server; do
        systemctl disable --quiet "$service" || echo "could not disable $service; it starts with the machine" >&2
    done
fi
