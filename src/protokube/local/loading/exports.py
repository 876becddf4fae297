"""Images that a container tool of this machine has: exported into an archive by the first tool that has it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from protokube.local.base.executables import which
from protokube.local.loading.contents import Wrong
from protokube.local.loading.names import BadName, normalise

SECONDS = 900.0
"""For an image of gigabytes on a slow disk."""
ARCHIVES = (".tar", ".tar.gz", ".tgz")
Command = Callable[[str, str, str], Sequence[str]]
"""From the file, the name as it was said and the architecture, the words of a tool."""
TOOLS: dict[str, Command] = {
    "docker": lambda file, name, _: ["save", "--output", file, name],
    "podman": lambda file, name, _: ["save", "--format", "oci-archive", "--output", file, name],
    "nerdctl": lambda file, name, machine: ["save", "--platform", f"linux/{machine}", "--output", file, name],
    "ctr": lambda file, name, machine: ["images", "export", "--platform", f"linux/{machine}", file, normalise(name)],
}
"""In the order in which they are asked; `ctr` takes no short names."""


def is_file(said: str) -> bool:
    """Whether a word means a file: one that is there, or one that can be nothing else.

    A folder that is there is none: whoever builds the image `web` often stands beside the folder `web`.
    """
    if said.startswith(("/", "./", "../", "~")) or said.endswith(ARCHIVES):
        return True
    try:
        return Path(said).is_file()
    except OSError:  # it is too long for a path
        return False


def export(name: str, machine: str, file: Path) -> str:
    """Write the archive of an image; the tool that had it. Wrong, with what each said, if none has."""
    try:
        normalise(name)
    except BadName as why:
        raise Wrong(f"neither a file nor the name of an image: {why}") from why
    said: list[str] = []
    for tool, words in TOOLS.items():
        program = which(tool)
        if program is None:
            said.append(f"{tool} is not installed")
            continue
        file.unlink(missing_ok=True)
        try:
            subprocess.run(  # noqa: S603
                [program, *words(str(file), name, machine)],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=SECONDS,
            )  # fmt: skip
            return tool
        except subprocess.CalledProcessError as why:
            said.append(f"{tool} says: {' '.join((why.stderr or why.stdout).split()) or f'exit code {why.returncode}'}")
        except (OSError, subprocess.TimeoutExpired) as why:
            said.append(f"{tool}: {why}")
    raise Wrong(f"no such file, and no tool of this machine has that image: {'; '.join(said)}")
