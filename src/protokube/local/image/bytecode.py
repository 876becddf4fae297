"""Python's modules compiled for a place where nobody can write beside them, whatever time their files bear there."""

from __future__ import annotations

import importlib.util
import marshal
import sys
import warnings
from collections.abc import Mapping
from pathlib import PurePosixPath

UNCHECKED = 0b01
"""Of a compiled module (PEP 552): it belongs to its source by a hash, which nobody has to compare."""


def compiled(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Of those that are modules of this interpreter: the bytecode, where it will look for it."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the authors of the modules were told
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
