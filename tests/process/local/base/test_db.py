"""The database of the local cloud loses nothing when the daemon is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from protokube.local.base.db import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "cloud.sqlite")
    yield made
    made.close()


def test_a_second_process_waits_for_the_transaction_of_the_first(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "cloud.sqlite"
    script = (
        f"import sqlite3; c = sqlite3.connect({str(path)!r}, timeout=0.2, isolation_level=None)\n"
        "try: c.execute('BEGIN IMMEDIATE'); print('began')\n"
        "except sqlite3.OperationalError as error: print(error)"
    )

    def other() -> str:
        return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip()

    with database.transaction():
        assert other() == "database is locked"
    assert other() == "began"


def test_what_was_committed_is_there_after_a_kill(tmp_path: Path) -> None:
    script = (
        "import os, signal; from pathlib import Path; from protokube.local.base.db import Database\n"
        f"d = Database(Path({str(tmp_path / 'cloud.sqlite')!r})); d.set('kept', 1)\n"
        "with d.transaction() as c:\n"
        "    c.execute(\"INSERT INTO settings VALUES ('lost', '1')\")\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == -9

    database = Database(tmp_path / "cloud.sqlite")

    assert (database.setting("kept", None), database.setting("lost", None)) == (1, None)
    database.close()
