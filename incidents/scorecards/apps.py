from django.apps import AppConfig


class ScorecardsConfig(AppConfig):
    name = "incidents.scorecards"
    label = "scorecards"
    verbose_name = "Score-cards"
