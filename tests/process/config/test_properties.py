"""What holds for every spec: the user's word stands, the result is stable, and every value says where it is from."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from builders.config import ROOT

pytestmark = pytest.mark.usefixtures("unmeasured")


def test_the_bytes_do_not_depend_on_the_order_in_which_python_hashes() -> None:
    code = (
        "import sys; from pathlib import Path; from protokube.config.complete import complete;"
        "from protokube.config.document import documents, write; from protokube.spec.parse import parse\n"
        "for name in sorted(Path('examples').glob('*.yaml')):\n"
        "    config = complete(parse([(str(name), name.read_text('utf-8'))]))\n"
        "    write(documents(config), 'yaml', sys.stdout)\n"
        "    print(*config.warnings, sep='\\n')\n"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }

    assert len(seen) == 1
    assert b"kind: Cluster" in seen.pop()
