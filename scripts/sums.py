"""Write the sums of all Go modules that a version of a product consists of beside the code that compares them."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from protokube.binaries.gomodules import SUMS, resolved_sums
from protokube.binaries.sources import SOURCES
from protokube.cli.shared.progress import Progress
from protokube.errors import ProtokubeError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from soak.conformance import suite

KEPT = {key: (source, SUMS) for key, source in SOURCES.items()} | {suite.SUITE.key: (suite.SUITE_SOURCE, suite.SUMS)}
"""By the word of the command: what is built, and where its sums lie."""


def main(key: str, versions: list[str]) -> None:
    source, folder = KEPT[key]
    folder.mkdir(exist_ok=True)
    for version in map(source.product.plain_version, versions):
        with tempfile.TemporaryDirectory() as cache:
            sums = resolved_sums(source, version, Path(cache), Progress())
        file = folder / f"{key}-{version}.sum"
        file.write_text(sums, "ascii")
        print(f"{file.name}: {len(sums.splitlines())} sums")


if __name__ == "__main__":
    if sys.argv[1:2] == [] or sys.argv[1] not in KEPT:
        sys.exit(f"usage: scripts/sums {{{','.join(KEPT)}}} VERSION...")
    try:
        main(sys.argv[1], sys.argv[2:])
    except ProtokubeError as why:
        sys.exit(f"error: {why}")
