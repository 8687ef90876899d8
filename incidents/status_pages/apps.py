from django.apps import AppConfig


class StatusPagesConfig(AppConfig):
    name = "incidents.status_pages"
    label = "status_pages"
    verbose_name = "Status pages"

    def ready(self) -> None:
        from incidents.domain.status_pages import EVENT_TYPES
        from incidents.status_pages.mail import run
        from incidents.status_pages.projection import check, rebuild
        from incidents.status_pages.queries import pages_of_service, pages_of_team
        from incidents.teams.references import register_naming
        from incidents.worker.parts import register_loop
        from ingest.commands import EventType, register_copy, register_event_type

        for name in EVENT_TYPES:
            register_event_type(EventType(name))
        register_copy("status notices", check, rebuild)
        register_naming("team", pages_of_team)
        register_naming("service", pages_of_service)
        register_loop("status mails", run)
