from django.apps import AppConfig


class EscalationConfig(AppConfig):
    name = "incidents.escalation"
    label = "escalation"
    verbose_name = "Escalation"

    def ready(self) -> None:
        from incidents.escalation import queries, sweep
        from incidents.escalation.models import EscalationRow, project, rows
        from incidents.incident.projection import Part, register_part
        from incidents.teams.references import register_naming
        from incidents.worker.sweeps import register_sweep

        register_part(Part(EscalationRow, project, rows))
        register_sweep("escalation", sweep.sweep)
        register_naming("channel", queries.calls_channel)
        register_naming("schedule", queries.calls_schedule)
        register_naming("team", queries.calls_team)
