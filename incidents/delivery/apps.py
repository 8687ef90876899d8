from django.apps import AppConfig


class DeliveryConfig(AppConfig):
    name = "incidents.delivery"
    label = "delivery"
    verbose_name = "Delivery"
