"""Lines and one progress bar on a terminal; plain lines, at every quarter, in a file or a pipe."""

from __future__ import annotations

import threading
from typing import TextIO

WIDTH = 32


class Screen:
    """Several threads may write; the bar stays below what is said."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.live = out.isatty()
        self.lock = threading.Lock()
        self.bar = ""
        self.quarter: dict[str, int] = {}

    def say(self, line: str = "") -> None:
        with self.lock:
            self._clear()
            self.out.write(f"{line}\n")
            self._draw()

    def progress(self, what: str, done: float, total: float, note: str = "") -> None:
        """Show how far `what` is; a bar that is full is left behind as a line."""
        share = min(1.0, done / total) if total else 1.0
        filled = round(share * WIDTH)
        bar = f"{what:<24} [{'█' * filled}{'·' * (WIDTH - filled)}] {share:4.0%} {note}".rstrip()
        with self.lock:
            if self.live:
                self._clear()
                self.bar = bar if share < 1 else ""
                if share == 1:
                    self.out.write(f"{bar}\n")
                self._draw()
            elif int(share * 4) > self.quarter.get(what, -1):
                self.quarter[what] = int(share * 4)
                self.out.write(f"{bar}\n")
                self.out.flush()

    def _clear(self) -> None:
        if self.bar:
            self.out.write("\r\x1b[2K")

    def _draw(self) -> None:
        self.out.write(self.bar)
        self.out.flush()
