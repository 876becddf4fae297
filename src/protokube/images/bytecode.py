"""Compile Python modules for a read-only image; valid whatever the modification times of the files there."""

from __future__ import annotations

import importlib.util
import marshal
import sys
import warnings
from collections.abc import Mapping
from pathlib import PurePosixPath

UNCHECKED = 0b01
"""Flags of an unchecked hash-based .pyc (PEP 552)."""


def compiled(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The bytecode of the Python modules among these files, at the paths where the interpreter looks for it."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about other people's modules
        for path in (PurePosixPath(path) for path in files if path.endswith(".py")):
            source = files[str(path)]
            try:
                code = compile(source, path, "exec", dont_inherit=True)
            except (SyntaxError, ValueError):  # a template, or written for another version
                continue
            head = importlib.util.MAGIC_NUMBER + UNCHECKED.to_bytes(4, "little") + importlib.util.source_hash(source)
            place = path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc"
            found[str(place)] = head + marshal.dumps(code)
    return found
