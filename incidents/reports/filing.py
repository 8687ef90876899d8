"""Mail subscriptions in a file of configuration; over HTTP they have addresses of their own."""

from __future__ import annotations

from collections.abc import Mapping

from rest_framework import serializers as s
from rest_framework.serializers import BaseSerializer

from incidents.api.editable import Catalog
from incidents.api.incident.serializers import Strict
from incidents.reports import mail
from incidents.reports.models import ReportSchedule, Subscription


class SubscriptionFileSerializer(Strict, s.Serializer[Subscription]):
    schedule = s.SlugRelatedField(
        slug_field="name",
        queryset=ReportSchedule.objects.all(),
        error_messages={"does_not_exist": "no report {value}"},
    )
    address = s.EmailField(max_length=254)


class SubscriptionsFile(Catalog):
    """One item for each address of a report."""

    queryset = Subscription.objects.select_related("schedule").order_by("schedule__name", "address")
    serializer_class = SubscriptionFileSerializer

    @property
    def named_by(self) -> Mapping[str, str]:
        return {"schedule": "schedule__name", "address": "address"}

    def put(self, serializer: BaseSerializer[Subscription]) -> None:
        given = serializer.validated_data
        mail.subscribe(given["schedule"], given["address"], self.context)

    def perform_destroy(self, instance: Subscription) -> None:
        mail.unsubscribe(instance.schedule.name, instance.address, self.context)
