from django.apps import AppConfig


class EscalationConfig(AppConfig):
    name = "incidents.escalation"
    label = "escalation"
    verbose_name = "Escalation"

    def ready(self) -> None:
        from incidents.catalog.naming import register_naming
        from incidents.escalation import following, sweeping, targets
        from incidents.escalation.models import EscalationRow
        from incidents.projections.parts import Part, register_part
        from incidents.worker.sweeps import register_sweep

        register_part(Part(EscalationRow, following.project))
        register_sweep("escalation", sweeping.sweep)
        register_naming("channel", targets.calls_channel)
        register_naming("schedule", targets.calls_schedule)
        register_naming("team", targets.calls_team)
