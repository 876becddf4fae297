"""What is removed from a status before it is published, and what never is."""

from __future__ import annotations

import string
import time
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from protokube.agent.redact import LONGEST, REMOVED, redacted, text

SECRET = "hunter2"
FORMS = (
    r"cannot decode {\"password\":\"hunter2\"}",
    r"cannot decode {\\\"password\\\":\\\"hunter2\\\"}",
    '{"token": "hunter2"}',
    "{'secret': 'hunter2'}",
    "Authorization: Basic hunter2",
    '"Authorization": "Basic hunter2"',
    "Authorization: Digest username=x, response=hunter2",
    "Authorization: AWS4-HMAC-SHA256 Credential=x, Signature=hunter2",
    "authorization=hunter2",
    "api_key=hunter2",
    "apikey: hunter2",
    "X-Api-Key: hunter2",
    "passphrase: hunter2",
    "aws_secret_access_key = hunter2",
    "AWS_SECRET_ACCESS_KEY=hunter2",
    "run with --token hunter2",
    "run with --password hunter2 --yes",
    "run with --client-secret=hunter2",
    "https://s3/x?X-Amz-Signature=hunter2&X-Amz-Date=1",
    "https://s3/x?X-Amz-Security-Token=hunter2",
    "http://user:pa/hunter2@host/path",
    "http://user:hunter2@host/path",
    "http://hunter2@host/path",
    'password="two words hunter2" was refused',
    r"password=\"two words hunter2\" was refused",
    'password="never closed hunter2',
    "password='a, b; hunter2'",
    r'password="a\"hunter2"',
    "password=a,b;hunter2",
    "bearer hunter2",
)
WHOLE = (
    "ya29.a0AfH6SMBx-12_34",
    "4f3c2a1b" * 4,
    "4F3C2A1B" * 8,
    "q7Ww-3Zk_0PqLmN8xYz2AbCdEfGhIjKl",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "abcdef.0123456789abcdef",
    "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJ4In0.c2ln",
)
PLAIN = (
    "etcd-a.internal.dev points at 10.0.0.9, not at /var/lib/protokube/hosts/master-1 (vol-0a1b2c3d4e5f67890)",
    "node01.mycompanycluster.com does not answer",
    "a secret file that names another secret of the store keeps its content",
    "open /srv/kubernetes/pki/private/kube-apiserver/server.key: permission denied",
    "--service-account-signing-key-file=/srv/kubernetes/sa.key is missing",
    "--token-auth-file /srv/kubernetes/tokens is missing",
    "pulling registry/x@sha256:" + "0a" * 32,
    "made formatting:6f1de7a4-6f2e-4c0c-9a38-6a2f1b1f2f10",
    "no signature (libblkid) on /dev/disk/by-id/virtio-vol-0a1b2c3d4e5f67890-part1",
)


@pytest.mark.parametrize("said", FORMS)
def test_a_secret_with_its_name_is_removed_in_whatever_form_it_is_quoted(said: str) -> None:
    found = text(f"cannot start: {said}")

    assert SECRET not in found
    assert REMOVED in found
    assert found.startswith("cannot start: ")


@pytest.mark.parametrize("secret", WHOLE)
def test_a_secret_without_a_name_is_known_by_its_form(secret: str) -> None:
    assert text(f"cannot use {secret} here") == f"cannot use {REMOVED} here"


@pytest.mark.parametrize("said", PLAIN)
def test_plain_sentences_stay_as_they_are(said: str) -> None:
    assert text(said) == said


def test_masters_whose_names_look_like_tokens_stay_three() -> None:
    names = [f"node0{number}.mycompanycluster.com" for number in range(3)]
    trees: list[Any] = [
        {"machine": {"id": each, "name": each, "address": "10.0.0.1"}, "live": {each: "x"}} for each in names
    ]

    assert [redacted(each) for each in trees] == trees


def test_identifiers_stay_and_sentences_beside_them_are_searched() -> None:
    tree = {
        "volumes": [{"id": "q7Ww-3Zk_0PqLmN8xYz2AbCdEfGhIjKl", "why": "token=x"}],
        "errors": ["password=x", "NOSPACE"],
    }

    assert redacted(tree) == {
        "volumes": [{"id": "q7Ww-3Zk_0PqLmN8xYz2AbCdEfGhIjKl", "why": f"token={REMOVED}"}],
        "errors": [f"password={REMOVED}", "NOSPACE"],
    }


WORDS = st.text(string.ascii_letters + string.digits + " .,:;=-_/{}[]()", max_size=40)


@given(before=WORDS, after=WORDS, form=st.sampled_from(FORMS))
def test_whatever_stands_around_a_secret_it_is_removed(before: str, after: str, form: str) -> None:
    assert SECRET not in text(f"{before} {form} {after}")


@given(
    before=WORDS,
    after=WORDS,
    secret=st.text(string.ascii_letters + string.digits + "+/-_", min_size=40, max_size=90),
)
def test_whatever_stands_around_a_key_it_is_removed(before: str, after: str, secret: str) -> None:
    assume(all(any(map(kind, secret)) for kind in (str.isupper, str.islower, str.isdigit)))

    assert secret not in text(f"{before} {secret} {after}")


@given(before=st.integers(LONGEST - 60, LONGEST + 5), form=st.sampled_from((*WHOLE, *FORMS)))
def test_a_secret_on_which_a_long_text_is_cut_leaves_no_half(before: int, form: str) -> None:
    secret = SECRET if SECRET in form else form
    found = text("x" * (before - 1) + " " + form + " more" * 400)

    assert secret[: len(secret) // 2 + 1] not in found
    assert len(found) <= LONGEST + 3 * len(REMOVED)


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "a-",
        "--a",
        "token",
        "token=",
        "://a:",
        "-----BEGIN x-----",
        "eyJ",
        "a.",
        "\\",
        '"',
        "0",
        "Aa0/",
        "bearer ",
        " ",
    ],
)
def test_a_megabyte_costs_no_time(piece: str) -> None:
    began = time.process_time()
    text(piece * (1_000_000 // len(piece)))

    assert time.process_time() - began < 0.5


@given(st.text(max_size=300))
def test_any_text_can_be_searched(value: str) -> None:
    assert len(text(value)) <= max(len(value), 1) * len(REMOVED)
