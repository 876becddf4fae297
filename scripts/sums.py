"""Write the sums of all Go modules that versions of Kubernetes consist of beside the code that compares them."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from protokube.cli.progress import Progress
from protokube.programs.gomodules import SUMS, resolved_sums
from protokube.programs.kubernetes import plain_version


def main(versions: list[str]) -> None:
    SUMS.mkdir(exist_ok=True)
    for version in map(plain_version, versions):
        with tempfile.TemporaryDirectory() as cache:
            sums = resolved_sums(version, Path(cache), Progress())
        file = SUMS / f"kubernetes-{version}.sum"
        file.write_text(sums, "ascii")
        print(f"{file.name}: {len(sums.splitlines())} sums")


if __name__ == "__main__":
    main(sys.argv[1:])
