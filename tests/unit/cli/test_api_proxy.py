"""`protokube api-proxy`: what it says before it begins, and what it keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.command import Call
from protokube.cli.api_proxy import remembered, write
from protokube.errors import ExitCode

NAME = ("--name", "api.internal.dev")


@pytest.mark.parametrize("place", ["3988", "127.0.0.1", "127.0.0.1:x", ":3988", "127.0.0.1:70000"])
def test_what_is_no_place_to_listen_is_told_with_one_that_is(call: Call, place: str) -> None:
    answer = call("api-proxy", *NAME, "--listen", place)
    assert answer.code == ExitCode.INVALID
    assert f"{place!r} is not a listen address" in answer.err
    assert "such as 127.0.0.1:3988" in answer.err


@pytest.mark.parametrize(("content", "why"), [(None, "No such file or directory"), ("no", "it holds no certificate")])
def test_an_authority_that_cannot_be_used_is_told_at_once(
    call: Call, tmp_path: Path, content: str | None, why: str
) -> None:
    ca = tmp_path / "ca.crt"
    if content is not None:
        ca.write_text(content)
    answer = call("api-proxy", *NAME, "--ca", str(ca))
    assert answer.code == ExitCode.INVALID
    assert f"cannot use {ca}: {why}" in answer.err


def test_a_name_is_needed(call: Call) -> None:
    assert "--name" in call("api-proxy").err


def test_what_was_written_is_remembered_and_what_is_strange_is_not(tmp_path: Path) -> None:
    status = tmp_path / "run/api-proxy.json"
    assert remembered(status) == []
    write(status, {"backends": [{"address": "10.0.0.1"}]})
    assert remembered(status) == ["10.0.0.1"]
    assert json.loads(status.read_text())
    for strange in ("", "{", '"x"', "\udcff"):
        status.write_bytes(strange.encode(errors="surrogateescape"))
        assert remembered(status) == []


def test_a_disk_that_takes_nothing_stops_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    write(tmp_path / "file" / "api-proxy.json", {})
    assert "cannot write" in caplog.text
