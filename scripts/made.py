"""The clusters that `make up` made, so that `make down` removes them and no others.

    made.py note OPTIONS...       before `protokube up OPTIONS`: note the cluster that it will make
    made.py keep                  after it: note when its folder was born
    made.py down COMMAND...       remove those that were noted, by `COMMAND down --cluster NAME`

A cluster that exists already and was not noted is not made by this `make up`, so it is not noted then. Nor is one of
the same name that something else made since: its folder was born later.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

NOTED = Path(__file__).resolve().parent.parent / ".cache" / "made"


def noted() -> dict[str, str]:
    """Names, each with the birth of its folder; "" if `up` has not ended, or the file system does not know it."""
    lines = NOTED.read_text().splitlines() if NOTED.exists() else []
    return {name: born for name, _, born in (line.partition(" ") for line in lines)}


def write(found: Mapping[str, str]) -> None:
    NOTED.parent.mkdir(exist_ok=True)
    NOTED.write_text("".join(f"{name} {born}".strip() + "\n" for name, born in found.items()))


def birth(name: str) -> str:
    """Of the cluster's folder: what is inside only root may see."""
    from protokube.local.base.paths import PARENT

    place = Path(os.environ.get("PROTOKUBE_STATE") or PARENT) / name
    ran = subprocess.run(
        ["stat", "--format=%w", place], capture_output=True, text=True, check=False, env={**os.environ, "TZ": "UTC"}
    )
    return ran.stdout.strip().removesuffix("-")


def is_ours(name: str, born: str) -> bool:
    return not born or born == birth(name)


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
    except (ProtokubeError, OSError, ValueError):
        return 0
    try:
        found = noted()
        if name not in clusters() or (name in found and is_ours(name, found[name])):
            write({**found, name: ""})  # it may be made anew
    except OSError as why:
        print(f"warning: `make down` will not remove the cluster, since it cannot be noted: {why}", file=sys.stderr)
    return 0


def keep() -> int:
    found = noted()
    known = {name: born or birth(name) for name, born in found.items()}
    if known != found:
        write(known)
    return 0


def down(command: list[str]) -> int:
    from protokube.local.choose import clusters

    existing, found = clusters(), noted()
    ours, left = {name: born for name, born in found.items() if name in existing and is_ours(name, born)}, 0
    if ours != found:
        write(ours)
    for name in ours:
        if failed := subprocess.run([*command, "down", "--cluster", name], check=False).returncode:
            left = failed
        else:
            write({each: born for each, born in noted().items() if each != name})
    if not ours:
        others = [f"; there are others: {', '.join(existing)} (protokube down --cluster NAME)"] if existing else []
        print("`make up` made no cluster that is still there", *others, sep="")
    return left


if __name__ == "__main__":
    kind, *words = sys.argv[1:]
    try:
        sys.exit(note(words) if kind == "note" else keep() if kind == "keep" else down(words))
    except OSError as why:
        sys.exit(f"error: what `make up` made cannot be read or written\n  saw:  {why}\n  hint: sudo make down")
