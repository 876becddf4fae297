"""The guard of the unit tests: what reaches out of its process fails, also where the code swallows the error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CONFTEST = "from confined import confined\n"


def run(folder: Path, body: str) -> tuple[int, str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    (folder / "test_one.py").write_text(f"def test_it(tmp_path):\n{lines}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={folder / 'base'}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={"PYTHONPATH": str(TESTS)})
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("import socket; socket.socket().connect(('127.0.0.1', 9))", "socket.connect ('127.0.0.1', 9)"),
        ("import socket; socket.socket().bind(('127.0.0.1', 0))", "socket.bind ('127.0.0.1', 0)"),
        ("import socket; socket.getaddrinfo('localhost', 80)", "socket.getaddrinfo 'localhost'"),
        ("import subprocess; subprocess.run(['true'])", "subprocess.Popen 'true'"),
        ("import os; os.system('true')", "os.system"),
        ("open('/etc/hostname').read()", "reading /etc/hostname"),
        ("open('/var/protokube-test', 'w')", "writing /var/protokube-test"),
    ],
)
def test_a_socket_a_program_and_a_file_elsewhere_fail_a_unit_test(tmp_path: Path, body: str, named: str) -> None:
    code, output = run(tmp_path, body)

    assert code == 1
    assert named in output


def test_what_a_thread_did_or_the_code_swallowed_fails_it_too(tmp_path: Path) -> None:
    swallowing = "import subprocess\ntry: subprocess.run(['true'])\nexcept BaseException: pass"
    code, output = run(tmp_path, swallowing)

    assert code == 1
    assert "tests of this tier stay inside their process" in output


def test_its_own_folder_and_its_own_sources_are_open_to_a_unit_test(tmp_path: Path) -> None:
    code, output = run(tmp_path, f"(tmp_path / 'a').write_text('b')\nopen({str(TESTS / 'confined.py')!r}).read()")

    assert code == 0, output
