"""The list of keys that a person sees, beside the keys that do something."""

from __future__ import annotations

import re

from tests.places import ROOT

SCRIPTS = ROOT / "frontend" / "static" / "dossier"
NAMES = {"←": "ArrowLeft", "→": "ArrowRight"}


def table(text: str, name: str) -> list[str]:
    body = re.search(rf"^const {name} = {{(.*?)}};$", text, re.MULTILINE | re.DOTALL)
    assert body is not None
    return re.findall(r'(?:^|[{,])\s*"?([^\s":,{}])"?(?=:|,\n)', body[1], re.MULTILINE)


def test_each_key_is_in_the_list_and_each_of_the_list_does_something() -> None:
    keys = (SCRIPTS / "keys.js").read_text()
    added = [
        key
        for script in SCRIPTS.rglob("*.js")
        for key in re.findall(r'^\s*onKey\("(\S+?)"', script.read_text(), re.M)
    ]
    acting = [*table(keys, "KEYS"), *added]
    assert len(acting) == len(set(acting)), "a letter stands for two things"
    help_ = (ROOT / "frontend" / "templates" / "frontend" / "layout" / "keys.html").read_text()
    terms = re.findall(r"<dt>(.*?)</dt>(?:<dd>(.*?)</dd>)", help_)
    usual = [
        term for term, what in terms if not re.search("then|Ctrl|^Grid", term) and "on a rota" not in what
    ]
    shown = {NAMES.get(key, key) for term in usual for key in re.findall(r"<kbd>(.*?)</kbd>", term)}
    assert shown - {"Enter", "Esc"} == set(acting)
    (places,) = [term.partition("then")[2] for term, _ in terms if "then" in term]
    assert re.findall(r"<kbd>(.*?)</kbd>", places) == table(keys, "GO")
