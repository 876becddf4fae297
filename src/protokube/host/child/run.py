"""The program of a disk child: `python -I -S run.py REQUEST` does one job and prints one result, both JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

HOST = Path(__file__).resolve().parent.parent


def stand_in(name: str, folder: Path) -> None:
    """Register a package without running its __init__: importing that takes longer than the rest of the start."""
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package


if __name__ == "__main__":
    stand_in("protokube", HOST.parent)
    stand_in("protokube.host", HOST)
    from protokube.host.child import work

    work.main(sys.argv[1])
