"""What opening a store costs."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_store_is_cheap() -> None:
    """A command that needs no store over the network should not pay for one."""
    code = (
        "import sys, protokube.store.open, protokube.store.layout, protokube.store.guard;"
        "protokube.store.open.open_store('/x'); protokube.store.open.open_store('memory://x');"
        "heavy = {'fsspec', 's3fs', 'gcsfs', 'aiohttp', 'botocore', 'asyncio'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
