from django.apps import AppConfig


class IncidentsConfig(AppConfig):
    """Registers what every process has to know of incidents."""

    name = "incidents"
    label = "incidents"
    verbose_name = "Incidents"

    def ready(self) -> None:
        from incidents import events, follower, timers
        from incidents.alerts import resolve
        from incidents.changes import outcomes
        from incidents.onsets import sweep as onsets
        from incidents.questions import sweep as questions
        from incidents.remediation import sweep as proofs
        from incidents.routing import auto_assign
        from incidents.worker.parts import register_loop
        from incidents.worker.sweeps import register_sweep

        events.register()
        follower.register()
        register_sweep("pending resolutions", resolve.sweep)
        register_sweep("proof of repair", proofs.sweep)
        register_sweep("questions", questions.sweep)
        register_sweep("onset runs", onsets.sweep)
        register_sweep("outcomes of changes", outcomes.sweep)
        register_loop("timers", timers.run)
        register_loop("suggested teams", auto_assign.run)
