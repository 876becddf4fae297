"""`protokube nodeup`: what it prints and how it ends, for tasks of a test on a root of its own."""

from __future__ import annotations

import errno
import io
import json
import os
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from builders.command import Call
from builders.nodeup import DEBIAN, OURS, a_root
from protokube.cli.nodeup.command import cloud_init, direct, need_root, plan, root_at
from protokube.cli.nodeup.live import Live
from protokube.errors import ExitCode, InvalidRequest, NeedsRoot, Refused
from protokube.nodeup.changes import Outcome, Result
from protokube.nodeup.engine.control import Control
from protokube.nodeup.facts import Facts
from protokube.nodeup.provision import Place, provision
from protokube.nodeup.run import RunControl
from protokube.nodeup.trace import FOLDER
from protokube.nodeup.values import Directory, File, Task

OWNER, GROUP = OURS
HOSTS = File(path="/etc/hosts", content=b"127.0.0.1 localhost\n", owner=OWNER, group=GROUP)
BELOW = File(path="/srv/x", content=b"x", owner=OWNER, group=GROUP)
FOLDER_OF_IT = Directory(path="/srv", owner=OWNER, group=GROUP)


@dataclass
class Told:
    """What a machine is told: tasks, or an error; a later reading may give something else."""

    place: Place
    answers: list[tuple[Task, ...] | Refused]

    def __call__(self) -> tuple[Facts, tuple[Task, ...]]:
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if isinstance(answer, Refused):
            raise answer
        return DEBIAN, answer


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(Place(root=a_root(tmp_path / "root").root, run=tmp_path / "run"), [(HOSTS, BELOW, FOLDER_OF_IT)])


def run(told: Told, output: str = "text", *, retry: bool = False, control: RunControl | None = None) -> ExitCode:
    return direct(told, told.place, control or Control(), output, retry=retry, pause=0.001)


def without_times(text: str) -> list[str]:
    return sorted(re.sub(r"\d+\.\d+ s", "N s", text).splitlines())


def test_a_run_prints_a_line_for_each_change_and_a_summary(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(told) is ExitCode.OK

    assert without_times(capsys.readouterr().out) == [
        f"changed  directory /srv: directory: missing -> 0o755 {OWNER}:{GROUP} (N s)",
        "changed  file /etc/hosts: content: missing -> 20 bytes (N s)",
        "changed  file /srv/x: content: missing -> 1 bytes (N s)",
        "nodeup: 3 changed, 0 unchanged in N s",
    ]
    assert run(told) is ExitCode.OK
    assert without_times(capsys.readouterr().out) == ["nodeup: 0 changed, 3 unchanged in N s"]


def test_a_failure_ends_with_its_code_and_tells_what_it_blocks(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    (told.place.root / "srv").write_bytes(b"theirs")

    assert run(told) is ExitCode.REFUSED

    lines = without_times(capsys.readouterr().out)
    assert lines[0] == "blocked  file /srv/x: needs directory /srv"
    assert lines[2].startswith("failed   directory /srv: /srv is a file, which is not replaced (a file), want a direc")
    assert lines[3] == "nodeup: 1 changed, 0 unchanged, 1 failed, 1 blocked in N s"


def test_the_run_as_data_is_its_trace(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(told, "json") is ExitCode.OK

    out, err = capsys.readouterr()
    tree = json.loads(out)
    assert tree["end"] == "done"
    assert [(task["key"], task["result"]) for task in tree["tasks"]] == [
        ("file /etc/hosts", "changed"), ("directory /srv", "changed"), ("file /srv/x", "changed")
    ]  # fmt: skip
    assert tree["tasks"][2]["needs"] == ["directory /srv"]
    assert "changed  file /etc/hosts" in err


def test_a_plan_prints_what_would_change_and_changes_nothing(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(told.place.root.rglob("*"))

    assert plan(told, told.place, Control(), "text") is ExitCode.DIFFERENT

    assert capsys.readouterr().out.splitlines() == [
        "would change  file /etc/hosts: content: missing -> 20 bytes",
        f"would change  directory /srv: directory: missing -> 0o755 {OWNER}:{GROUP}",
        "would change  file /srv/x: content: missing -> 1 bytes",
        "nodeup: 3 would change, 0 unchanged",
    ]
    assert sorted(told.place.root.rglob("*")) == before
    run(told)
    capsys.readouterr()
    assert plan(told, told.place, Control(), "text") is ExitCode.OK
    assert capsys.readouterr().out == "nodeup: nothing would change; 3 tasks looked at\n"
    assert plan(told, told.place, Control(), "json") is ExitCode.OK
    assert [task["result"] for task in json.loads(capsys.readouterr().out)["tasks"]] == ["unchanged"] * 3


def test_a_cloud_init_document_is_printed(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    assert cloud_init(told, "text") is ExitCode.OK

    text = capsys.readouterr().out
    assert text.startswith("#cloud-config\n")
    assert yaml.safe_load(text)["write_files"][0]["path"] == "/etc/hosts"
    with pytest.raises(InvalidRequest):
        cloud_init(told, "json")


def test_only_root_may_change_a_machine() -> None:
    need_root(0)
    with pytest.raises(NeedsRoot):
        need_root(1000)


def test_with_retry_it_runs_until_everything_is_done(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    told.answers = [Refused("no setup yet"), Refused("no setup yet"), (HOSTS,)]

    assert run(told, retry=True) is ExitCode.OK

    out, err = capsys.readouterr()
    assert out.splitlines()[-1].startswith("nodeup: 1 changed, 0 unchanged in ")
    assert err.splitlines() == [
        "error: no setup yet", "nodeup: not done; tries again in 0.001 s",
        "error: no setup yet", "nodeup: not done; tries again in 0.002 s",
    ]  # fmt: skip


def test_with_retry_a_signal_between_two_runs_ends_it(told: Told) -> None:
    control: RunControl = Control()
    told.answers = [Refused("no setup yet")]
    control.stop()

    assert run(told, retry=True, control=control) is ExitCode.STOPPED


def test_without_retry_an_error_is_raised_as_everywhere(told: Told) -> None:
    told.answers = [Refused("no setup")]

    with pytest.raises(Refused, match="no setup"):
        run(told)


def test_the_report_is_printed_for_the_newest_run_or_another_one(
    told: Told, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    run(told)
    run(told)
    root = str(told.place.root)

    assert call("nodeup", "report", "--root", root).out.startswith("run 2 of protokube ")
    answer = call("nodeup", "report", "1", "--root", root, "-o", "json")
    assert json.loads(answer.out)["tasks"][0]["result"] == "changed"
    assert call("nodeup", "report", "3", "--root", root).code == ExitCode.INVALID
    (told.place.root / FOLDER[1:] / "000002.json").write_bytes(b"garbage")
    assert call("nodeup", "report", "--root", root).code == ExitCode.REFUSED


def test_a_machine_that_never_had_a_run_has_no_report(call: Call, tmp_path: Path) -> None:
    answer = call("nodeup", "report", "--root", str(tmp_path))

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert "nodeup has not run on this machine" in answer.err


@pytest.mark.parametrize("target", ["plan", "cloud-init"])
def test_only_what_changes_something_can_be_tried_again(call: Call, target: str) -> None:
    answer = call("nodeup", "--retry", "--target", target)

    assert answer.code == ExitCode.INVALID
    assert f"--retry is for --target direct, and not for {target}" in answer.err


def test_a_document_for_another_machine_names_no_bundle_of_this_one(call: Call) -> None:
    answer = call("nodeup", "--bundle", "/media/rack.bundle", "--target", "cloud-init")

    assert answer.code == ExitCode.INVALID
    assert "cannot name a bundle of this machine" in answer.err


class Terminal(io.StringIO):
    """Keeps what is written to it, as a terminal that shows everything would."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_one_line_shows_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    terminal = Terminal()
    live = Live(out=terminal, err=terminal, every=0.0)
    live.began("packages containerd")
    live.said("packages containerd", "unpacking " + "x" * 80)
    live.waits("packages containerd", "dpkg is locked", 2)
    live.ended(Outcome(key="packages containerd", result=Result.UNCHANGED))
    live.close()

    clear = "\r\x1b[K"
    assert terminal.getvalue().split(clear)[1:] == [
        "  …  0 done; packages containerd",
        f"  …  0 done; packages containerd: unpacking {'x' * 80}"[:59],
        "waits    packages containerd: dpkg is locked; tried again in 2 s\n",
        "  …  1 done; ",
        "",
    ]


class Gone(io.StringIO):
    """A terminal that was closed."""

    def write(self, _text: str) -> int:
        raise OSError(errno.EIO, "Input/output error")


def test_a_terminal_that_was_closed_does_not_end_the_work_under_way(told: Told) -> None:
    live = Live(out=Gone(), err=Gone())

    trace = provision(told, told.place, live, Control())

    assert {outcome.result for outcome in trace.outcomes} == {Result.CHANGED}


def test_what_a_link_is_called_in_bytes_is_shown_and_commands_no_terminal(
    told: Told, capsys: pytest.CaptureFixture[str], call: Call
) -> None:
    """A terminal that is not told to escape it cannot write it at all."""
    place = told.place.root / "etc/hosts"
    place.symlink_to(os.fsdecode(b"\xff\x1b[2J\n"))

    assert plan(told, told.place, Control(), "text") is ExitCode.DIFFERENT
    assert r"content: a link to \udcff\x1b[2J\n -> 20 bytes" in capsys.readouterr().out
    assert run(told) is ExitCode.OK
    assert r"changed  file /etc/hosts: content: a link to \udcff\x1b[2J\n -> 20 bytes" in capsys.readouterr().out
    assert call("nodeup", "report", "--root", str(told.place.root), "-o", "json").code == 0


def test_in_a_pipe_it_is_told_once_who_holds_up_a_task() -> None:
    out = io.StringIO()
    live = Live(out=out)
    live.began("packages runc")
    for text in ("installing runc", "waiting for apt-get (pid 12)", "waiting for apt-get (pid 12)"):
        live.said("packages runc", text)

    assert out.getvalue() == "waits    packages runc: waiting for apt-get (pid 12)\n"


@pytest.mark.parametrize("name", ["/", "//", "/./", "/etc/.."])
def test_every_name_of_the_root_is_this_machine_and_no_image(name: str) -> None:
    assert root_at(Path(name)) == Path("/")
    assert root_at(Path("image")) == Path("image").absolute()


def test_a_boot_whose_output_nobody_takes_is_tried_again_until_it_is_done(told: Told) -> None:
    """As with the journal's disk full."""
    wanted = told.answers[0]
    assert isinstance(wanted, tuple)
    told.answers = [Refused("no setup"), (File(path="/etc", content=b""),), wanted]

    with redirect_stdout(Gone()), redirect_stderr(Gone()):
        assert run(told, retry=True) is ExitCode.OK
        with pytest.raises(OSError, match="Input/output error"):  # else the outermost frame tells it
            run(told)

    assert (told.place.root / "srv/x").read_bytes() == b"x"
