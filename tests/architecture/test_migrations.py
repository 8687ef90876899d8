"""The migrations say what the models say."""

from django.core.management import call_command


def test_no_model_has_changed_without_a_migration() -> None:
    call_command("check_migrations")
