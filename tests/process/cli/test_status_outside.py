"""`status` says whether hosts reach the outside."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from builders.view import FakeCloud, a_view, cloud_rows
from protokube.local.base.db import Database
from protokube.local.base.paths import Paths
from protokube.local.outside.config import SETTING
from protokube.local.view import sources
from protokube.providers.clients.local import LocalClient
from protokube.view.values import OutsideView

OPEN = OutsideView(reached=True, isolated=False)


def test_it_is_asked_of_the_daemon_and_without_one_nothing_gets_out(tmp_path: Path) -> None:
    paths = Paths.at(tmp_path / "dev")
    paths.create()
    with ThreadPoolExecutor() as pool:
        with FakeCloud(paths.admin_socket, cloud_rows(a_view(outside=OPEN))):
            assert sources.inventory(paths, LocalClient(paths.admin_socket), pool).outside == OPEN
        database = Database(paths.database)
        database.set(SETTING, {"isolated": False})
        database.close()
        silent = sources.inventory(paths, LocalClient(paths.admin_socket, patience=0.1), pool).outside
    assert silent == OutsideView(reached=False, isolated=False, why="the local cloud does not run")
