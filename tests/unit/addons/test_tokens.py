"""Bootstrap tokens as Secrets and back."""

from __future__ import annotations

import datetime as dt
import secrets
from base64 import b64encode

import pytest

from protokube.addons.tokens import Token, from_secret, new_token, secret_path, to_secret
from protokube.addons.value import Tree
from protokube.errors import InvalidRequest

NOON = dt.datetime(2031, 5, 4, 12, 0, tzinfo=dt.timezone(dt.timedelta(hours=2)))


def as_kept(secret: Tree) -> Tree:
    """As a server shows what it was given."""
    data = {name: b64encode(text.encode()).decode() for name, text in secret["stringData"].items()}
    return {"metadata": secret["metadata"], "type": secret["type"], "data": data}


def test_a_token_is_read_back_from_its_secret() -> None:
    made = new_token(secrets.choice, "worker-7", NOON, "rack 7")

    assert from_secret(as_kept(to_secret(made))) == made


def test_its_end_is_told_in_the_time_of_the_world() -> None:
    assert to_secret(new_token(secrets.choice, "worker-7", NOON))["stringData"]["expiration"] == "2031-05-04T10:00:00Z"


def test_it_lets_in_and_signs_nothing() -> None:
    fields = to_secret(new_token(secrets.choice, "worker-7", NOON))["stringData"]

    assert {name for name in fields if name.startswith("usage")} == {"usage-bootstrap-authentication"}
    assert "auth-extra-groups" not in fields


def test_what_is_secret_is_not_in_its_representation() -> None:
    made = new_token(secrets.choice, "worker-7", NOON)

    assert made.secret not in repr(made)
    assert str(made) == f"{made.id}.{made.secret}"


def test_a_thousand_tokens_are_a_thousand_tokens() -> None:
    assert len({str(new_token(secrets.choice, "worker-7", NOON)) for _ in range(1000)}) == 1000


@pytest.mark.parametrize(
    "tree",
    [
        {"type": "Opaque", "data": {"token-id": "YWJjZGVm"}},
        {"type": "bootstrap.kubernetes.io/token", "data": {}},
        {"type": "bootstrap.kubernetes.io/token", "data": {"token-id": "YWJjZGVm", "expiration": "bm90IGEgdGltZQ=="}},
        {"type": "bootstrap.kubernetes.io/token", "data": {"token-id": "/w=="}},
        {  # 2031-05-04T10:00:00, in no zone
            "type": "bootstrap.kubernetes.io/token",
            "data": {"token-id": "YWJjZGVm", "expiration": "MjAzMS0wNS0wNFQxMDowMDowMA=="},
        },
        {"type": "bootstrap.kubernetes.io/token"},
    ],
)
def test_another_secret_is_no_token(tree: Tree) -> None:
    assert from_secret(tree) is None


def test_one_without_an_end_is_read() -> None:
    tree = {"type": "bootstrap.kubernetes.io/token", "data": {"token-id": "YWJjZGVm"}}

    assert from_secret(tree) == Token(id="abcdef", secret="", expires=None)


@pytest.mark.parametrize("wrong", ["", "../../x", "ABCDEF", "abc", "abcdef/x", "abcdefg.x"])
def test_a_wrong_id_never_becomes_a_path(wrong: str) -> None:
    with pytest.raises(InvalidRequest, match="not the id"):
        secret_path(wrong)


def test_the_whole_token_may_be_named_too() -> None:
    assert secret_path("abcdef.0123456789abcdef").endswith("/secrets/bootstrap-token-abcdef")


@pytest.mark.parametrize("wrong", ["", "Worker", "a_b", "-a", "a-", "a" * 64, "a/b", "system:node:a", "a b", "ä"])
def test_what_cannot_be_the_name_of_a_node_gets_no_token(wrong: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot be the name of a node"):
        new_token(secrets.choice, wrong, NOON)
