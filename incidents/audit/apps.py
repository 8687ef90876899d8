from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "incidents.audit"
    label = "audit"
    verbose_name = "Audit"

    def ready(self) -> None:
        from incidents.audit.follower import FOLLOWER, check, rebuild
        from ingest.commands import register_copy, register_follower

        register_follower(FOLLOWER)
        register_copy("audit entries", check, rebuild)
