"""`protokube get image`: the command as a user calls it; what it makes is run in the end-to-end tests."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from builders.command import Call
from protokube import __version__
from protokube.errors import ExitCode

IMAGE = f"protokube/dns-controller:{__version__}"


def test_an_archive_is_written_that_bears_the_name_of_the_manifests(call: Call, here: Path) -> None:
    answer = call("get", "image", "ours.tar", "-o", "json")

    result = json.loads(answer.out)
    assert (answer.code, answer.err) == (ExitCode.OK, "")
    assert result == {
        "image": IMAGE, "file": "ours.tar", "bytes": (here / "ours.tar").stat().st_size,
        "providers": ["aws-route53", "rfc2136"],
    }  # fmt: skip
    with tarfile.open(here / "ours.tar") as archive:
        manifest = archive.extractfile("manifest.json")
        assert manifest
        ((tag,),) = [each["RepoTags"] for each in json.load(manifest)]
    assert tag == IMAGE
