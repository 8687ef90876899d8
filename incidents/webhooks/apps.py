from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "incidents.webhooks"
    label = "webhooks"
    verbose_name = "Webhooks"

    def ready(self) -> None:
        from incidents.delivery.loops import register_loop
        from incidents.webhooks.sending import run

        register_loop("webhooks", run)
