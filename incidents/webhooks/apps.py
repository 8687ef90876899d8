from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "incidents.webhooks"
    label = "webhooks"
    verbose_name = "Webhooks"

    def ready(self) -> None:
        from incidents.teams.references import register_naming
        from incidents.webhooks.dispatcher import run
        from incidents.webhooks.queries import telling_of
        from incidents.worker.parts import register_loop

        register_loop("webhooks", run)
        register_naming("team", telling_of)
