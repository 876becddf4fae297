"""Record commands in a terminal and write an animated SVG: docs/recording.svg, shown on the first page.

A real run, in a terminal of its own: each command is typed, what it prints is interpreted by a terminal emulator, and
the screens become frames. Waits are cut to a second; the commands themselves print how long they took.
Run it as root: build/docs-env/bin/python scripts/recording.py
"""

from __future__ import annotations

import argparse
import codecs
import os
import pty
import select
import subprocess
import time
from dataclasses import dataclass
from html import escape
from pathlib import Path

import pyte

ROOT = Path(__file__).resolve().parent.parent
COLUMNS, ROWS = 112, 34
COMMANDS = ("protokube up", "kubectl get nodes", "protokube drill kill-master")
LONGEST_WAIT = 1.0
BETWEEN_KEYS = 0.05
AT_THE_END = 4.0
EVERY = 0.1
"""Seconds between two frames at least."""
CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 18, 14
PLAIN, BACKGROUND = "#d8dee9", "#1d2330"
COLOURS = {"red": "#e06c75", "green": "#8fbf7f", "brown": "#e5c07b", "blue": "#6fa8dc", "magenta": "#c58fd0",
           "cyan": "#5fb8c0", "white": PLAIN, "default": PLAIN}  # fmt: skip
Line = tuple[tuple[str, str, bool], ...]
"""Runs of one style: text, colour, bold."""


@dataclass(frozen=True, slots=True)
class Frame:
    at: float
    lines: tuple[Line, ...]


class Recorder:
    """A terminal with a clock that runs no longer than LONGEST_WAIT between two changes."""

    def __init__(self) -> None:
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.Stream(self.screen)
        self.frames: list[Frame] = []
        self.at = 0.0

    def feed(self, text: str, waited: float) -> None:
        self.at += min(waited, LONGEST_WAIT)
        self.stream.feed(text)
        frame = Frame(self.at, tuple(self._line(row) for row in range(ROWS)))
        if self.frames and frame.lines == self.frames[-1].lines:
            return
        if self.frames and self.at - self.frames[-1].at < EVERY:
            frame = Frame(self.frames.pop().at, frame.lines)
        self.frames.append(frame)

    def _line(self, row: int) -> Line:
        cells = [self.screen.buffer[row][column] for column in range(COLUMNS)]
        runs: list[tuple[str, str, bool]] = []
        for cell in cells:
            style = (COLOURS.get(cell.fg, f"#{cell.fg}" if len(cell.fg) == 6 else PLAIN), cell.bold)
            if runs and runs[-1][1:] == style:
                runs[-1] = (runs[-1][0] + cell.data, *style)
            else:
                runs.append((cell.data, *style))
        if runs and not runs[-1][0].strip():
            runs.pop()
        return tuple(runs)


def type_in(recorder: Recorder, command: str) -> None:
    recorder.feed("\x1b[1;32m$\x1b[0m ", 0.4)
    for key in command:
        recorder.feed(key, BETWEEN_KEYS)
    recorder.feed("\r\n", 0.3)


def run(recorder: Recorder, command: str, environment: dict[str, str]) -> int:
    ours, theirs = pty.openpty()
    subprocess.run(["stty", "rows", str(ROWS), "cols", str(COLUMNS)], stdin=theirs, check=True)
    process = subprocess.Popen(["bash", "-c", command], stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    last = time.monotonic()
    try:
        while True:
            select.select([ours], [], [], 1.0)
            try:
                data = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            now = time.monotonic()
            recorder.feed(decoder.decode(data), now - last)
            last = now
    finally:
        os.close(ours)
    return process.wait()


def draw(frames: list[Frame], end: float) -> str:
    """Each frame is visible for its part of the loop; a line that several frames have is drawn once."""
    width, height = COLUMNS * CELL_WIDTH + 2 * MARGIN, ROWS * CELL_HEIGHT + 2 * MARGIN
    names: dict[Line, str] = {}
    uses = []
    for index, frame in enumerate(frames):
        until = frames[index + 1].at if index + 1 < len(frames) else end
        shown = "".join(
            f'<use href="#{names.setdefault(line, f"l{len(names)}")}" y="{MARGIN + (row + 1) * CELL_HEIGHT - 5}"/>'
            for row, line in enumerate(frame.lines)
            if line
        )
        times = f"0;{frame.at / end:.5f};{until / end:.5f};1"
        uses.append(
            f'<g visibility="hidden">{shown}<animate attributeName="visibility" calcMode="discrete" '
            f'values="hidden;visible;hidden;hidden" keyTimes="{times}" dur="{end:.2f}s" repeatCount="indefinite"/></g>'
        )
    lines = "".join(f'<text id="{name}" x="{MARGIN}">{"".join(map(_run, line))}</text>' for line, name in names.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" font-size="14" '
        f'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" fill="{PLAIN}">'
        f"<style>text{{white-space:pre}}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/><defs>{lines}</defs>{"".join(uses)}</svg>\n'
    )


def _run(run: tuple[str, str, bool]) -> str:
    text, colour, bold = run
    style = (f' fill="{colour}"' if colour != PLAIN else "") + (' font-weight="bold"' if bold else "")
    length = f' textLength="{len(text) * CELL_WIDTH:.1f}"'
    return f"<tspan{style}{length}>{escape(text)}</tspan>"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "recording.svg")
    parser.add_argument("commands", nargs="*", default=COMMANDS)
    options = parser.parse_args()
    path = f"{ROOT / '.venv/bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "TERM": "xterm-256color", "PATH": path, "COLUMNS": str(COLUMNS)}
    recorder = Recorder()
    for command in options.commands:
        type_in(recorder, command)
        if code := run(recorder, command, environment):
            raise SystemExit(f"{command}: exit code {code}")
    options.output.write_text(draw(recorder.frames, recorder.at + AT_THE_END))
    print(f"{options.output}: {len(recorder.frames)} frames, {recorder.at + AT_THE_END:.0f} s")


if __name__ == "__main__":
    main()
