from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    name = "incidents.reviews"
    label = "reviews"
    verbose_name = "Post-incident reviews"
