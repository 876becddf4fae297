"""The clusters that `make up` made, so that `make down` removes them and no others.

    made.py note OPTIONS...       before `protokube up OPTIONS`: note the cluster that it will make
    made.py down COMMAND...       remove those that were noted, by `COMMAND down --cluster NAME`

A cluster that exists already and was not noted is not made by this `make up`, so it is not noted then.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NOTED = Path(__file__).resolve().parent.parent / ".cache" / "made"


def noted() -> list[str]:
    return NOTED.read_text().split() if NOTED.exists() else []


def write(names: list[str]) -> None:
    NOTED.parent.mkdir(exist_ok=True)
    NOTED.write_text("".join(f"{name}\n" for name in names))


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
        if name not in noted() and name not in clusters():
            write([*noted(), name])
    except OSError as why:
        print(f"warning: `make down` will not remove the cluster, since it cannot be noted: {why}", file=sys.stderr)
    return 0


def down(command: list[str]) -> int:
    from protokube.local.choose import clusters

    existing = clusters()
    gone, left = [name for name in noted() if name in existing], 0
    if gone != noted():
        write(gone)
    for name in gone:
        if failed := subprocess.run([*command, "down", "--cluster", name], check=False).returncode:
            left = failed
        else:
            write([each for each in noted() if each != name])
    if not gone:
        others = [f"; there are others: {', '.join(existing)} (protokube down --cluster NAME)"] if existing else []
        print("`make up` made no cluster that is still there", *others, sep="")
    return left


if __name__ == "__main__":
    kind, *words = sys.argv[1:]
    try:
        sys.exit(note(words) if kind == "note" else down(words))
    except OSError as why:
        sys.exit(f"error: what `make up` made cannot be read or written\n  saw:  {why}\n  hint: sudo make down")
