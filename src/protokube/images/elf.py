"""Tell from a program's ELF headers that it is static: `ldd` is a shell script, and takes far longer to say so."""

from __future__ import annotations

import struct
from pathlib import Path

MAGIC, WIDE, LITTLE = b"\x7fELF", 2, 1
HEADER, ENTRY = struct.Struct("<32xQ14xHH6x"), struct.Struct("<I")
"""Of a 64-bit file: offset of the program headers, size and number of them; the type of one."""
DYNAMIC, INTERPRETER = 2, 3


def is_static(program: Path) -> bool:
    """Whether it certainly needs no shared library; False for anything but a 64-bit little-endian ELF file."""
    try:
        with program.open("rb") as file:
            head = file.read(HEADER.size)
            if len(head) < HEADER.size or (head[:4], head[4], head[5]) != (MAGIC, WIDE, LITTLE):
                return False
            offset, size, count = HEADER.unpack(head)
            file.seek(offset)
            table = file.read(size * count)
    except (OSError, ValueError, OverflowError):  # it cannot be read, or its offset is nonsense
        return False
    if size < ENTRY.size or len(table) < size * count:
        return False
    kinds = {ENTRY.unpack_from(table, size * number)[0] for number in range(count)}
    return bool(kinds) and not kinds & {DYNAMIC, INTERPRETER}
