from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "incidents.chat"
    label = "chat"
    verbose_name = "Chat"

    def ready(self) -> None:
        from incidents.chat.dispatcher import run
        from incidents.worker.parts import register_loop

        register_loop("chat", run)
