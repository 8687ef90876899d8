"""Nagios and Icinga of Debian's packages (`nagios4-core`, `icinga2-bin`), watching two things that a file breaks.

`Watched.say("db-1", 2, "DISK CRITICAL")` sets what the check of a host, or of the service on it, finds next.
"""

from __future__ import annotations

import calendar
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ingest.integrations.generic.presets import READY
from tests.senders.daemons import running

NAGIOS, ICINGA = "nagios4", "icinga2"
CHECK = """\
#!/bin/sh
tail -n +2 "$1"
exit "$(head -n 1 "$1")"
"""
ILLEGAL = "illegal_macro_output_chars=`~$&|'\"<>\nillegal_object_name_chars=`~!$%^&*|'\"<>?,()=\n"


@dataclass(frozen=True)
class Watched:
    """A running checker: what its checks find, and its commands."""

    directory: Path

    def say(self, name: str, code: int, text: str) -> None:
        told = self.directory / f"{name}.new"
        told.write_text(f"{code}\n{text}\n")
        told.rename(self.directory / name)

    def acknowledge(self, host: str, service: str, author: str, comment: str) -> None:
        told = f"[{int(time.time())}] ACKNOWLEDGE_SVC_PROBLEM;{host};{service};1;1;1;{author};{comment}\n"
        (self.directory / "commands").write_text(told)


@contextmanager
def nagios(directory: Path, address: str) -> Iterator[Watched]:
    """A Nagios that notifies an address with the commands of its ready mapping."""
    watched = _prepared(directory)
    (directory / "results").mkdir()
    [(_, senders)] = READY["nagios"].configured(address)
    (directory / "objects.cfg").write_text(senders + _nagios_objects(directory))
    (directory / "nagios.cfg").write_text(
        f"cfg_file={directory}/objects.cfg\nlog_file={directory}/nagios.log\nlock_file={directory}/nagios.lock\n"
        f"object_cache_file={directory}/objects.cache\nstatus_file={directory}/status.dat\n"
        f"state_retention_file={directory}/retention.dat\ntemp_file={directory}/nagios.tmp\ntemp_path={directory}\n"
        f"check_result_path={directory}/results\ncommand_file={directory}/commands\nquery_socket={directory}/nagios.qh\n"
        "nagios_user=root\nnagios_group=root\ninterval_length=1\nuse_syslog=0\ncheck_external_commands=1\n"
        + ILLEGAL
    )
    with running(
        [NAGIOS, f"{directory}/nagios.cfg"], directory / "nagios.out", (directory / "commands").exists
    ):
        yield watched


@contextmanager
def icinga(directory: Path, address: str) -> Iterator[Watched]:
    """An Icinga that notifies an address with the commands of its ready mapping."""
    watched = _prepared(directory)
    [(_, senders)] = READY["icinga"].configured(address)
    (directory / "icinga.conf").write_text(_icinga_objects(directory) + senders)
    command = [ICINGA, "daemon", "-c", str(directory / "icinga.conf")]
    for name in ("DataDir", "LogDir", "CacheDir", "SpoolDir", "InitRunDir"):
        (directory / name).mkdir()
        command += ["-D", f"Configuration.{name}={directory / name}"]
    command += ["-D", "Configuration.RunAsUser=root", "-D", "Configuration.RunAsGroup=root"]
    with running(command, directory / "icinga.out", (directory / "commands").exists):
        yield watched


def _prepared(directory: Path) -> Watched:
    (directory / "check").write_text(CHECK)
    (directory / "check").chmod(0o755)
    watched = Watched(directory)
    for name in ("db-1", "db-1-disk"):
        watched.say(name, 0, "OK")
    return watched


def _nagios_objects(directory: Path) -> str:
    often = "max_check_attempts 1\n check_interval 1\n retry_interval 1\n notification_interval 0\n"
    often += " notification_period 24x7\n check_period 24x7\n contacts dossier\n"
    days = "".join(f" {day} 00:00-24:00\n" for day in map(str.lower, calendar.day_name))
    return f"""
define timeperiod {{\n timeperiod_name 24x7\n alias always\n{days}}}
define command {{\n command_name check\n command_line {directory}/check {directory}/$ARG1$\n}}
define hostgroup {{\n hostgroup_name databases\n alias Databases\n}}
define host {{
 host_name db-1
 alias db-1
 address 192.0.2.7
 hostgroups databases
 notes_url https://wiki.example.com/db-1
 check_command check!db-1
 {often}}}
define service {{
 host_name db-1
 service_description disk /var
 notes_url https://wiki.example.com/disk
 check_command check!db-1-disk
 {often}}}
"""


def _icinga_objects(directory: Path) -> str:
    often = "check_interval = 1s\n  retry_interval = 1s\n  max_check_attempts = 1\n"
    return f"""\
object CheckerComponent "checker" {{ }}
object NotificationComponent "notification" {{ }}
object ExternalCommandListener "command" {{ command_path = "{directory}/commands" }}
object CheckCommand "file" {{ command = [ "{directory}/check", "{directory}/$file$" ] }}
object Host "db-1" {{
  address = "192.0.2.7"
  notes_url = "https://wiki.example.com/db-1"
  check_command = "file"
  vars.file = "db-1"
  {often}}}
object Service "disk /var" {{
  host_name = "db-1"
  notes_url = "https://wiki.example.com/disk"
  check_command = "file"
  vars.file = "db-1-disk"
  {often}}}
"""
