"""Writes the picture book: an empty Dossier, the demo after its stories, panels, paper, a storm, long lists, failures.

    python -m tests.pictures [--part PART] [--look LOOK] [--page WORD] [--readme] [DIRECTORY]

Each may be said more than once, and chooses what is taken; the book keeps what earlier runs took. A Dossier of its own
is started in a temporary home and stopped again. Says what axe finds and what the browser complains about on the way,
and ends with 1 when there was anything. With `--readme` only the pictures of the README are made anew.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import django
from playwright.sync_api import sync_playwright

PLACE = Path(".dossier/pictures")
OF_README = Path("frontend/pictures")


def main(wanted: argparse.Namespace) -> int:
    from tests.browser.chromium import FLAGS, chromium
    from tests.pictures import book
    from tests.pictures.camera import Camera
    from tests.pictures.parts import PARTS, worlds

    parts = [one for one in PARTS if not wanted.part or one.name in wanted.part]
    if wanted.readme:
        parts = [PARTS[0]]
    if not any(list(one.chosen(wanted.page, wanted.look)) for one in parts):
        sys.exit(f"Nothing is called that. The parts are {', '.join(one.name for one in PARTS)}.")
    if chromium() is None:
        sys.exit("There is no Chromium; deploy/install-chromium.sh installs it.")
    directory: Path = wanted.directory
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dossier-pictures-") as homes, sync_playwright() as playwright:
        Path(homes).chmod(0o755)
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        camera = Camera(browser, directory)
        for ours in worlds(parts):
            with ours[0].of(Path(homes) / ours[0].name) as world:
                if wanted.readme:
                    camera.for_readme(world, OF_README)
                    return 0
                for part in ours:
                    chosen = list(part.chosen(wanted.page, wanted.look))
                    if chosen and part.before is not None:
                        part.before(world)
                    for look, screens in chosen:
                        camera.take(world, part.title, screens, look)
        browser.close()
    pictures = book.added(directory, camera.pictures, [one.title for one in PARTS])
    sys.stdout.write(f"{book.summary(camera.pictures)}; {len(camera.wrong)} complaints\n")
    sys.stdout.write(f"{book.write(directory, pictures)}: {book.summary(pictures)}\n")
    return 1 if camera.wrong else 0


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.pictures")
    for name in ("part", "look", "page"):
        parser.add_argument(f"--{name}", action="append", default=[])
    parser.add_argument("--readme", action="store_true")
    parser.add_argument("directory", nargs="?", type=Path, default=PLACE)
    return parser.parse_args()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
    django.setup()
    sys.exit(main(asked()))
