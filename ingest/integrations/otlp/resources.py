"""Components of an OTLP request, by its resource attributes. Pure.

Names of attributes: OpenTelemetry semantic conventions, "Resource" (https://opentelemetry.io/docs/specs/semconv/resource/).
"""

from __future__ import annotations

from typing import Any

from ingest.integrations.otlp.messages import text_of

IDENTIFYING = (
    "service.name",
    "service.namespace",
    "service.instance.id",
    "deployment.environment.name",
    "cloud.region",
    "host.name",
    "host.id",
    "device.id",
    "container.name",
    "k8s.cluster.name",
    "k8s.namespace.name",
    "k8s.node.name",
    "k8s.pod.name",
    "k8s.container.name",
)
"""Resource attributes that become labels. The others describe (versions, command lines) and would only make every row
longer."""
INSTANCES = ("service.instance.id", "k8s.pod.name", "host.name", "container.name", "container.id", "host.id")
"""Attributes that name the instance of a service, the best first."""
NO_SERVICE = "unknown_service"


def attributes_of(resource: Any) -> dict[str, str]:
    """All attributes as text; of two of one name the later counts."""
    return {each.key: text_of(each.value) for each in resource.attributes}


def identity(attributes: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """The labels that tell resources apart, in order."""
    return tuple((name, attributes[name]) for name in IDENTIFYING if attributes.get(name))


def service_of(attributes: dict[str, str]) -> str:
    """The service, with its namespace where it has one (`shop/cart`)."""
    name, namespace = attributes.get("service.name") or NO_SERVICE, attributes.get("service.namespace")
    return f"{namespace}/{name}" if namespace else name


def instance_of(attributes: dict[str, str]) -> str:
    """Instance of the service; the service itself where nothing tells."""
    return next(filter(None, map(attributes.get, INSTANCES)), service_of(attributes))
