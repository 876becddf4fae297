"""How a command is told where the zones are: options, keys and addresses, and what is wrong with them."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.command import Call
from protokube.cli.dns.zones import endpoint_of, open_zones, server_of
from protokube.errors import ExitCode, InvalidRequest, ProtokubeError
from protokube.providers.dns.keyfile import read_key
from protokube.providers.dns.readonly import DryRun
from protokube.records import Change, Record

SECRET = "c2VjcmV0"
BIND = f'key "protokube" {{\n\talgorithm hmac-sha256;\n\tsecret "{SECRET}";\n}};\n'


@pytest.mark.parametrize(
    "text",
    [
        BIND,
        f'# a comment\nkey protokube. {{ secret "{SECRET}"; algorithm HMAC-SHA256; }};',
        BIND.replace("\n", ' // "one", and /* another */\n/* over\ntwo "lines */\n', 1),
        json.dumps({"name": "protokube", "secret": SECRET}),
        json.dumps({"name": "protokube.", "secret": SECRET, "algorithm": "hmac-sha256"}),
    ],
    ids=["as tsig-keygen prints it", "in another order", "with comments", "as our store has it", "with its algorithm"],
)
def test_a_key_is_read_in_every_form_that_people_have(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text)
    key = read_key(tmp_path / "key")

    assert (key.name, key.secret) == ("protokube", SECRET)


@given(secret=st.binary(min_size=1, max_size=64) | st.just(b"\xff" * 6))
def test_whatever_the_letters_of_a_secret_are_they_are_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, secret: bytes
) -> None:
    file, text = tmp_path_factory.getbasetemp() / "any-key", base64.b64encode(secret).decode()
    file.write_text(BIND.replace(SECRET, text))

    assert read_key(file).secret == text


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "holds no key"),
        (b"{}", "holds no key"),
        (b"[1]", "holds no key"),
        (json.dumps({"name": "a", "secret": 7}).encode(), "holds no key"),
        (json.dumps({"name": "a", "secret": SECRET, "algorithm": 5}).encode(), "holds no key"),
        (BIND.replace("sha256", "md5").encode(), "the key is for hmac-md5"),
        (json.dumps({"name": "a", "secret": SECRET, "algorithm": "hmac-sha1"}).encode(), "the key is for hmac-sha1"),
        (b"\xff\xfe", "it is no text"),
        (BIND.replace(SECRET, "not base64!").encode(), "is not base64"),
    ],
)
def test_a_file_that_holds_no_key_of_ours_is_told_as_such(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "key").write_bytes(content)

    with pytest.raises(ProtokubeError, match=why) as caught:
        read_key(tmp_path / "key")
    assert SECRET not in str(caught.value)


def test_a_key_that_cannot_be_read_is_told_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="No such file"):
        read_key(tmp_path / "nothing")
    with pytest.raises(InvalidRequest, match="Is a directory"):
        read_key(tmp_path)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("10.0.0.2", ("10.0.0.2", 53)),
        ("10.0.0.2:5353", ("10.0.0.2", 5353)),
        ("[2001:db8::1]:54", ("2001:db8::1", 54)),
        ("[2001:db8::1]", ("2001:db8::1", 53)),
        ("2001:DB8:0::1", ("2001:db8::1", 53)),
    ],
)
def test_a_server_is_an_address_with_or_without_a_port(text: str, found: tuple[str, int]) -> None:
    assert server_of(text) == found


@pytest.mark.parametrize(
    "text", ["", "ns.example.com", "10.0.0.2:", "10.0.0.2:0", "10.0.0.2:99999", "10.0.0.2:http", "[::1", "1.2.3"]
)
def test_what_is_no_address_of_a_server_is_told_as_such(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is not the address of a DNS server"):
        server_of(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no DNS provider given"),
        (("--dns", "rfc2136"), "--zone and --server and --key-file are missing for rfc2136"),
        (("--dns", "rfc2136", "--server", "10.0.0.2", "--zone", "a.b"), "--key-file is missing for rfc2136"),
        (("--dns", "rfc2136", "--server", "x", "--zone", "a.b", "--key-file", "k"), "'x' is not the address"),
        (("--dns", "hosts"), "no zone is named"),
        (("--dns", "hosts", "--zone", "*/Z1"), "no zone is named"),
        (("--dns", "hosts", "--zone", "a b", "--zone", "/x"), "2 zone rules cannot be read"),
        (("--dns", "bind"), "'bind' is not one of"),
        (("--dns", "route53", "--endpoint", "foo"), "--endpoint 'foo' is not a place to send requests to"),
        (
            ("--dns", "route53", "--endpoint", "http://a:x"),
            "--endpoint 'http://a:x' is not a place to send requests to",
        ),
    ],
)
@pytest.mark.parametrize("command", [("dns-controller",), ("explain", "record", "a.b")], ids=lambda each: each[0])
def test_all_that_is_missing_is_said_at_once_before_anybody_is_asked(
    call: Call, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.delenv("PROTOKUBE_DNS", raising=False)
    more = ("--kubeconfig", "nothing") if command[0] == "explain" else ()
    answer = call(*command, *arguments, *more)

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_the_provider_may_be_named_by_the_environment(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTOKUBE_DNS", "rfc2136")

    assert "missing for rfc2136" in call("dns-controller").err


@pytest.mark.parametrize(
    "text", ["ftp://a", "//a", "http://", "http://a:0", "http://a:99999", "http://a b", "https:/a"]
)
def test_an_endpoint_that_is_no_address_of_the_web_is_told_as_such(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", text)
    with pytest.raises(InvalidRequest, match="AWS_ENDPOINT_URL"):
        endpoint_of(None)
    with pytest.raises(InvalidRequest, match="--endpoint"):
        endpoint_of(text)
    assert endpoint_of("https://route53.example.com:8443/x") == "https://route53.example.com:8443/x"


def test_every_call_of_every_provider_is_counted_and_who_only_looks_writes_nothing(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    told = {"server": None, "key_file": None, "hosts_file": hosts, "endpoint": None}
    writing = open_zones("hosts", ("example.com",), **told)  # type: ignore[arg-type]
    looking = open_zones("hosts", ("example.com",), read_only=True, **told)  # type: ignore[arg-type]
    record = Record(name="web.example.com", type="A", values=("10.0.0.1",), ttl=60)
    change = [Change(before=None, after=record, why="test")]
    (zone,) = looking.list_zones()
    with pytest.raises(DryRun):
        looking.open(zone).apply(change)
    before = hosts.read_text()
    writing.open(zone).apply(change)

    assert before == "127.0.0.1 localhost\n"
    assert [each.values for each in looking.open(zone).list_records()] == [("10.0.0.1",)]
    assert (writing.calls, looking.calls) == ({"apply": 1}, {"list": 1})
    assert "web.example.com" in hosts.read_text()
