from django.apps import AppConfig


class IncidentsConfig(AppConfig):
    """Registers what every process has to know of incidents."""

    name = "incidents"
    label = "incidents"
    verbose_name = "Incidents"

    def ready(self) -> None:
        from incidents import events, heeding, reactors, settling, timers
        from incidents.worker.loops import register_loop
        from incidents.worker.sweeps import register_sweep

        events.register()
        reactors.register()
        register_sweep("settling", settling.sweep)
        register_loop("timers", timers.run)
        register_loop("suggested teams", heeding.run)
