"""Export an image from a container tool on this machine; the first tool that has the image is used."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from protokube.binaries.executables import which
from protokube.images.contents import ImageProblem
from protokube.images.names import BadName, normalise

SECONDS = 900.0
"""For an image of gigabytes on a slow disk."""
ARCHIVES = (".tar", ".tar.gz", ".tgz")
Command = Callable[[str, str, str], Sequence[str]]
"""The arguments of a tool, for the output file, the name as the user gave it, and the architecture."""
TOOLS: dict[str, Command] = {
    "docker": lambda file, name, _: ["save", "--output", file, name],
    "podman": lambda file, name, _: ["save", "--format", "oci-archive", "--output", file, name],
    "nerdctl": lambda file, name, machine: ["save", "--platform", f"linux/{machine}", "--output", file, name],
    "ctr": lambda file, name, machine: ["images", "export", "--platform", f"linux/{machine}", file, normalise(name)],
}
"""In the order in which they are tried; `ctr` does not accept short names."""


def is_file(argument: str) -> bool:
    """Whether an argument is a file: an existing file, or a path that cannot be an image name.

    An existing folder does not count: the image `web` is often built next to a folder `web`.
    """
    if argument.startswith(("/", "./", "../", "~")) or argument.endswith(ARCHIVES):
        return True
    try:
        return Path(argument).is_file()
    except OSError:  # it is too long for a path
        return False


def export(name: str, machine: str, file: Path) -> str:
    """Write the archive of an image; return the tool that had it. ImageProblem, with each tool's error, if none has."""
    try:
        normalise(name)
    except BadName as why:
        raise ImageProblem(f"neither a file nor the name of an image: {why}") from why
    reasons: list[str] = []
    for tool, words in TOOLS.items():
        program = which(tool)
        if program is None:
            reasons.append(f"{tool} is not installed")
            continue
        file.unlink(missing_ok=True)
        try:
            subprocess.run(  # noqa: S603
                [program, *words(str(file), name, machine)],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=SECONDS,
            )  # fmt: skip
            return tool
        except subprocess.CalledProcessError as why:
            reasons.append(
                f"{tool} says: {' '.join((why.stderr or why.stdout).split()) or f'exit code {why.returncode}'}"
            )
        except (OSError, subprocess.TimeoutExpired) as why:
            reasons.append(f"{tool}: {why}")
    raise ImageProblem(f"no such file, and no tool of this machine has that image: {'; '.join(reasons)}")
