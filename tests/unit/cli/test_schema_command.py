"""`protokube schema`: JSON Schema on stdout."""

from __future__ import annotations

import json

import jsonschema
import pytest

from builders.command import Call
from protokube.errors import ExitCode
from protokube.spec.schema import json_schema


def test_the_schema_of_all_documents_is_printed_as_json(call: Call) -> None:
    answer = call("schema")

    told = json.loads(answer.out)
    assert (answer.code, answer.err) == (ExitCode.OK, "")
    assert told == json_schema()
    jsonschema.Draft202012Validator.check_schema(told)


@pytest.mark.parametrize("kind", ["Cluster", "InstanceGroup"])
def test_the_schema_of_one_kind_is_of_that_kind_only(call: Call, kind: str) -> None:
    told = json.loads(call("schema", "--kind", kind).out)

    assert told["properties"]["kind"] == {"const": kind}
    assert told["title"] == f"protokube {kind}"
