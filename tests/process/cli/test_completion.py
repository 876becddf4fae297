"""Shell completion: the scripts, and what they are answered when a key is pressed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from builders.command import MINIMAL, Call, environment, process
from builders.spec import a_cluster
from protokube.cli.main import COMMANDS
from protokube.errors import ExitCode


def offered(*words: str, cwd: Path | None = None) -> list[str]:
    """What bash would offer for the last of these words."""
    env = {"_PROTOKUBE_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    answer = process(env=env, cwd=cwd)
    assert (answer.code, answer.err) == (0, "")
    return [line.partition(",")[2] for line in answer.out.splitlines() if line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_of_its_own(call: Call, shell: str) -> None:
    answer = call("completion", shell)

    assert (answer.code, answer.err) == (ExitCode.OK, "")
    assert f"_PROTOKUBE_COMPLETE={shell}_complete" in answer.out
    assert "protokube" in answer.out


def test_all_commands_are_offered() -> None:
    assert offered("protokube", "") == list(COMMANDS)


def test_commands_that_begin_like_what_was_typed_are_offered() -> None:
    assert offered("protokube", "comp") == ["complete", "completion"]


def test_words_an_option_knows_are_offered() -> None:
    assert offered("protokube", "diff", "-o", "") == ["text", "json"]
    assert offered("protokube", "schema", "--kind", "I") == ["InstanceGroup"]
    assert offered("protokube", "completion", "f") == ["fish"]


def test_paths_of_this_very_spec_are_offered_one_step_at_a_time() -> None:
    assert offered("protokube", "complete", MINIMAL, "--why", "kubel") == ["kubelet"]
    assert offered("protokube", "complete", MINIMAL, "--why", "kubelet.max") == ["kubelet.maxPods"]
    assert "instanceGroups.nodes" in offered("protokube", "complete", "-o", "yaml", MINIMAL, "--why", "instanceGroups.")


@pytest.mark.parametrize("spec", ["nothing.yaml", "bad.yaml", "-"])
def test_a_spec_that_cannot_be_completed_offers_nothing_and_says_nothing(tmp_path: Path, spec: str) -> None:
    (tmp_path / "bad.yaml").write_text(a_cluster("colour: blue"))

    assert offered("protokube", "complete", spec, "--why", "kubelet.", cwd=tmp_path) == []


def test_a_bash_that_sourced_the_script_completes_commands() -> None:
    script = """
        source <(protokube completion bash)
        COMP_WORDS=(protokube comp) COMP_CWORD=1
        _protokube_completion protokube
        echo "${COMPREPLY[@]}"
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=environment(PATH=path), timeout=60
    )

    assert (done.stdout, done.stderr) == ("complete completion\n", "")
