"""Completion of commands and options in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

SHELLS = ("bash", "zsh", "fish")
BASH = """\
_dossier() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} wanted="{commands}"
  if [ "$COMP_CWORD" -gt 1 ]; then
    case ${{COMP_WORDS[1]}} in
{cases}
      *) wanted="" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$wanted" -- "$word"))
}}
complete -F _dossier dossier"""


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script that a shell evaluates."""
    commands = options(parser)
    if shell == "fish":
        lines = ["complete -c dossier -f"]
        lines += [f"complete -c dossier -n __fish_use_subcommand -a {name}" for name in commands]
        lines += [
            f"complete -c dossier -n '__fish_seen_subcommand_from {name}' -l {option.removeprefix('--')}"
            for name, found in commands.items()
            for option in found
        ]
        return "\n".join(lines)
    cases = "\n".join(f'      {name}) wanted="{" ".join(found)}" ;;' for name, found in commands.items())
    script = BASH.format(commands=" ".join(commands), cases=cases)
    return f"autoload -U +X bashcompinit && bashcompinit\n{script}" if shell == "zsh" else script


def subparsers(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The parser of each command."""
    found = [one.choices for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return found[0]


def options(parser: argparse.ArgumentParser) -> Mapping[str, list[str]]:
    """The long options of each command."""
    return {
        name: [text for one in command._actions for text in one.option_strings if text.startswith("--")]
        for name, command in subparsers(parser).items()
    }
