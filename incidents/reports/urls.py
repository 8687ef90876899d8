"""Addresses below /api/v1/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from incidents.reports.alert_rules import AlertRulesView
from incidents.reports.noise import NoiseView
from incidents.reports.on_call_load import OnCallLoadView
from incidents.reports.views import (
    LemonsView,
    ReportSchedulesView,
    ReportsView,
    ReportView,
    SubscriptionsView,
)

router = SimpleRouter(trailing_slash=False)
router.register("report_schedules", ReportSchedulesView, "report-schedule")
router.register("report_subscriptions", SubscriptionsView, "report-subscription")

urlpatterns = [
    path("reports", ReportsView.as_view(), name="api-reports"),
    path("reports/<str:id>", ReportView.as_view(), name="api-report"),
    path("alert_rules", AlertRulesView.as_view(), name="api-alert-rules"),
    path("noise", NoiseView.as_view(), name="api-noise"),
    path("on_call_load", OnCallLoadView.as_view(), name="api-on-call-load"),
    path("lemons", LemonsView.as_view(), name="api-lemons"),
    *router.urls,
]
