"""Addresses below /api/v1/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

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
    path("lemons", LemonsView.as_view(), name="api-lemons"),
    *router.urls,
]
