"""The clusters that `make up` made, so that `make down` removes them and no others.

    made.py note OPTIONS...       before `protokube up OPTIONS`: note the cluster that it will make
    made.py down COMMAND...       remove those that were noted, by `COMMAND down --cluster NAME`

A cluster that exists already and was not noted is not made by this `make up`, so it is not noted then. Noted is its
state folder: with another PROTOKUBE_STATE, the same name is another cluster.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NOTED = Path(__file__).resolve().parent.parent / ".cache" / "made"


def noted() -> list[str]:
    return NOTED.read_text().splitlines() if NOTED.exists() else []


def write(folders: list[str]) -> None:
    NOTED.parent.mkdir(exist_ok=True)
    NOTED.write_text("".join(f"{folder}\n" for folder in folders))


def folder_of(name: str) -> str:
    from protokube.local.base.paths import Paths

    return str(Paths.of(name).root)


def name_of(options: list[str]) -> str:
    """The cluster that `protokube up` with these options is about."""
    from protokube.cli.up.choosing import read_spec
    from protokube.cli.up.command import up

    with up.make_context("up", options, resilient_parsing=True) as context:
        spec = context.params["spec"]
        return read_spec(Path(spec))[0].name if spec else str(context.params["name"])


def note(options: list[str]) -> None:
    """An error of the user's is told by `up` itself, a moment later."""
    from protokube.errors import ProtokubeError
    from protokube.local.choose import clusters

    try:
        name = name_of(options)
    except (ProtokubeError, OSError):
        return
    if folder_of(name) not in noted() and name not in clusters():
        write([*noted(), folder_of(name)])


def down(command: list[str]) -> int:
    from protokube.local.choose import clusters

    existing, left = {folder_of(name): name for name in clusters()}, 0
    write([folder for folder in noted() if folder in existing or folder != folder_of(Path(folder).name)])
    made = {folder: existing[folder] for folder in noted() if folder in existing}
    for folder, name in made.items():
        if failed := subprocess.run([*command, "down", "--cluster", name], check=False).returncode:
            left = failed
        else:
            write([each for each in noted() if each != folder])
    if not made:
        others = ", ".join(existing.values())
        more = f"; there are others: {others} (protokube down --cluster NAME)" if others else ""
        print(f"`make up` made no cluster that is still there{more}")
    return left


if __name__ == "__main__":
    kind, *words = sys.argv[1:]
    sys.exit(note(words) if kind == "note" else down(words))
