"""Writes the picture book: an empty Dossier, the demo after its stories, long lists, what goes wrong, no connection.

    python -m tests.pictures [--readme] [DIRECTORY]

Both Dossiers are started in homes of their own and stopped again. Says what axe finds and what the browser complains
about on the way, and ends with 1 when there was anything. With `--readme` the pictures of the README are made anew.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import django
from playwright.sync_api import sync_playwright

PLACE = Path(".dossier/pictures")
OF_README = Path("frontend/pictures")
MANY = 10_000


def main(directory: Path, *, readme: bool = False) -> int:
    from tests.browser.chromium import FLAGS, chromium
    from tests.pictures.book import summary, write
    from tests.pictures.camera import Camera
    from tests.pictures.screens import FULL, LOOKS, MADE, WRONG, listed
    from tests.pictures.world import empty, fill, told

    directory.mkdir(parents=True, exist_ok=True)
    if chromium() is None:
        sys.exit("There is no Chromium; deploy/install-chromium.sh installs it.")
    with tempfile.TemporaryDirectory(prefix="dossier-pictures-") as homes, sync_playwright() as playwright:
        Path(homes).chmod(0o755)
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        camera = Camera(browser, directory)
        with told(Path(homes) / "told") as world:
            if readme:
                camera.for_readme(world, OF_README)
            camera.take(world, "After the demo", [*listed(), *MADE])
            camera.take(world, "What goes wrong", list(WRONG), LOOKS[:2])
            camera.without_connection(world)
            fill(world.stack, MANY)
            camera.take(world, "Long lists", list(FULL), LOOKS[:3])
        with empty(Path(homes) / "empty") as world:
            camera.take(world, "Nothing yet", listed(), LOOKS[::2])  # light and narrow
        browser.close()
    sys.stdout.write(
        f"{summary(camera.pictures)}; {len(camera.wrong)} complaints\n{write(directory, camera.pictures)}\n"
    )
    return 1 if camera.wrong else 0


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
    django.setup()
    rest = [one for one in sys.argv[1:] if one != "--readme"]
    sys.exit(main(Path(rest[0]) if rest else PLACE, readme="--readme" in sys.argv))
