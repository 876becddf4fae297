"""Template decoding: every problem is reported, and no file is written outside the folders of the host."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from protokube.errors import InvalidRequest
from protokube.local.cloud.template import Template


def test_every_field_of_a_template_is_read() -> None:
    document = {
        "units": {"protokube.service": ["protokube", "agent"]},
        "startable": {"kubelet.service": []},
        "path": "/opt/bin:/usr/bin",
        "environment": {"X": "1"},
        "shown": ["/var/cache/protokube/images"],
        "files": {"/etc/protokube/agent.json": "{}"},
        "zone": "b",
        "master": False,
    }

    assert asdict(Template.read(document)) == document


def test_what_is_left_out_is_filled_in() -> None:
    template = Template.read({})

    assert (template.units, template.zone, template.master) == ({}, "local", True)
    assert "/usr/bin" in template.path


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "JSON object"),
        ({"unit": {}}, "unit: there is no such field"),
        ({"units": {"a": "protokube agent"}}, "units: wants a list of words"),
        ({"startable": {"a": [1]}}, "startable: wants a list of words"),
        ({"path": None}, "path: wants text"),
        ({"environment": {"X": 1}}, "environment: wants text"),
        ({"shown": "/var/cache"}, "shown: wants a list of folders"),
        ({"files": ["/etc/x"]}, "files: wants text"),
        ({"zone": ""}, "zone: wants a name"),
        ({"master": "yes"}, "master: wants true or false"),
        ({"files": {"/etc/../root/.profile": ""}}, "not below /etc or /srv"),
        ({"files": {"/usr/bin/x": ""}}, "not below /etc or /srv"),
        ({"files": {"etc/x": ""}}, "not below /etc or /srv"),
        ({"files": {"/etc": ""}}, "not below /etc or /srv"),
    ],
)
def test_a_template_that_cannot_be_carried_out_is_refused_with_the_reason(document: Any, problem: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Template.read(document)

    assert problem in str(caught.value)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidRequest) as caught:
        Template.read({"units": 1, "path": 2, "nothing": 3})

    assert caught.value.saw.count(";") == 2


def test_files_lie_in_the_folder_of_the_host_and_are_its_own(tmp_path: Path) -> None:
    template = Template.read({"files": {"/etc/protokube/agent.json": '{"key": "secret"}', "/srv/x": "y"}})

    template.write_files(tmp_path)
    template.write_files(tmp_path)

    written = tmp_path / "etc/protokube/agent.json"
    assert written.read_text() == '{"key": "secret"}'
    assert written.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "srv/x").read_text() == "y"
