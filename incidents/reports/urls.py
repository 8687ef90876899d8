"""Addresses below /api/v1/."""

from django.urls import path

from incidents.reports.views import ReportsView, ReportView

urlpatterns = [
    path("reports", ReportsView.as_view(), name="api-reports"),
    path("reports/<str:id>", ReportView.as_view(), name="api-report"),
]
