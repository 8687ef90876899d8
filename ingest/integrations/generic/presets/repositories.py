"""Hosts of code repositories and issue trackers: failed pipelines, security alerts, deployments, issues."""

from __future__ import annotations

from ingest.integrations.generic.presets.index import ADDRESS, Preset

# https://docs.github.com/en/webhooks/webhook-events-and-payloads
GITHUB = Preset(
    "github",
    "GitHub",
    {
        "title": {
            "from": [
                "{workflow_run.name} fails on {workflow_run.head_branch} of {repository.full_name}",
                "{check_run.name} fails in {repository.full_name}",
                "{alert.security_advisory.summary} in {repository.full_name}",
                "{alert.rule.description} in {repository.full_name}",
                "{alert.secret_type_display_name} is exposed in {repository.full_name}",
                "Deployment to {deployment.environment} of {repository.full_name} fails",
                "{repository.full_name}#{issue.number}: {issue.title}",
            ]
        },
        "key": {
            "from": [
                "workflow {repository.full_name} {workflow_run.workflow_id} {workflow_run.head_branch}",
                "check {repository.full_name} {check_run.name} {check_run.check_suite.head_branch}",
                "alert {alert.html_url}",
                "alert {repository.full_name} {alert.number}",
                "deployment {repository.full_name} {deployment.environment}",
                "issue {repository.full_name} {issue.number}",
            ]
        },
        "status": {
            "from": [
                "comment {comment.id}",
                "run {workflow_run.conclusion}",
                "run {check_run.conclusion}",
                "alert {alert.state}",
                "alert {alert.number} {action}",
                "deployment {deployment_status.state}",
                "issue {issue.state}",
            ],
            "words": {
                **dict.fromkeys(("run failure", "run timed_out", "run startup_failure"), "firing"),
                "run success": "resolved",
                "alert open": "firing",
                **dict.fromkeys(
                    ("alert fixed", "alert dismissed", "alert auto_dismissed", "alert resolved"), "resolved"
                ),
                **dict.fromkeys(("deployment failure", "deployment error"), "firing"),
                "deployment success": "resolved",
                "issue open": "firing",
                "issue closed": "resolved",
                "*": "ignored: an event without a failure or its end",
            },
            "default": "ignored: an event without a failure or its end",
        },
        "severity": {
            "from": [
                "$.alert.security_advisory.severity",
                "$.alert.rule.security_severity_level",
                "$.alert.rule.severity",
                "issue {issue.number}",
            ],
            "words": {
                "critical": "critical",
                "high": "error",
                "error": "error",
                "low": "info",
                "note": "info",
                "*": "warning",
            },
            "default": "error",
        },
        "group": {"from": ["$.workflow_run.name", "$.check_run.name", "$.alert.rule.id"], "default": ""},
        "component": {"from": "service/{repository.name}", "default": ""},
        "description": {
            "from": [
                "$.workflow_run.head_commit.message",
                "$.check_run.output.summary",
                "$.alert.security_advisory.description",
                "$.alert.most_recent_instance.message.text",
                "$.deployment_status.description",
                "$.issue.body",
            ],
            "default": "",
        },
        "labels": {
            "repository": "$.repository.full_name",
            "branch": {"from": ["$.workflow_run.head_branch", "$.check_run.check_suite.head_branch"]},
            "environment": "$.deployment.environment",
            "actor": "$.sender.login",
        },
        "links": [
            {
                "href": {
                    "from": [
                        "$.workflow_run.html_url",
                        "$.check_run.html_url",
                        "$.alert.html_url",
                        "$.deployment_status.target_url",
                        "$.issue.html_url",
                    ]
                },
                "text": "GitHub",
            }
        ],
    },
    (("Settings, Webhooks: Payload URL, with content type application/json", f"{ADDRESS}\n"),),
    (("$.repository.full_name", "$.sender.login"),),
)

# https://docs.gitlab.com/user/project/integrations/webhook_events/
GITLAB = Preset(
    "gitlab",
    "GitLab",
    {
        "title": {
            "from": [
                "Job {build_name} fails on {ref} of {project_name}",
                "Deployment to {environment} of {project.path_with_namespace} fails",
                "{project.path_with_namespace}#{object_attributes.iid}: {object_attributes.title}",
                "Pipeline fails on {object_attributes.ref} of {project.path_with_namespace}",
                "{object_attributes.title} in {project.path_with_namespace}",
            ]
        },
        "key": {
            "from": [
                "job {project_name} {ref} {build_name}",
                "deployment {project.path_with_namespace} {environment}",
                "{object_kind} {project.path_with_namespace} {object_attributes.iid} {object_attributes.title}",
                "pipeline {project.path_with_namespace} {object_attributes.ref}",
                "{object_kind} {object_attributes.url}",
            ]
        },
        "status": {
            "from": [
                "job {build_status} {build_allow_failure}",
                "deployment {status} {environment}",
                "{object_kind} {object_attributes.status}",
                "{object_kind} {object_attributes.state}",
            ],
            # Of a deployment all but the environment.
            "find": r"^(job \S+ \S+|\S+ \S+)",
            "words": {
                **dict.fromkeys(("job failed false", "deployment failed", "pipeline failed"), "firing"),
                **dict.fromkeys(("job success false", "deployment success", "pipeline success"), "resolved"),
                **dict.fromkeys(("issue opened", "incident opened", "vulnerability detected"), "firing"),
                **dict.fromkeys(("issue closed", "incident closed", "vulnerability resolved"), "resolved"),
                "vulnerability dismissed": "resolved",
                "*": "ignored: an event without a failure or its end",
            },
            "default": "ignored: an event without a failure or its end",
        },
        "severity": {
            "from": ["$.object_attributes.severity", "$.object_kind"],
            "words": {
                "critical": "critical",
                **dict.fromkeys(("high", "pipeline", "build", "deployment"), "error"),
                "low": "info",
                "*": "warning",
            },
            "default": "error",
        },
        "group": {"from": ["$.build_name", "$.object_kind"], "default": ""},
        "component": {"from": "service/{project.name}", "default": ""},
        "description": {
            "from": ["$.object_attributes.description", "$.commit.message", "$.build_failure_reason"],
            "default": "",
        },
        "labels": {
            "repository": {"from": ["$.project.path_with_namespace", "$.project_name"]},
            "branch": {"from": ["$.ref", "$.object_attributes.ref"]},
            "environment": "$.environment",
            "actor": {"from": ["$.user.username", "$.user_username"]},
        },
        "links": [
            {
                "href": {"from": ["$.object_attributes.url", "$.deployable_url", "$.project.web_url"]},
                "text": "GitLab",
            }
        ],
    },
    (("Settings, Webhooks: URL", f"{ADDRESS}\n"),),
    (("$.object_kind", "$.project.path_with_namespace"), ("$.object_kind", "$.project_name")),
)

# https://developer.atlassian.com/server/jira/platform/webhooks/
_OPEN, _DONE = ("new", "indeterminate", "undefined"), ("done",)
JIRA = Preset(
    "jira",
    "Jira",
    {
        "title": {"from": ["{issue.key}: {issue.fields.summary}", "$.issue.key"]},
        "key": "$.issue.key",
        "status": {
            "from": ["{webhookEvent} {issue.fields.status.statusCategory.key}", "$.webhookEvent"],
            "words": {
                **{
                    f"jira:issue_{event} {word}": "firing"
                    for event in ("created", "updated")
                    for word in _OPEN
                },
                **{
                    f"jira:issue_{event} {word}": "resolved"
                    for event in ("created", "updated")
                    for word in _DONE
                },
                **{f"jira:issue_deleted {word}": "resolved" for word in (*_OPEN, *_DONE)},
                "jira:issue_deleted": "resolved",
                "jira:issue_created": "firing",
                "jira:issue_updated": "firing",
            },
        },
        "severity": {
            "from": "$.issue.fields.priority.name",
            "words": {
                "Blocker": "critical",
                "Highest": "critical",
                "High": "error",
                "Medium": "warning",
                "Low": "info",
                "Lowest": "info",
                "Trivial": "info",
            },
            "default": "warning",
        },
        "component": {"from": "service/{issue.fields.components[0].name}", "default": ""},
        "description": {"from": "$.issue.fields.description", "default": ""},
        "labels": {
            "project": "$.issue.fields.project.key",
            "type": "$.issue.fields.issuetype.name",
            "state": "$.issue.fields.status.name",
            "labels": "$.issue.fields.labels",
        },
    },
    (("System, WebHooks: issue created, updated and deleted", f"{ADDRESS}\n"),),
    (("$.webhookEvent", "$.issue.key"),),
)

REPOSITORIES: tuple[Preset, ...] = (GITHUB, GITLAB, JIRA)
