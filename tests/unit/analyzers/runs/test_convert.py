"""Arguments of `manage.py convert`, as a person types them."""

import pytest
from django.core.management.base import CommandError

from analyzers.runs.management.commands.convert import Command


@pytest.mark.parametrize(
    "typed", ["flight-recorder a.json b.json --job train", "flight-recorder --job train a.json b.json"]
)
def test_files_stand_before_options_or_after_them(typed: str) -> None:
    options = Command().create_parser("manage.py", "convert").parse_args(typed.split())
    assert (options.files, options.job) == (["a.json", "b.json"], "train")


def test_an_unknown_option_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Command, "_called_from_command_line", False)
    with pytest.raises(CommandError, match="--jobs"):
        Command().create_parser("manage.py", "convert").parse_args(["spans", "--jobs", "x"])
