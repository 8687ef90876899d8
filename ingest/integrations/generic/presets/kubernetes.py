"""Conditions of Kubernetes nodes, those of node-problem-detector among them: Node objects as the API server gives them.

https://kubernetes.io/docs/reference/node/node-status/#condition and the condition types of
https://github.com/kubernetes/node-problem-detector. A condition that is True is a problem, of `Ready` one that is not
True. Unknown says that the node no longer reports, which `Ready` says once; of other conditions it is left out.
"""

from __future__ import annotations

from ingest.integrations.generic.presets.index import ADDRESS, Preset

WATCH = f"""\
kubectl get nodes -o json --watch \\
  | jq --unbuffered -c 'if .kind == "Node" then . else .items[] end' \\
  | while read -r node; do
      curl -sS --retry 5 -H "Content-Type: application/json" -d "$node" {ADDRESS}
    done
"""

KUBERNETES = Preset(
    "kubernetes",
    "Kubernetes node conditions",
    {
        "items": "$.status.conditions",
        "title": ["{type} on node {$root.metadata.name}: {reason}", "{type} on node {$root.metadata.name}"],
        "key": "{$root.metadata.name} {type}",
        "status": {
            "from": "{type}={status}",
            "find": r"(?:^|=)(Ready=\w+|True|False|Unknown)$",
            "words": {
                "ready=true": "resolved",
                "ready=false": "firing",
                "ready=unknown": "firing",
                "true": "firing",
                "false": "resolved",
                "*": "ignored: the node does not report this condition",
            },
        },
        "severity": {
            "from": "$.type",
            "words": {
                "Ready": "critical",
                "KernelDeadlock": "critical",
                "ReadonlyFilesystem": "error",
                "XfsShutdown": "error",
                "CperHardwareErrorFatal": "critical",
                "FrequentKubeletRestart": "error",
                "FrequentDockerRestart": "error",
                "FrequentContainerdRestart": "error",
                "KubeletUnhealthy": "error",
                "ContainerRuntimeUnhealthy": "error",
                "NetworkUnavailable": "error",
                "*": "warning",
            },
        },
        "component": "node/{$root.metadata.name}",
        "group": "$.type",
        "description": {"from": "$.message", "default": ""},
        "starts_at": {"from": "$.lastTransitionTime", "default": ""},
        "labels": {"node": "$root.metadata.name", "condition": "$.type", "reason": "$.reason"},
    },
    (("A watch of the nodes, as a deployment whose service account may list and watch nodes", WATCH),),
    (("$.metadata.name", "$.status.conditions", "$.status.nodeInfo.kubeletVersion"),),
)
