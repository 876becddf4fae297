"""The command as a process: pipes that close, keys pressed, full disks, a broken installation, a fast start."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from builders.command import COMMAND, EXAMPLES, MINIMAL, environment, process
from protokube import __version__
from protokube.errors import ExitCode


def test_the_package_runs_as_the_command_does() -> None:
    script = Path(sys.executable).parent / "protokube"
    direct = subprocess.run([script, "--version"], capture_output=True, text=True, env=environment(), timeout=60)

    assert process("--version").out == direct.stdout == f"protokube, version {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("complete", MINIMAL, "--why", "cloud"), ExitCode.OK),
        (("diff", MINIMAL, str(EXAMPLES / "local.yaml")), ExitCode.DIFFERENT),
        (("complete", str(EXAMPLES / "nothing.yaml")), ExitCode.REFUSED),
        (("complete", "-"), ExitCode.INVALID),
        (("frobnicate",), ExitCode.INVALID),
    ],
    ids=["ok", "different", "refused", "invalid", "usage"],
)
def test_the_shell_sees_the_exit_code(arguments: tuple[str, ...], code: ExitCode) -> None:
    answer = process(*arguments)

    assert answer.code == code
    assert "Traceback" not in answer.err


def test_an_error_as_data_is_data_for_a_real_command_line_too() -> None:
    answer = process("complete", "-", "-o", "json")

    assert answer.err.startswith('{\n  "error": "1 problem in the spec",\n')


@pytest.mark.parametrize("arguments", ["complete", "schema"])
def test_a_reader_that_has_seen_enough_ends_the_command_quietly(arguments: str) -> None:
    call = f"{' '.join(COMMAND)} {arguments} {MINIMAL if arguments == 'complete' else ''}"
    shell = ["bash", "-o", "pipefail", "-c", f"{call} | head -1"]
    done = subprocess.run(shell, capture_output=True, text=True, env=environment(), timeout=60)

    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")


@pytest.mark.parametrize(
    "arguments",
    [("complete", MINIMAL), ("complete", MINIMAL, "--why", "cloud"), ("complete", MINIMAL, "-o", "json"), ("schema",)],
    ids=["yaml", "one-line", "json", "schema"],
)
def test_a_pipe_that_nobody_reads_ends_the_command_quietly(arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as nowhere:
        done = subprocess.run(
            [*COMMAND, *arguments], stdout=nowhere, stderr=subprocess.PIPE, env=environment(), timeout=60
        )

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("why", [(), ("--why", "cloud")], ids=["long", "short"])
def test_a_full_disk_is_told_as_what_it_is(why: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, "complete", MINIMAL, *why], stdout=full, stderr=subprocess.PIPE, env=environment(), timeout=60
        )

    assert done.returncode == ExitCode.REFUSED
    assert done.stderr == b"error: cannot write the result: No space left on device\n"


def test_a_key_pressed_to_stop_ends_the_command_with_one_word() -> None:
    with subprocess.Popen(
        [*COMMAND, "complete", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as running:
        assert running.stdin
        running.stdin.write(b"apiVersion: protokube.io/v1alpha1\n")
        running.stdin.flush()
        wait_until_read(running.stdin.fileno())

        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)

    assert (running.returncode, out, err.decode().strip()) == (130, b"", "stopped")


def wait_until_read(pipe: int) -> None:
    """Until the other end has taken everything out of the pipe, and so waits for more."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        (left,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))
        if left == 0:
            return
        time.sleep(0.01)
    raise AssertionError("nobody reads the pipe")


@pytest.fixture
def broken_installation(tmp_path: Path) -> dict[str, str]:
    """An environment in which a library we need cannot be loaded."""
    (tmp_path / "yaml.py").write_text("raise RuntimeError('half an upgrade')\n")
    return {"PYTHONPATH": str(tmp_path)}


def test_what_nobody_foresaw_is_one_sentence_and_the_way_to_report_it(broken_installation: dict[str, str]) -> None:
    answer = process("complete", MINIMAL, env=broken_installation)

    assert (answer.code, answer.out) == (ExitCode.BUG, "")
    assert answer.err.splitlines() == [
        "error: a bug in protokube: RuntimeError: half an upgrade",
        "  hint: run it again with PROTOKUBE_DEBUG=1 and report what it prints",
    ]


def test_asked_for_details_it_shows_where_it_happened(broken_installation: dict[str, str]) -> None:
    answer = process("complete", MINIMAL, env={**broken_installation, "PROTOKUBE_DEBUG": "1"})

    assert answer.code == 1
    assert "Traceback" in answer.err
    assert answer.err.endswith("RuntimeError: half an upgrade\n")


HEAVY = ("yaml", "fsspec", "jsonschema", "protokube.config", "protokube.store", "protokube.spec")


def loaded_by(code: str) -> list[str]:
    """Which heavy modules are loaded once this code has run."""
    script = f"{code}\nimport sys\nfor name in {HEAVY}: print(name) if name in sys.modules else None"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment(), timeout=60, check=True
    )
    return [line for line in done.stdout.splitlines() if line in HEAVY]


def test_the_command_starts_without_loading_what_it_may_not_need() -> None:
    assert loaded_by("import protokube.cli.main") == []


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_no_command(option: str) -> None:
    assert loaded_by(f"from protokube.cli.main import run\nrun([{option!r}])") == []


def test_completing_a_spec_loads_no_store() -> None:
    code = f"from protokube.cli.main import run\nrun(['complete', {MINIMAL!r}, '--why', 'cloud'])"

    assert loaded_by(code) == ["yaml", "protokube.config", "protokube.spec"]


def test_a_locale_without_unicode_reads_and_writes_utf_8(tmp_path: Path) -> None:
    spec = Path(MINIMAL).read_text() + "  cloudLabels: {owner: Zoë}\n"
    (tmp_path / "spec.yaml").write_text(spec, "utf-8")

    for name, stdin in ((str(tmp_path / "spec.yaml"), b""), ("-", spec.encode())):
        answer = process("complete", name, stdin=stdin, env={"LC_ALL": "C", "LANG": "C"})
        assert (answer.code, answer.err) == (0, "")
        assert "owner: Zoë" in answer.out


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_is_no_bug(tmp_path: Path, closed: str) -> None:
    call = f"{' '.join(COMMAND)} complete {MINIMAL} --store file://{tmp_path}/store {closed}"
    done = subprocess.run(["bash", "-c", call], capture_output=True, text=True, env=environment(), timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    assert any(each.is_file() for each in tmp_path.rglob("*"))


def test_what_may_not_be_read_is_told_and_is_no_bug(tmp_path: Path) -> None:
    """By a root that has lost the right to read everything: another user cannot run the Python of the tests."""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    os.chown(private, 65534, 65534)
    bound = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    done = subprocess.run(
        [*bound, *COMMAND, "get", "kubernetes", "--cache", str(private / "cache")],
        capture_output=True, text=True, env=environment(), timeout=60,
    )  # fmt: skip

    assert done.returncode == ExitCode.REFUSED
    assert f"error: {private}/cache" in done.stderr
    assert "Permission denied" in done.stderr


def test_a_library_that_is_missing_is_told_with_the_way_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "msgspec.py").write_text("raise ModuleNotFoundError('No module named msgspec', name='msgspec')\n")

    answer = process("dns-controller", "--dns", "aws-route53", "--once", env={"PYTHONPATH": str(tmp_path)})

    assert answer.code == ExitCode.REFUSED
    assert answer.err == "error: this needs msgspec, which is not installed\n  hint: pip install 'protokube'\n"
