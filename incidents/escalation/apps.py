from django.apps import AppConfig


class EscalationConfig(AppConfig):
    name = "incidents.escalation"
    label = "escalation"
    verbose_name = "Escalation"

    def ready(self) -> None:
        from incidents.escalation import projection, sweep, targets
        from incidents.escalation.models import EscalationRow
        from incidents.incident.projection_parts import Part, register_part
        from incidents.teams.references import register_naming
        from incidents.worker.sweeps import register_sweep

        register_part(Part(EscalationRow, projection.project))
        register_sweep("escalation", sweep.sweep)
        register_naming("channel", targets.calls_channel)
        register_naming("schedule", targets.calls_schedule)
        register_naming("team", targets.calls_team)
