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

    schema = json.loads(answer.out)
    assert (answer.code, answer.err) == (ExitCode.OK, "")
    assert schema == json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("kind", ["Cluster", "InstanceGroup"])
def test_the_schema_of_one_kind_is_of_that_kind_only(call: Call, kind: str) -> None:
    schema = json.loads(call("schema", "--kind", kind).out)

    assert schema["properties"]["kind"] == {"const": kind}
    assert schema["title"] == f"protokube {kind}"
