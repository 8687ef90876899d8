"""Addresses below /api/v1/."""

from django.urls import path

from analyzers.api.node_forecasts import NodesAtRiskView
from analyzers.api.ping_lists import PingListView, RequestedProbesView
from analyzers.api.views import AnalyzersView, RerunView, RunsView, RunView, SchedulesView
from analyzers.api.what_if import WhatIfView

urlpatterns = [
    path("what_if/<slug:calculator>", WhatIfView.as_view(), name="api-what-if"),
    path("nodes_at_risk", NodesAtRiskView.as_view(), name="api-nodes-at-risk"),
    path("pinglists", RequestedProbesView.as_view(), name="api-requested-probes"),
    path("pinglists/<str:job>", PingListView.as_view(), name="api-ping-list"),
    path("analyzers", AnalyzersView.as_view(), name="api-analyzers"),
    path("runs", RunsView.as_view(), name="api-runs"),
    path("runs/<uuid:id>", RunView.as_view(), name="api-run"),
    path("runs/<uuid:id>/rerun", RerunView.as_view(), name="api-rerun"),
    path(
        "analysis_schedules",
        SchedulesView.as_view({"get": "list", "post": "create"}),
        name="api-analysis-schedules",
    ),
    path(
        "analysis_schedules/<slug:name>",
        SchedulesView.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}),
        name="api-analysis-schedule",
    ),
]
