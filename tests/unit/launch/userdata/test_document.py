"""User data as cloud-init reads it: Python's parser of mails stands for cloud-init's, which is the same."""

from __future__ import annotations

import email
import gzip
import random
from email.message import Message

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.errors import InvalidRequest
from protokube.launch.userdata.document import LIMIT, TYPES, Part, multipart, user_data
from protokube.launch.userdata.script import LaunchScript, script

SCRIPT = script(LaunchScript(sources=("https://mirror.example.com/protokube",), sha256="0" * 64, setup="{}"))


def parts_of(document: str) -> list[Message]:
    parsed = email.message_from_string(document)
    assert parsed.get_content_maintype() == "multipart"
    found = parsed.get_payload()
    assert isinstance(found, list)
    return [each for each in found if isinstance(each, Message)]


def content(part: Message) -> str:
    payload = part.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload.decode()


def test_the_script_alone_is_user_data_as_it_is() -> None:
    assert user_data(SCRIPT) == SCRIPT.encode()
    assert len(SCRIPT) < LIMIT


def test_the_script_comes_first_and_parts_keep_their_names_types_and_order() -> None:
    given_parts = [Part(name="a.txt", type="text/cloud-config", content="#cloud-config\nx: ü\n"),
                   Part(name="b.sh", type="text/x-shellscript", content="#!/bin/sh\necho b\n")]  # fmt: skip

    found = parts_of(multipart(SCRIPT, given_parts))

    assert [each.get_filename() for each in found] == ["protokube.sh", "a.txt", "b.sh"]
    assert [each.get_content_type() for each in found] == [
        "text/x-shellscript", "text/cloud-config", "text/x-shellscript",
    ]  # fmt: skip
    assert [content(each).rstrip("\n") for each in found] == [
        SCRIPT.rstrip("\n"), "#cloud-config\nx: ü", "#!/bin/sh\necho b",
    ]  # fmt: skip


LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=40))


@given(st.lists(st.tuples(st.sampled_from(TYPES), LINES | st.just(["--MIMEBOUNDARY", "MIMEBOUNDARY0"])), max_size=5))
def test_any_text_comes_out_as_it_went_in(texts: list[tuple[str, list[str]]]) -> None:
    parts = [Part(name=f"part-{number}", type=kind, content="\n".join(lines))
             for number, (kind, lines) in enumerate(texts)]  # fmt: skip

    found = parts_of(multipart(SCRIPT, parts))

    assert [content(each).rstrip("\n") for each in found[1:]] == [each.content.rstrip("\n") for each in parts]


def test_what_is_larger_than_the_limit_is_compressed_the_same_each_time() -> None:
    part = Part(name="large", type="text/cloud-config", content="# a comment of a user\n" * 2_000)

    data = user_data(SCRIPT, [part])

    assert len(data) <= LIMIT
    assert gzip.decompress(data).decode() == multipart(SCRIPT, [part])
    assert data == user_data(SCRIPT, [part])


def test_what_cannot_be_compressed_below_the_limit_is_refused_with_its_size() -> None:
    noise = random.Random(1).randbytes(20_000).hex()

    with pytest.raises(InvalidRequest) as raised:
        user_data(SCRIPT, [Part(name="noise", type="text/cloud-config", content=noise)])

    assert raised.value.message == "the user data is too large"
    assert "compressed from" in raised.value.saw
    assert raised.value.want == "16384 bytes at most"


@pytest.mark.parametrize(
    ("name", "kind"), [("a", "text/html"), ("a", "application/json"), ('a"b', TYPES[0]), ("a\nb", TYPES[0])]
)
def test_other_types_and_names_that_would_break_the_document_are_refused(name: str, kind: str) -> None:
    with pytest.raises(InvalidRequest):
        multipart(SCRIPT, [Part(name=name, type=kind, content="")])
