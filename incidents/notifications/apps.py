from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "incidents.notifications"
    label = "notifications"
    verbose_name = "Notifications"

    def ready(self) -> None:
        from incidents.notifications.ended import notify_ended
        from incidents.notifications.retention import forget
        from incidents.worker.sweeps import register_sweep

        register_sweep("ended incidents", notify_ended)
        register_sweep("messages", forget)
