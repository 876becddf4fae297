"""One document holds the pair in use, as the original writes it."""

from __future__ import annotations

from base64 import b64encode

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.pki.keyset import read_keyset, write_keyset


def test_what_was_written_is_read() -> None:
    assert read_keyset(write_keyset("ca", "123", b"certificate", b"key")) == (b"certificate", b"key")


def test_it_reads_as_a_document_of_the_original() -> None:
    document = yaml.safe_load(write_keyset("etcd-peer-ca", "6982820025135291416230495506", b"c", b"k"))

    assert (document["apiVersion"], document["kind"], document["metadata"]) == (
        "kops.k8s.io/v1alpha2",
        "Keyset",
        {"name": "etcd-peer-ca"},
    )
    assert document["spec"]["primaryID"] == "6982820025135291416230495506"
    assert document["spec"]["type"] == "Keypair"


def test_for_those_who_may_not_have_the_key_there_is_none_in_it() -> None:
    text = write_keyset("ca", "1", b"certificate", None)

    assert b"privateMaterial" not in text
    with pytest.raises(ValueError, match="privateMaterial"):
        read_keyset(text)


@pytest.mark.parametrize("field", ["primaryID", "primaryId"])
def test_of_several_pairs_the_one_in_use_is_read(field: str) -> None:
    def item(number: str, text: bytes) -> dict[str, str]:
        return {"id": number, "publicMaterial": b64encode(text).decode(), "privateMaterial": b64encode(text).decode()}

    spec = {field: "2", "keys": [item("1", b"old"), item("2", b"in use"), item("3", b"next")]}

    assert read_keyset(yaml.safe_dump({"spec": spec}).encode()) == (b"in use", b"in use")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        "[]",
        "spec: {}",
        "spec: {primaryID: '1', keys: []}",
        "spec: {primaryID: '1', keys: [{id: '1'}]}",
        "spec: {primaryID: '1', keys: [{id: '1', publicMaterial: '?', privateMaterial: ''}]}",
        "spec: {primaryID: '1', keys: [{id: '1'}, {id: '1'}]}",
        "{unclosed",
    ],
)
def test_what_is_not_a_keyset_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_keyset(text.encode())


@given(st.binary(max_size=50), st.binary(max_size=50))
@examples(50, derandomize=True)
def test_any_bytes_go_in_and_come_out(certificate: bytes, key: bytes) -> None:
    assert read_keyset(write_keyset("ca", "1", certificate, key)) == (certificate, key)
