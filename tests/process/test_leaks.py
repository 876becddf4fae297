"""Whose test fails for a socket that was left open: the one that left it."""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CONFTEST = "import leaks\nfrom leaks import pytest_runtest_setup, pytest_runtest_teardown\nleaks.PATIENCE = 0.5\n"
INNOCENT = "def test_innocent():\n    import gc\n    gc.collect()\n"


def run(folder: Path, first: str, second: str = INNOCENT) -> tuple[int, str]:
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_first.py").write_text(textwrap.dedent(first))
    (folder / "test_second.py").write_text(second)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={"PYTHONPATH": str(TESTS)})
    return done.returncode, done.stdout + done.stderr


def test_a_socket_that_became_garbage_fails_the_test_that_made_it_and_no_other(tmp_path: Path) -> None:
    guilty = """
        import socket
        def test_guilty():
            held = [socket.socket()]
            held.append(held)  # only the garbage collector finds it
        def test_innocent():
            pass
    """
    code, output = run(tmp_path, guilty)

    assert code == 1
    assert "3 passed, 1 error" in output
    assert "ERROR at teardown of test_guilty" in output
    assert "test_first.py:4" in output, "where it was made"


def test_a_socket_that_outlives_its_file_fails_the_last_test_of_the_file(tmp_path: Path) -> None:
    guilty = """
        import socket, threading
        def test_guilty():
            end = threading.Event()
            held = socket.socket()
            threading.Thread(target=lambda: end.wait() and held, daemon=True).start()
        def test_last():
            pass
    """
    code, output = run(tmp_path, guilty)

    assert code == 1
    assert "3 passed, 1 error" in output
    assert "ERROR at teardown of test_last" in output
    assert "of test_first.py::test_guilty" in output


def test_a_socket_may_live_as_long_as_the_fixtures_of_its_file(tmp_path: Path) -> None:
    shared = """
        import pytest, socket
        @pytest.fixture(scope="module")
        def server():
            with socket.create_server(("127.0.0.1", 0)) as found:
                yield found
        def test_one(server):
            pass
        def test_other(server):
            pass
    """
    code, output = run(tmp_path, shared)

    assert code == 0, output


@pytest.mark.parametrize("server_side", [True, False])
def test_a_connection_that_was_reset_before_its_handshake_is_closed(server_side: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ends = [socket.create_connection(server.getsockname()), server.accept()[0]]
    kept, gone = reversed(ends) if server_side else ends
    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    gone.close()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server_side else ssl.PROTOCOL_TLS_CLIENT)

    with pytest.raises(ConnectionResetError), kept:
        context.wrap_socket(kept, server_side=server_side, server_hostname=None if server_side else "far")
