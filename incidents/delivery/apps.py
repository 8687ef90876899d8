from django.apps import AppConfig


class DeliveryConfig(AppConfig):
    name = "incidents.delivery"
    label = "delivery"
    verbose_name = "Delivery"

    def ready(self) -> None:
        from incidents import settling
        from incidents.delivery import suggestions
        from incidents.delivery.ended import tell_ended
        from incidents.delivery.forgetting import forget
        from incidents.delivery.loops import register_loop
        from incidents.delivery.sweeps import register_sweep
        from incidents.delivery.timers import run

        register_sweep("ended incidents", tell_ended)
        register_sweep("messages", forget)
        register_sweep("settling", settling.sweep)
        register_loop("timers", run)
        register_loop("suggested teams", suggestions.run)
