"""The README's table of variables is complete and true."""

from pathlib import Path

from deploy import env
from tests import settings

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_readme_lists_exactly_the_variables_that_are_read() -> None:
    assert settings.LOGGING_CONFIG  # the settings have been read
    wanted = [f"| `{v.name}` | {shown(v.default)} | {v.help} |" for v in env.VARIABLES.values()]
    table = README.read_text().partition("| variable | default | meaning |")[2].partition("\n\n")[0]
    assert table.splitlines()[2:] == wanted, "the table should be:\n" + "\n".join(wanted)


def shown(default: str) -> str:
    return f"`{default}`" if default else "unset"
