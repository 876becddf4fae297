"""A session with an API server, over real sockets and real TLS."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from builders.certificates import write_certificates
from fakes.ports import kept_port
from fakes.watch_server import PATH, WatchServer, login_to, session_with, until, watch_server
from protokube.errors import InvalidRequest, TryLater
from protokube.kube.client import ApiError, NoAnswer
from protokube.kube.login import Login, find_login
from protokube.kube.session import Conflict, Session, Silent, lines

WATCH = {"watch": "true", "resourceVersion": "100", "timeoutSeconds": "300"}


@pytest.fixture
def server() -> Iterator[WatchServer]:
    with watch_server() as found:
        yield found


def keys(folder: Path) -> Path:
    certificate = {
        "authority": "ca",
        "organizations": [],
        "names": ["127.0.0.1"],
        "usages": ["server auth", "client auth"],
    }
    write_certificates(folder, {name: {**certificate, "commonName": name} for name in ("server", "client", "renewed")})
    return folder


def test_requests_carry_what_they_should_and_nothing_from_the_environment(
    server: WatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with session_with(server, tmp_path, user={"token": "secret"}) as session:
        assert json.loads(session.get(PATH, {"limit": "7"}))["items"] == []
        server.scripted.extend([(201, {}, b"made"), (200, {}, b"patched"), (200, {}, b"replaced")])
        assert session.create(PATH, b"{}") == b"made"
        assert session.patch(f"{PATH}/a", b"{}", "application/apply-patch+yaml", {"force": "true"}) == b"patched"
        assert session.replace(f"{PATH}/a", b"{}") == b"replaced"
    assert server.seen == [
        ("GET", PATH, {"limit": "7"}),
        ("POST", PATH, {}),
        ("PATCH", f"{PATH}/a", {"force": "true"}),
        ("PUT", f"{PATH}/a", {}),
    ]
    assert [each.get("Content-Type") for each in server.headers_seen] == [
        None,
        "application/json",
        "application/apply-patch+yaml",
        "application/json",
    ]
    assert {each["Authorization"] for each in server.headers_seen} == {"Bearer secret"}
    assert {each["Accept-Encoding"] for each in server.headers_seen} == {"identity"}


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", ApiError),
        (503, "", TryLater),
        (429, "", TryLater),
        (403, "Forbidden", ApiError),
        (410, "Expired", ApiError),
    ],
)
def test_an_answer_is_told_by_what_one_can_do_about_it(
    server: WatchServer, tmp_path: Path, status: int, reason: str, expected: type[Exception]
) -> None:
    body = json.dumps({"message": "because", "reason": reason}).encode()
    with session_with(server, tmp_path) as session:
        server.scripted.append((status, {}, body))
        with pytest.raises(expected, match="because") as why:
            session.replace(PATH, b"{}")
        assert type(why.value) is expected
        server.scripted.append((status, {}, body))
        with pytest.raises(expected, match="because"), session.watch(PATH, WATCH):
            pass


def test_a_busy_server_that_names_a_short_time_is_asked_again_after_it(server: WatchServer, tmp_path: Path) -> None:
    with session_with(server, tmp_path) as session:
        server.scripted.extend([(429, {"Retry-After": "0"}, b"{}"), (200, {}, b"fine")])
        assert session.create(PATH, b"{}") == b"fine"
        server.scripted.append((429, {"Retry-After": "3600"}, b'{"message":"much later"}'))
        with pytest.raises(TryLater, match="much later"):
            session.create(PATH, b"{}")


def test_a_read_that_is_cut_off_is_tried_once_more_and_a_write_is_not(server: WatchServer, tmp_path: Path) -> None:
    with session_with(server, tmp_path) as session:
        server.faults.append("cut")
        assert session.get(PATH)
        server.faults.append("cut")
        with pytest.raises(NoAnswer, match="does not answer"):
            session.create(PATH, b"{}")
        assert [method for method, _, _ in server.seen] == ["GET", "GET", "POST"]


def test_a_server_that_is_not_there_is_told_as_such(tmp_path: Path) -> None:
    with kept_port() as port:
        with watch_server(port=port) as gone:
            login = login_to(gone, tmp_path)
        session = Session(login)
        with pytest.raises(NoAnswer, match="does not answer"):
            session.get(PATH)
        with pytest.raises(NoAnswer, match="does not answer"), session.watch(PATH, WATCH):
            pass
        session.close()


def test_a_watch_that_is_silent_for_too_long_says_so(server: WatchServer, tmp_path: Path) -> None:
    silent = pytest.raises(Silent, match=r"nothing for 0\.1 s")
    with session_with(server, tmp_path) as session, silent, session.watch(PATH, WATCH, silence=0.1) as watch:
        list(watch)


def test_what_the_reader_of_a_watch_does_wrong_is_not_blamed_on_the_server(server: WatchServer, tmp_path: Path) -> None:
    server.put("a", size=1)

    def read(session: Session) -> None:
        with session.watch(PATH, WATCH) as watch:
            for _ in watch:
                raise KeyError("mine")

    with session_with(server, tmp_path) as session, pytest.raises(KeyError, match="mine"):
        read(session)


@pytest.mark.parametrize("tls", [False, True])
def test_closing_wakes_every_thread_that_waits(tmp_path: Path, tls: bool) -> None:
    pki = keys(tmp_path / "pki") if tls else None
    ended: list[str] = []
    with watch_server(pki) as server, session_with(server, tmp_path) as session:

        def read() -> None:
            with pytest.raises(NoAnswer), session.watch(PATH, WATCH, silence=600) as watch:
                list(watch)
            ended.append("read")

        threads = [threading.Thread(target=read) for _ in range(3)]
        for each in threads:
            each.start()
        until(lambda: server.watching == 3, "all watch")
        session.close()
        for each in threads:
            each.join(10)
        assert ended == ["read"] * 3
        with pytest.raises(NoAnswer, match="closed"):
            session.get(PATH)


def test_one_watch_can_be_hung_up_without_the_others(tmp_path: Path) -> None:
    with (
        watch_server(keys(tmp_path / "pki")) as server,
        session_with(server, tmp_path) as session,
        session.watch(PATH, WATCH, silence=600) as other,
        session.watch(PATH, WATCH, silence=600) as watch,
    ):
        until(lambda: server.watching == 2, "both are open")
        thread = threading.Thread(target=watch.hang_up)
        thread.start()
        with pytest.raises(NoAnswer):
            list(watch)
        thread.join()
        server.put("a", size=1)
        assert b'"a"' in next(iter(other))


def test_renewed_certificates_are_used_by_the_next_request_and_an_open_watch_goes_on(tmp_path: Path) -> None:
    pki = keys(tmp_path / "pki")
    user = {"client-certificate": "pki/client.crt", "client-key": "pki/client.key"}
    with watch_server(pki) as server, session_with(server, tmp_path, user=user) as session:
        session.get(PATH)
        with session.watch(PATH, WATCH, silence=600) as watch:
            (pki / "client.crt").write_text("this is no certificate: somebody is just writing it")
            session.get(PATH)
            for kind in ("crt", "key"):
                (pki / f"renewed.{kind}").replace(pki / f"client.{kind}")
            session.get(PATH)
            server.put("a", size=1)
            assert b'"a"' in next(iter(watch))
        assert len(session._pools) == 1, "the old one is closed when the last one has left it"


def test_after_a_refused_login_the_files_are_read_again(server: WatchServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    with session_with(server, tmp_path, user={"tokenFile": "token"}) as session:
        session.get(PATH)
        seen = token.stat()
        token.write_text("new\n")
        os.utime(token, ns=(seen.st_atime_ns, seen.st_mtime_ns))  # its stamp is unchanged
        server.scripted.extend([(401, {}, b"{}"), (401, {}, b"{}")])
        with pytest.raises(ApiError):
            session.get(PATH)
        session.get(PATH)
        assert server.headers_seen[-1]["Authorization"] == "Bearer new"


@pytest.mark.parametrize("spoken", ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"])
def test_a_plug_in_logs_in_and_its_failure_is_told_in_words(server: WatchServer, tmp_path: Path, spoken: str) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f'#!/bin/sh\ncase "$KUBERNETES_EXEC_INFO" in *\'"{spoken}"\'*) ;; *) exit 1;; esac\n'
        'echo \'{"status":{"token":"from-plugin"}}\'\n'
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    login = login_to(server, tmp_path)
    assert login.kubeconfig is not None
    tree = yaml.safe_load(login.kubeconfig.read_text())
    tree["users"][0]["user"] = {"exec": {"apiVersion": spoken, "command": str(plugin)}}
    login.kubeconfig.write_text(yaml.safe_dump(tree))
    session = Session(login)
    session.get(PATH)
    assert server.headers_seen[-1]["Authorization"] == "Bearer from-plugin"
    session.close()
    plugin.write_text("#!/bin/sh\necho nonsense\n")
    session = Session(login)
    with pytest.raises(TryLater, match="cannot log in"):
        session.get(PATH)
    session.close()


def test_a_plug_in_of_an_unknown_kind_is_the_users_to_change(server: WatchServer, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="its plug-in speaks example/v7"):
        Session(login_to(server, tmp_path, user={"exec": {"apiVersion": "example/v7", "command": "x"}})).get(PATH)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "cannot be used"),
        ("[]", "cannot be used"),
        ("{unclosed", "cannot be used"),
        ("clusters: []\ncontexts: []\n", "context"),
        ("clusters: []\ncontexts: []\ncurrent-context: x\n", "'x' not found"),
        ("clusters: []\ncontexts: [{name: x, context: {cluster: y}}]\ncurrent-context: x\n", "'y'"),
        ("clusters: [{name: y, cluster: {server: 5}}]\ncontexts: []\n", "str"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_told_without_a_traceback(tmp_path: Path, content: str, expected: str) -> None:
    file = tmp_path / "config"
    file.write_text(content)
    with pytest.raises(InvalidRequest) as why:
        Session.open(file)
    assert expected in str(why.value)
    assert str(file) in str(why.value)


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ({"server": "http://192.0.2.1"}, "https://"),
        ({"server": "http://[::1"}, "https://"),
        ({"server": "https://[::1"}, "https://"),
        ({"server": "https://"}, "its server is https://"),
        ({"server": "https:///path"}, "https://"),
        ({"server": "https://192.0.2.1:99999"}, "Port out of range"),
        ({"server": "https://192.0.2.1", "insecure-skip-tls-verify": True}, "trusts any server"),
        ({"server": "https://192.0.2.1", "certificate-authority": "missing.crt"}, "No such file"),
        ({"server": "https://192.0.2.1", "certificate-authority-data": "%%%"}, "not in base64"),
        ({"server": "https://192.0.2.1", "certificate-authority-data": "aGVsbG8="}, "no certificate"),
    ],
)
def test_a_cluster_that_cannot_be_trusted_is_refused(
    server: WatchServer, tmp_path: Path, cluster: dict[str, object], expected: str
) -> None:
    login = login_to(server, tmp_path)
    assert login.kubeconfig is not None
    tree = yaml.safe_load(login.kubeconfig.read_text())
    tree["clusters"][0]["cluster"] = cluster
    login.kubeconfig.write_text(yaml.safe_dump(tree))
    with pytest.raises(InvalidRequest) as why:
        Session.open(login.kubeconfig)
    assert expected in str(why.value)


def test_a_user_who_acts_as_another_one_is_refused_since_it_would_have_more_rights(
    server: WatchServer, tmp_path: Path
) -> None:
    with pytest.raises(InvalidRequest, match="acts as jane"):
        Session(login_to(server, tmp_path, user={"token": "admin", "as": "jane"})).get(PATH)
    assert server.seen == []


def test_a_server_whose_name_cannot_be_in_dns_does_not_answer(server: WatchServer, tmp_path: Path) -> None:
    login = login_to(server, tmp_path)
    assert login.kubeconfig is not None
    login.kubeconfig.write_text(login.kubeconfig.read_text().replace(server.url, "https://a..b"))
    session = Session(login)
    with pytest.raises(NoAnswer, match="does not answer"):
        session.get(PATH)
    session.close()


def test_a_context_can_be_named_and_a_missing_file_is_told(
    server: WatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = login_to(server, tmp_path)
    session = Session.open(login.kubeconfig, "here")
    assert session.get(PATH)
    session.close()
    with pytest.raises(InvalidRequest, match="cannot be used"):
        Session.open(login.kubeconfig, "elsewhere")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    with pytest.raises(InvalidRequest, match="there is no kubeconfig"):
        find_login(None, None)


def test_a_pod_logs_in_by_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pki = keys(tmp_path / "pki")
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("of-the-pod")
    (account / "namespace").write_text("kube-system")
    (account / "ca.crt").write_bytes((pki / "ca.crt").read_bytes())
    with watch_server(pki) as server:
        with pytest.raises(InvalidRequest, match="KUBERNETES_SERVICE_HOST"):
            Login(account=account).pool()
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.server_address[1]))
        session = Session(Login(account=account))
        session.get(PATH)
        assert server.headers_seen[-1]["Authorization"] == "Bearer of-the-pod"
        session.close()


def test_a_server_that_hangs_costs_no_more_than_our_patience(server: WatchServer, tmp_path: Path) -> None:
    with session_with(server, tmp_path) as session:
        began = time.monotonic()
        with pytest.raises(NoAnswer, match="said nothing"), server.lock:  # the server answers no request meanwhile
            session.get(PATH, patience=0.1)
        assert time.monotonic() - began >= 0.1


@given(st.lists(st.binary(min_size=1).map(lambda each: each.replace(b"\n", b" ")), max_size=8), st.data())
def test_lines_come_whole_wherever_they_were_cut(wanted: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(each + b"\n" for each in wanted)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=10)))
    chunks = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert list(lines(chunks)) == [each for each in wanted if each.strip()]


def test_half_a_line_at_the_end_is_an_end_in_the_middle() -> None:
    found = lines([b"one\ntw"])
    assert next(found) == b"one"
    with pytest.raises(NoAnswer, match="middle"):
        next(found)
