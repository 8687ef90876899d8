"""Addresses below /api/v1/."""

from django.urls import path

from incidents.scorecards.views import ScorecardsView, ScorecardView

urlpatterns = [
    path("scorecards", ScorecardsView.as_view(), name="api-scorecards"),
    path("analyzers/<slug:name>/scorecard", ScorecardView.as_view(), name="api-scorecard"),
]
