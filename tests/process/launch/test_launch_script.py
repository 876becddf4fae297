"""Launch scripts in the shells of distributions, against servers on loopback.

nodeup is a program that writes down how it was called.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http.client import HTTPMessage
from pathlib import Path
from urllib.request import HTTPRedirectHandler, Request

import pytest

from builders.assets import sha256
from fakes import cloud_metadata
from fakes.cloud_metadata import Cloud
from fakes.mirror import Mirror, dead_url, serving
from protokube.launch.userdata import fetch
from protokube.launch.userdata.script import LaunchScript, script

SHELLS = {"dash": ("dash",), "bash": ("bash", "--posix"), "busybox": ("busybox", "sh")}
PROTOKUBE = """
import os, sys
folder = os.environ["TEST_FOLDER"]
if sys.argv[1:] == ["nodeup", "report"]:
    print("kubelet installed in 2 s")
    sys.exit(0)
with open(f"{folder}/called", "a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
codes = open(f"{folder}/codes").read().split()
open(f"{folder}/codes", "w").write(" ".join(codes[1:]))
sys.exit(int(codes[0]) if codes else 0)
"""
FILE = PROTOKUBE.encode() + b"#" * 300_000
SETUP = '{"version": 1, "name": "it\'s $HOME `x` \\\\ ü"}'


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    assert shutil.which(SHELLS[request.param][0]), f"these tests need {request.param}: apt-get install {request.param}"
    found: tuple[str, ...] = SHELLS[request.param]
    return found


@pytest.fixture
def dash() -> tuple[str, ...]:
    return SHELLS["dash"]


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with serving(Mirror(files={"/protokube": FILE})) as running:
        yield running


class World:
    """One machine: a folder for its PATH, its state and its console."""

    def __init__(self, folder: Path, *sources: str) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        (folder / "console").touch()
        (folder / "codes").touch()
        self.program("python3", f'exec {sys.executable} "$@"')
        for name in ("date", "mkdir", "chmod", "mv", "cat", "sleep", "tail"):
            (self.bin / name).symlink_to(shutil.which(name, path="/usr/bin:/bin") or "")
        self.values = LaunchScript(
            sources=sources, sha256=sha256(FILE), setup=SETUP, version="0.9.0", pause=0, longest_pause=0, attempts=4,
            folder=str(folder / "state"), console=str(folder / "console"), arguments=("--target", "direct"),
        )  # fmt: skip

    def program(self, name: str, text: str) -> None:
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.bin / name).chmod(0o755)

    def text(self) -> str:
        """The script, on a machine that has only these programs."""
        path = 'PATH="${PATH:-/usr/bin}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"'
        found = script(self.values)
        assert path in found
        return found.replace(path, f"PATH={self.bin}")

    def start(self, shell: Sequence[str], environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
        file = self.folder / "launch.sh"
        file.write_text(self.text())
        environ = {"TEST_FOLDER": str(self.folder), "PATH": str(self.bin), **(environment or {})}
        program = shutil.which(shell[0]) or ""
        return subprocess.Popen(
            [program, *shell[1:], str(file)], env=environ, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def run(self, shell: Sequence[str], environment: dict[str, str] | None = None) -> tuple[int, str]:
        with self.start(shell, environment) as child:
            output, _ = child.communicate(timeout=120)
        return child.returncode, output

    @property
    def called(self) -> list[str]:
        file = self.folder / "called"
        return file.read_text().splitlines() if file.exists() else []


def installing(place: Path) -> str:
    """What a package manager does, in sh."""
    text = f'#!/bin/sh\\nexec {sys.executable} \\"\\$@\\"\\n'
    return f'printf "{text}" > {place}; chmod 755 {place}'


def test_it_fetches_the_file_and_runs_nodeup_in_any_shell(
    tmp_path: Path, mirror: Mirror, shell: tuple[str, ...]
) -> None:
    world = World(tmp_path, f"{mirror.url}/protokube")

    code, output = world.run(shell)

    assert code == 0, output
    assert world.called == [f"nodeup --setup {tmp_path}/state/setup.json --target direct"]
    assert (tmp_path / "state/setup.json").read_text() == f"{SETUP}\n"
    assert (tmp_path / "state/protokube").read_bytes() == FILE
    lines = output.splitlines()
    assert lines[:2] == ["protokube: fetching protokube 0.9.0", "protokube: running nodeup"]
    assert lines[2] == "protokube: kubelet installed in 2 s"
    assert lines[3].startswith("protokube: done after ")
    assert (tmp_path / "console").read_text() == output


def test_run_again_it_fetches_nothing(tmp_path: Path, mirror: Mirror, shell: tuple[str, ...]) -> None:
    world = World(tmp_path, f"{mirror.url}/protokube")
    world.run(shell)
    mirror.asked.clear()

    assert world.run(shell)[0] == 0
    assert mirror.asked == []
    assert len(world.called) == 2


def test_a_dead_first_mirror_is_named_and_the_next_one_asked(
    tmp_path: Path, mirror: Mirror, shell: tuple[str, ...]
) -> None:
    world = World(tmp_path, f"{dead_url()}/protokube", f"{mirror.url}/protokube")

    code, output = world.run(shell)

    assert code == 0
    assert f"protokube: {dead_url()}/protokube: <urlopen error [Errno 111] Connection refused>" in output


def test_a_file_with_another_digest_is_never_run(tmp_path: Path, shell: tuple[str, ...]) -> None:
    wrong = b"import os; os.abort()"
    files = {"/protokube": wrong, "/protokube.sha256": sha256(wrong).encode()}
    with serving(Mirror(files=files)) as lying:
        world = World(tmp_path, f"{lying.url}/protokube")
        code, output = world.run(shell)

    assert code == 3
    assert f"{lying.url}/protokube: refused, its sha256 is {sha256(wrong)}, and not {sha256(FILE)}" in output
    assert f"protokube: no source has the file of sha256 {sha256(FILE)}" in output
    assert world.called == []
    assert not (tmp_path / "state/protokube").exists()


def test_what_may_come_right_is_tried_again_until_it_does(
    tmp_path: Path, mirror: Mirror, shell: tuple[str, ...]
) -> None:
    world = World(tmp_path, f"{mirror.url}/protokube")
    (tmp_path / "codes").write_text("3 70 0")

    code, output = world.run(shell)

    assert code == 0
    assert "protokube: attempt 1 failed with code 3; the next one is in 0 s" in output
    assert "protokube: attempt 2 failed with code 70; the next one is in 0 s" in output
    assert output.splitlines()[-1].endswith(" s, attempt 3")
    assert len(world.called) == 3


@pytest.mark.parametrize("wrong", ["2", "4"])
def test_what_a_person_has_to_decide_is_not_tried_again(
    tmp_path: Path, mirror: Mirror, shell: tuple[str, ...], wrong: str
) -> None:
    world = World(tmp_path, f"{mirror.url}/protokube")
    (tmp_path / "codes").write_text(wrong)

    code, output = world.run(shell)

    assert code == int(wrong)
    assert f"protokube: failed with code {wrong} after " in output
    assert "protokube: kubelet installed in 2 s" in output
    assert len(world.called) == 1


def test_attempts_are_bounded_where_that_was_asked_for(tmp_path: Path, mirror: Mirror, shell: tuple[str, ...]) -> None:
    world = World(tmp_path, f"{mirror.url}/protokube")
    (tmp_path / "codes").write_text("3 3 3 3 3 3")

    assert world.run(shell)[0] == 3
    assert len(world.called) == 4


def test_an_old_python_is_passed_over(tmp_path: Path, mirror: Mirror, shell: tuple[str, ...]) -> None:
    world = World(tmp_path, f"{mirror.url}/protokube")
    world.program("python3", "exit 1")
    world.program("python3.12", f'exec {sys.executable} "$@"')

    assert world.run(shell)[0] == 0


def test_a_missing_python_is_installed_by_apt(tmp_path: Path, mirror: Mirror, shell: tuple[str, ...]) -> None:
    world = World(tmp_path, f"{mirror.url}/protokube")
    (world.bin / "python3").unlink()
    python = installing(world.bin / "python3")
    world.program("apt-get", f'echo "$*" >> {tmp_path}/apt; case "$*" in *install*) {python} ;; esac')

    code, output = world.run(shell)

    assert code == 0, output
    assert "protokube: installing python3\n" in output
    assert (
        tmp_path / "apt"
    ).read_text() == "-q -y update\n-q -y --no-install-recommends install python3 ca-certificates\n"


def test_a_python_too_old_to_use_with_dnf_gets_the_newer_one(
    tmp_path: Path, mirror: Mirror, shell: tuple[str, ...]
) -> None:
    world = World(tmp_path, f"{mirror.url}/protokube")
    world.program("python3", "exit 1")
    python = installing(world.bin / "python3.11")
    world.program("dnf", f'case "$*" in *3.12) echo no such package; exit 1 ;; *) {python} ;; esac')

    code, output = world.run(shell)

    assert code == 0, output
    assert "protokube: installing python3.12 or python3.11\n" in output


def test_without_a_python_and_a_package_manager_it_says_so_and_stops(
    tmp_path: Path, mirror: Mirror, shell: tuple[str, ...]
) -> None:
    world = World(tmp_path, f"{mirror.url}/protokube")
    (world.bin / "python3").unlink()

    code, output = world.run(shell)

    assert code == 4
    assert output.splitlines()[0] == (
        "protokube: there is no Python 3.11 or newer, and neither apt-get nor dnf to install it"
    )
    assert len(output.splitlines()) == 2
    assert mirror.asked == []


def test_a_distribution_that_has_only_an_older_python_is_told(
    tmp_path: Path, mirror: Mirror, shell: tuple[str, ...]
) -> None:
    world = World(tmp_path, f"{mirror.url}/protokube")
    world.program("python3", "exit 1")
    world.program("apt-get", "exit 0")

    code, output = world.run(shell)

    assert code == 4
    assert "this distribution has no Python 3.11 or newer; install one, and run" in output


def test_packages_that_cannot_be_had_now_are_tried_again(
    tmp_path: Path, mirror: Mirror, shell: tuple[str, ...]
) -> None:
    world = World(tmp_path, f"{mirror.url}/protokube")
    (world.bin / "python3").unlink()
    world.program("apt-get", "echo E: Could not resolve host; exit 100")

    code, output = world.run(shell)

    assert code == 3
    assert output.count("protokube: no Python could be installed: E: Could not resolve host\n") == 4


def test_killed_in_the_download_it_goes_on_where_it_was(tmp_path: Path, dash: tuple[str, ...]) -> None:
    held = Mirror(files={"/protokube": FILE}, at_most=200_000, holding=threading.Event())
    with serving(held):
        world = World(tmp_path, f"{held.url}/protokube")
        part = tmp_path / "state/protokube.part"
        with world.start(dash) as child:
            while not (part.exists() and part.stat().st_size == 200_000):
                assert child.poll() is None
                os.sched_yield()
            os.killpg(child.pid, signal.SIGKILL)
        held.at_most = None
        code, output = world.run(dash)

    assert code == 0, output
    assert [wanted for _, wanted in held.asked] == ["", "bytes=200000-"]
    assert (tmp_path / "state/protokube").read_bytes() == FILE


@pytest.mark.parametrize("left", [b"x" * 1000, b"x" * len(FILE), b"x" * (len(FILE) + 5)])
def test_a_wrong_beginning_of_an_earlier_run_is_thrown_away(
    tmp_path: Path, mirror: Mirror, dash: tuple[str, ...], left: bytes
) -> None:
    world = World(tmp_path, f"{mirror.url}/protokube")
    (tmp_path / "state").mkdir()
    (tmp_path / "state/protokube.part").write_bytes(left)

    assert world.run(dash)[0] == 0


def test_a_source_that_never_ends_leaves_the_disk_as_it_was(tmp_path: Path, mirror: Mirror) -> None:
    part = tmp_path / "protokube.part"

    with pytest.raises(OSError, match="bytes and did not end"):
        fetch.receive(f"{mirror.url}/protokube", part, 0, largest=1000)

    assert part.stat().st_size == 0


def test_a_redirect_gets_no_token_of_the_machine() -> None:
    headers = {"Authorization": "AWS4-HMAC-SHA256 …", "x-amz-security-token": "token", "Range": "bytes=5-"}
    request = Request("https://bucket.example.com/a", headers=headers)

    handler: HTTPRedirectHandler = fetch.Redirects()
    found = handler.redirect_request(request, io.BytesIO(), 302, "", HTTPMessage(), "https://elsewhere.example/a")

    assert found is not None
    assert found.header_items() == [("Range", "bytes=5-")]


def test_a_message_of_nodeup_is_told_as_it_is_in_every_shell(
    tmp_path: Path, mirror: Mirror, shell: tuple[str, ...]
) -> None:
    world = World(tmp_path, f"{mirror.url}/a\\c\\tb")

    _, output = world.run(shell)

    assert f"{mirror.url}/a\\c\\tb: HTTP Error 404" in output


def test_a_cut_download_goes_on_at_the_next_attempt(tmp_path: Path, dash: tuple[str, ...]) -> None:
    with serving(Mirror(files={"/protokube": FILE}, at_most=200_000)) as cutting:
        world = World(tmp_path, f"{cutting.url}/protokube")
        code, output = world.run(dash)

    assert code == 0, output
    assert f"the connection ended after 200000 of {len(FILE)} bytes" in output


def test_a_file_of_the_machine_is_a_source(tmp_path: Path, shell: tuple[str, ...]) -> None:
    (tmp_path / "proto kube").write_bytes(FILE)
    world = World(tmp_path, f"file://{tmp_path}/proto%20kube")

    assert world.run(shell)[0] == 0


@pytest.mark.parametrize(
    "url", ["s3://bucket/pre fix/protokube", "s3://my.bucket/protokube?region=eu-west-1", "gs://bucket/a/protokube"]
)
def test_a_private_bucket_is_read_by_the_role_of_the_machine(tmp_path: Path, dash: tuple[str, ...], url: str) -> None:
    place = url.partition("://")[2].partition("?")[0].replace(" ", "%20")
    with cloud_metadata.serving(Cloud(objects={f"/{place}": FILE})) as cloud:
        world = World(tmp_path, url)
        code, output = world.run(dash, {**cloud.environment, "http_proxy": dead_url(), "no_proxy": "127.0.0.1"})

    assert code == 0, output
    assert cloud.refused == []


def test_the_signature_is_checked_by_the_bucket_of_these_tests(tmp_path: Path, dash: tuple[str, ...]) -> None:
    """A bucket that believed everything would prove nothing."""
    with cloud_metadata.serving(Cloud(objects={"/bucket/protokube": FILE})) as cloud:
        world = World(tmp_path, "s3://bucket/protokube?region=us-east-1")
        code, output = world.run(dash, cloud.environment)

    assert code == 3
    assert "s3://bucket/protokube: HTTP Error 403: Forbidden" in output
    assert set(cloud.refused) == {"/bucket/protokube"}


def test_no_credentials_of_the_machine_are_told_or_left_behind(tmp_path: Path, dash: tuple[str, ...]) -> None:
    with cloud_metadata.serving(Cloud(objects={"/bucket/protokube": FILE})) as cloud:
        world = World(tmp_path, "s3://bucket/protokube", "gs://bucket/other")
        _, output = world.run(dash, cloud.environment)

    kept = b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir()).decode("utf-8", "replace")
    for secret in (*cloud_metadata.KEYS.values(), cloud_metadata.GCE_TOKEN, cloud_metadata.METADATA_TOKEN):
        assert secret not in output
        assert secret not in kept


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, mirror: Mirror, dash: tuple[str, ...]) -> None:
    world = World(tmp_path, f"{mirror.url}/protokube")
    (tmp_path / "state").write_text("a file")

    code, output = world.run(dash)

    assert code == 4
    assert f"protokube: cannot write {tmp_path}/state" in output


def test_shellcheck_finds_nothing(tmp_path: Path) -> None:
    program = shutil.which("shellcheck")
    assert program, "this test needs shellcheck: apt-get install shellcheck"
    values = World(tmp_path, "https://mirror.example.com/protokube").values
    file = tmp_path / "launch.sh"
    file.write_text(script(replace(values, environment={"https_proxy": "http://proxy:3128"})))

    ran = subprocess.run([program, "--shell=sh", str(file)], capture_output=True, text=True)

    assert ran.stdout == ""
