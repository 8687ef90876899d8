"""Messages in the form of Slack's and Discord's incoming webhooks, which many programs can send and nothing else.

They have no field for a status: a title says it (`[OK] Disk`, `Disk recovered`), or the colour, of which senders use
green for a recovery.
"""

from __future__ import annotations

from ingest.integrations.generic.presets.index import ADDRESS, Preset

_GREEN_OF_SLACK = ("good", "#36a64f", "#2eb886", "#2eb67d", "#439fe0", "#00ff00", "#28a745", "#22c55e")
_RED_OF_SLACK = ("danger", "warning", "#d63232", "#e01e5a", "#ff0000", "#a30200", "#dc3545")
_GREEN_OF_DISCORD = ("65280", "3066993", "5763719", "4437377", "2278750", "2664261", "3066944")
_RED_OF_DISCORD = ("16711680", "15158332", "15548997", "10038562", "14431557", "13632027", "15105570")
_WITHOUT_STATE = r"(?i)^\W*(?:your service )?(.*?)(?: went down| is (?:back )?(?:down|up))?\W*$"
"""A title without what changes between a failure and its end, as of `✅ Your service shop is up! ✅`."""

# https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
SLACK = Preset(
    "slack",
    "Messages for Slack or Mattermost",
    {
        "reads_titles": True,
        "title": {
            "from": ["$.attachments[0].title", "$.text", "$.attachments[0].fallback", "$.attachments[0].text",
                     "$.blocks[0].text.text"],
        },
        "key": {
            "from": ["$.attachments[0].title", "$.text", "$.attachments[0].fallback", "$.attachments[0].text",
                     "$.blocks[0].text.text"],
        },
        "status": {
            "from": "$.attachments[0].color",
            "words": {
                **dict.fromkeys(_GREEN_OF_SLACK, "resolved"),
                **dict.fromkeys(_RED_OF_SLACK, "firing"),
                "*": "",
            },
            "default": "",
        },
        "severity": {
            "from": "$.attachments[0].color",
            "words": {"danger": "error", "#ff0000": "error", "#e01e5a": "error", "#a30200": "error", "*": "warning"},
            "default": "warning",
        },
        "description": {"from": ["$.attachments[0].text", "$.blocks[1].text.text"], "default": ""},
        "labels": {"sender": "$.username", "channel": "$.channel"},
        "links": [{"href": "$.attachments[0].title_link", "text": "Sender"}],
    },
    (("The address of the incoming webhook", f"{ADDRESS}\n"),),
    (("$.attachments[0].color",), ("$.attachments[0].fallback",), ("$.blocks[0].type",)),
)  # fmt: skip

# https://discord.com/developers/docs/resources/webhook#execute-webhook
DISCORD = Preset(
    "discord",
    "Messages for Discord",
    {
        "reads_titles": True,
        "title": {"from": ["$.embeds[0].title", "$.content", "$.embeds[0].description"]},
        "key": {
            "from": ["$.embeds[0].title", "$.content", "$.embeds[0].description"],
            "find": _WITHOUT_STATE,
        },
        "status": {
            "from": "$.embeds[0].color",
            "words": {
                **dict.fromkeys(_GREEN_OF_DISCORD, "resolved"),
                **dict.fromkeys(_RED_OF_DISCORD, "firing"),
                "*": "",
            },
            "default": "",
        },
        "severity": {
            "from": "$.embeds[0].color",
            "words": {**dict.fromkeys(_RED_OF_DISCORD, "error"), "*": "warning"},
            "default": "warning",
        },
        "description": {"from": ["$.embeds[0].description", "$.content"], "default": ""},
        "labels": {"sender": "$.username"},
        "links": [{"href": "$.embeds[0].url", "text": "Sender"}],
    },
    (("The address of the Discord webhook", f"{ADDRESS}\n"),),
    (("$.embeds[0].title",), ("$.embeds[0].description",), ("$.content", "$.username")),
)

CHATS: tuple[Preset, ...] = (SLACK, DISCORD)
