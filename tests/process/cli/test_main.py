"""The command itself: help, mistyped names, exit codes, errors for people and as data."""

from __future__ import annotations

import json

import pytest

from builders.command import Call
from protokube.errors import ExitCode

# --- errors as data


@pytest.mark.parametrize("option", [("-o", "json"), ("--output", "json"), ("--output=json",), ("-ojson",)], ids=str)
def test_where_data_is_asked_for_an_error_is_data(call: Call, option: tuple[str, ...]) -> None:
    spec = b"apiVersion: protokube.io/v1alpha1\nkind: Cluster\nmetadata: {name: a.b}\nspec: {cloud: awz, zones: a}\n"
    answer = call("complete", "-", *option, stdin=spec)

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert json.loads(answer.err) == {
        "error": "2 problems in the spec",
        "code": "invalid-spec",
        "exitCode": 2,
        "problems": [
            {
                "path": "cloud",
                "message": "'awz' is not one of aws, gce, local, metal",
                "hint": "did you mean `aws`?",
                "where": "<stdin>:4",
            },
            {
                "path": "zones",
                "message": "expected a list, found 'a'",
                "hint": "write it as a list: [a]",
                "where": "<stdin>:4",
            },
        ],
    }
