"""The clusters that `make up` made, so that `make down` removes them and no others.

    made.py note OPTIONS...       before `protokube up OPTIONS`: note the cluster that it will make
    made.py keep                  after it: note when its folder was born
    made.py down COMMAND...       remove those that were noted, by `COMMAND down --cluster NAME`

A cluster that exists already and was not noted is not made by this `make up`, so it is not noted then. Noted is its
state folder, since with another PROTOKUBE_STATE the same name is another cluster, and its birth, since something else
may have made one of the same name since.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

NOTED = Path(__file__).resolve().parent.parent / ".cache" / "made"


def noted() -> dict[str, str]:
    """Folders, each with its birth; "" if `up` has not ended, or the file system does not know it."""
    lines = NOTED.read_text().splitlines() if NOTED.exists() else []
    return {folder: born for folder, _, born in (line.partition("\t") for line in lines)}


def write(found: Mapping[str, str]) -> None:
    NOTED.parent.mkdir(exist_ok=True)
    NOTED.write_text("".join(f"{folder}\t{born}".strip() + "\n" for folder, born in found.items()))


def folder_of(name: str) -> str:
    from protokube.local.base.paths import Paths

    return str(Paths.of(name).root)


def birth(folder: str) -> str:
    """Of a cluster's folder: what is inside only root may see."""
    command = ["stat", "--format=%w", folder]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "TZ": "UTC"})
    return ran.stdout.strip().removesuffix("-")


def is_ours(folder: str, born: str) -> bool:
    return not born or born == birth(folder)


def name_of(options: list[str]) -> str:
    """The cluster that `protokube up` with these options is about."""
    from protokube.cli.up.choosing import read_spec
    from protokube.cli.up.command import up

    with up.make_context("up", options, resilient_parsing=True) as context:
        spec = context.params["spec"]
        return read_spec(Path(spec))[0].name if spec else str(context.params["name"])


def note(options: list[str]) -> int:
    """An error of the user's is told by `up` itself, a moment later."""
    from protokube.errors import ProtokubeError
    from protokube.local.choose import clusters

    try:
        name = name_of(options)
        folder = folder_of(name)
    except (ProtokubeError, OSError, ValueError):
        return 0
    try:
        found = noted()
        if name not in clusters() or (folder in found and is_ours(folder, found[folder])):
            write({**found, folder: ""})  # it may be made anew
    except OSError as why:
        print(f"warning: `make down` will not remove the cluster, since it cannot be noted: {why}", file=sys.stderr)
    return 0


def keep() -> int:
    found = noted()
    known = {folder: born or birth(folder) for folder, born in found.items()}
    if known != found:
        write(known)
    return 0


def down(command: list[str]) -> int:
    from protokube.local.choose import clusters

    existing, found, left = {folder_of(name): name for name in clusters()}, noted(), 0
    elsewhere = {folder: born for folder, born in found.items() if folder != folder_of(Path(folder).name)}
    ours = {folder: born for folder, born in found.items() if folder in existing and is_ours(folder, born)}
    if {**elsewhere, **ours} != found:
        write({**elsewhere, **ours})
    for folder in ours:
        if failed := subprocess.run([*command, "down", "--cluster", existing[folder]], check=False).returncode:
            left = failed
        else:
            write({each: born for each, born in noted().items() if each != folder})
    if not ours:
        others = ", ".join(existing.values())
        more = f"; there are others: {others} (protokube down --cluster NAME)" if others else ""
        print(f"`make up` made no cluster that is still there{more}")
    return left


if __name__ == "__main__":
    kind, *words = sys.argv[1:]
    try:
        sys.exit(note(words) if kind == "note" else keep() if kind == "keep" else down(words))
    except OSError as why:
        sys.exit(f"error: what `make up` made cannot be read or written\n  saw:  {why}\n  hint: sudo make down")
