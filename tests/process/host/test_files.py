"""Files are old or new, never in between; what has not changed is left alone."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from clusters.disks import wait_until
from protokube.host.files import read_or_none, write_atomic


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


WRITER = """
import sys
from pathlib import Path
from protokube.host.files import write_atomic
place = Path(sys.argv[1])
print("ready", flush=True)
while True:
    for letter in b"ab":
        write_atomic(place, bytes([letter]) * 400_000)
"""


def test_a_writer_that_is_killed_leaves_a_whole_file_and_only_dot_files_beside_it(tmp_path: Path) -> None:
    place = tmp_path / "file"
    for delay in (0.0, 0.01, 0.03):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(place)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(delay)
            writer.kill()

        found = read_or_none(place)
        assert found in (None, b"a" * 400_000, b"b" * 400_000)
        assert all(name == "file" or name.startswith(".file.") for name in names(tmp_path))
    assert write_atomic(place, b"after")
    assert place.read_bytes() == b"after"


def test_a_reader_beside_a_writer_never_sees_a_part(tmp_path: Path) -> None:
    place = tmp_path / "file"
    write_atomic(place, b"a" * 400_000)
    seen: set[bytes] = set()

    def see_both() -> bool:
        seen.update(place.read_bytes() for _ in range(100))
        return len(seen) > 1

    with subprocess.Popen([sys.executable, "-c", WRITER, str(place)], stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            wait_until(see_both, "nobody writes")
        finally:
            writer.kill()

    assert seen <= {b"a" * 400_000, b"b" * 400_000}
