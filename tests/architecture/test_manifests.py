"""The manifests under deploy/kubernetes and the container files say what Kubernetes and Dossier understand.

Objects of Kubernetes itself are validated against its schemas, which `kubernetes-validate` carries. Objects of others
(KEDA, CloudNativePG, Prometheus) have no schema here: their references and the expressions in them are checked.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import kubernetes_validate
import pytest
import yaml

from deploy.env import VARIABLES
from deploy.supervisor.programs import programs
from tests.places import ROOT

MANIFESTS = ROOT / "deploy" / "kubernetes"
COMPOSE = ROOT / "deploy" / "containers" / "compose.yaml"
VERSION = "1.37"
OTHERS = {"Kustomization", "ScaledObject", "ServiceMonitor", "PrometheusRule", "Cluster"}
"""Kinds that are not of Kubernetes itself."""
OURS = "app.kubernetes.io/component"

Manifest = dict[str, Any]


@cache
def manifests() -> tuple[tuple[str, Manifest], ...]:
    """Every object with the file it stands in."""
    return tuple(
        (str(file.relative_to(MANIFESTS)), one)
        for file in sorted(MANIFESTS.glob("*/*.yaml"))
        for one in yaml.load_all(file.read_text(), yaml.CSafeLoader)
    )


def of_kind(*kinds: str) -> list[Manifest]:
    return [one for _, one in manifests() if one["kind"] in kinds]


def names(kind: str) -> set[str]:
    return {one["metadata"]["name"] for one in of_kind(kind)}


def pods() -> Iterator[tuple[Manifest, Manifest]]:
    for one in of_kind("Deployment", "Job"):
        yield one, one["spec"]["template"]["spec"]


def test_objects_of_kubernetes_have_its_schema() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _, one in manifests():
            if one["kind"] not in OTHERS:
                kubernetes_validate.validate(one, VERSION, strict=True)


def test_a_wrong_field_is_found() -> None:
    wrong = {**of_kind("PodDisruptionBudget")[0], "spec": {"minAvailabel": 1}}
    with pytest.raises(kubernetes_validate.ValidationError, match="minAvailabel"):
        kubernetes_validate.validate(wrong, VERSION, strict=True)


def test_every_file_belongs_to_its_kustomization() -> None:
    for folder in MANIFESTS.iterdir():
        (kustomization,) = yaml.safe_load_all((folder / "kustomization.yaml").read_text())
        listed = {name for name in kustomization["resources"] if name.endswith(".yaml")}
        assert listed == {file.name for file in folder.glob("*.yaml")} - {"kustomization.yaml"}
        # A patch or a generator would make objects that no file here holds, so that no test had looked at them.
        assert kustomization.keys() <= {"apiVersion", "kind", "resources", "images"}


def test_every_process_has_two_pods_and_a_disruption_budget() -> None:
    kinds = {program.kind for program in programs()}
    assert names("Deployment") == {f"dossier-{kind}" for kind in kinds} == names("PodDisruptionBudget")
    for one in of_kind("Deployment"):
        name = one["metadata"]["name"]
        assert one["spec"].get("replicas") == 2 or name in names("HorizontalPodAutoscaler")
        (container,) = one["spec"]["template"]["spec"]["containers"]
        assert container["args"] == ["run", name.removeprefix("dossier-")]
        assert {"startupProbe", "livenessProbe"} <= container.keys()


def test_selectors_select_the_pods_of_their_own() -> None:
    labels = {one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"] for one, _ in pods()}
    for one in of_kind("Deployment", "PodDisruptionBudget"):
        assert one["spec"]["selector"]["matchLabels"] == labels[one["metadata"]["name"]]
    for one in of_kind("Service"):
        assert one["spec"]["selector"] == labels[one["metadata"]["name"]]
    for one in of_kind("ServiceMonitor"):
        wanted = one["spec"]["selector"]["matchLabels"]
        services = [s for s in of_kind("Service") if wanted.items() <= s["metadata"]["labels"].items()]
        assert [service["metadata"]["name"] for service in services] == ["dossier-web"]
    for one in of_kind("HorizontalPodAutoscaler", "ScaledObject"):
        assert one["spec"]["scaleTargetRef"]["name"] in names("Deployment")


def test_no_pod_is_root_or_writes_to_its_image() -> None:
    for _, pod in pods():
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["enableServiceLinks"]
        for container in [*pod["containers"], *pod.get("initContainers", ())]:
            limits = container["securityContext"]
            assert limits["readOnlyRootFilesystem"]
            assert limits["capabilities"] == {"drop": ["ALL"]}
            assert not limits["allowPrivilegeEscalation"]
            assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/tmp", "/var/lib/dossier"}


def test_what_they_set_are_settings() -> None:
    (shared,) = [one for one in of_kind("ConfigMap") if one["metadata"]["name"] == "dossier"]
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    given = {*shared["data"], *services["dossier"]["environment"], *services["migrate"]["environment"]}
    assert given - VARIABLES.keys() == set()


def test_the_container_runs_as_no_root_from_the_lock() -> None:
    text = (ROOT / "deploy" / "containers" / "Containerfile").read_text()
    assert re.findall(r"^USER (\d+):", text, re.MULTILINE) == ["10001"]
    assert "--require-hashes -r requirements.lock" in text
    assert "apt-get" not in text
