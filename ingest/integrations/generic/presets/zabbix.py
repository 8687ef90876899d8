"""Zabbix 5.0 and later: a media type of kind Webhook, whose script posts JSON.

Macros are those of https://www.zabbix.com/documentation/current/en/manual/appendix/macros/supported_by_location.
A problem is one alert: its recovery and updates carry the problem's own {EVENT.ID}. Zabbix tries again by itself
(attempts and interval of the media type) where the script throws. Versions before 7 have no {EVENT.TIMESTAMP}: what a
macro's name is left of is sent as nothing. Whoever acknowledges a problem gets no message of it, so the user with this
medium should be nobody's own.
"""

from __future__ import annotations

from ingest.integrations.generic.presets.index import ADDRESS, Preset

PARAMETERS = {
    "url": ADDRESS,
    "value": "{EVENT.VALUE}",
    "acknowledged": "{EVENT.ACK.STATUS}",
    "event": "{EVENT.ID}",
    "name": "{EVENT.NAME}",
    "severity": "{EVENT.SEVERITY}",
    "host": "{HOST.HOST}",
    "address": "{HOST.IP}",
    "groups": "{TRIGGER.HOSTGROUP.NAME}",
    "trigger": "{TRIGGER.ID}",
    "rule": "{TRIGGER.NAME.ORIG}",
    "description": "{TRIGGER.DESCRIPTION}",
    "opdata": "{EVENT.OPDATA}",
    "tags": "{EVENT.TAGSJSON}",
    "since": "{EVENT.TIMESTAMP}",
    "trigger_url": "{TRIGGER.URL}",
    "zabbix_url": "{$ZABBIX.URL}",
}
SCRIPT = """\
var told = JSON.parse(value), tags = {}, request = new HttpRequest(), answer, name;
// A macro that Zabbix does not know here stays as it is written.
for (name in told) {
    if (/^\\{[$A-Z.]+\\}$|^\\*UNKNOWN\\*$/.test(told[name])) {
        told[name] = '';
    }
}
try {
    JSON.parse(told.tags).forEach(function (tag) {
        tags[tag.tag] = tag.value || 'yes';
    });
} catch (error) {
    Zabbix.log(4, 'Dossier: tags cannot be read: ' + error);
}
delete told.tags;
told.labels = {host: told.host, address: told.address, groups: told.groups};
for (name in tags) {
    told.labels[name] = tags[name];
}
told.status = told.value === '0' ? 'resolved' : told.acknowledged === 'Yes' ? 'acknowledged' : 'firing';
var url = told.url;
delete told.url;
request.addHeader('Content-Type: application/json');
answer = request.post(url, JSON.stringify(told));
if (request.getStatus() < 200 || request.getStatus() > 299) {
    throw 'Dossier answered ' + request.getStatus() + ': ' + answer;
}
return 'OK';
"""

ZABBIX = Preset(
    name="zabbix",
    title="Zabbix",
    mapping={
        "title": "$.name",
        "key": "event {event}",
        "status": "$.status",
        "severity": {
            "from": "$.severity",
            "words": {
                "Disaster": "critical",
                "High": "error",
                "Average": "warning",
                "Warning": "warning",
                "Information": "info",
                "Not classified": "info",
            },
        },
        "component": "host/{host}",
        "group": {"from": ["$.rule", "$.name"]},
        "description": {"from": ["{description}\n\nNow: {opdata}", "{description}{opdata}"]},
        "starts_at": "$.since",
        "labels": "$.labels",
        "links": [
            {
                "href": {"from": ["{zabbix_url}/tr_events.php?triggerid={trigger}&eventid={event}", ""]},
                "text": "Event",
            },
            {"href": "$.trigger_url", "text": "Trigger"},
        ],
    },
    configuration=(
        (
            "Alerts, Media types, Create: type Webhook, with these parameters",
            "".join(f"{name}: {macro}\n" for name, macro in PARAMETERS.items()),
        ),
        ("Script of the media type", SCRIPT),
        (
            "Users and Trigger actions",
            "A user of its own with this medium, send to: dossier.\n"
            "An action whose operations send to that user by this media type only, and whose recovery and update\n"
            "operations notify all involved.\n"
            "Message templates of the media type: one each for problem, recovery and update; their text is not used.\n",
        ),
    ),
)
