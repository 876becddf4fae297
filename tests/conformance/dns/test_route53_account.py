"""Who asks Route 53, where it is, and what is between: keys, files, proxies and certificates, over real sockets."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.certificates import write_certificates
from conformance.store.bad_server import CUT, HANG_UP, NONSENSE, BadServer, Reply
from fakes.name_servers import ZONE, an_address, create
from fakes.route53 import ENVIRONMENT, Route53Server
from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.providers.dns.budget import Budget
from protokube.providers.dns.route53 import Route53Zones
from protokube.records.zones import Zone

NO_ZONES = Reply(
    200,
    b'<ListHostedZonesResponse xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><HostedZones/>'
    b"<IsTruncated>false</IsTruncated></ListHostedZonesResponse>",
)
HOSTED = Zone(name=ZONE, id="Z1")


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No account, no settings and no proxy but those of the test."""
    for name in list(os.environ):
        if name.startswith("AWS_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def far() -> Iterator[BadServer]:
    with BadServer(NO_ZONES) as server:
        yield server


def zones(url: str | None) -> Route53Zones:
    return Route53Zones(endpoint=url, budget=Budget())


def key_of(server: BadServer) -> str:
    """The id of the key that signed the last request."""
    signed = server.authorizations[-1] or ""
    return signed.partition("Credential=")[2].partition("/")[0]


def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)


def test_with_keys_in_the_environment_no_library_of_amazon_is_loaded() -> None:
    with Route53Server() as server:
        hosted = server.zone(ZONE)
        code = f"""
import sys
from protokube.providers.dns.budget import Budget
from protokube.providers.dns.route53 import Route53Zones
from protokube.records import Change, Record
account = Route53Zones(endpoint={server.url!r}, budget=Budget())
zone = account.open(account.list_zones()[0])
record = Record(name="a.{ZONE}", type="A", values=("10.0.0.1",), ttl=60)
zone.apply([Change(before=None, after=record, why="")])
assert zone.list_records() == (record,)
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("boto3", "botocore", "urllib3", "dns")))
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

        assert (done.stdout.strip(), done.stderr) == ("[]", "")
        assert [each.type for each in server.sets(hosted)] == ["NS", "SOA", "A"]


@pytest.mark.parametrize("variable", ["AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN"])
def test_a_temporary_key_is_sent_with_its_token(far: BadServer, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "temporary")

    assert zones(far.url).list_zones() == []
    assert "x-amz-security-token" in (far.authorizations[-1] or "")


def test_a_profile_in_a_file_is_used_as_its_tools_do(
    far: BadServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_keys(monkeypatch)
    file = tmp_path / "credentials"
    file.write_text("[other]\naws_access_key_id = AKIAFILE\naws_secret_access_key = x\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_PROFILE", "other")

    assert zones(far.url).list_zones() == []
    assert key_of(far) == "AKIAFILE"


def test_the_role_of_a_pod_is_asked_for_and_used(far: BadServer, monkeypatch: pytest.MonkeyPatch) -> None:
    without_keys(monkeypatch)
    role = b'{"AccessKeyId":"ASIAROLE","SecretAccessKey":"x","Token":"t","Expiration":"2099-01-01T00:00:00Z"}'
    with BadServer(Reply(200, role, {"Content-Type": "application/json"})) as agent:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{agent.url}/v1/credentials")
        account = zones(far.url)
        account.list_zones()
        account.list_zones()

        assert key_of(far) == "ASIAROLE"
        assert len(agent.asked) == 1, "it is kept until it expires"


def test_an_address_in_a_file_is_used_as_its_tools_do(
    far: BadServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    file.write_text(f"[default]\nservices = here\n[services here]\nroute_53 =\n  endpoint_url = {far.url}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))

    assert zones(None).list_zones() == []
    assert far.asked == [("GET", "/2013-04-01/hostedzone")]


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_ROUTE_53"])
def test_an_address_in_the_environment_is_used(far: BadServer, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, far.url)

    assert zones(None).list_zones() == []


@pytest.mark.parametrize("missing", [("AWS_SECRET_ACCESS_KEY",), ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")])
def test_without_an_account_it_is_said_what_is_missing(
    far: BadServer, monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...]
) -> None:
    for name in missing:
        monkeypatch.delenv(name)

    with pytest.raises(Refused, match="there is no account") as caught:
        zones(far.url).list_zones()

    assert "ListHostedZones" in caught.value.hint
    assert far.asked == []


def test_a_profile_that_is_not_there_is_told(far: BadServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nowhere")

    with pytest.raises(TryLater, match="nowhere"):
        zones(far.url).list_zones()


def test_requests_take_the_proxy_of_the_environment_unless_it_is_not_for_them(
    far: BadServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BadServer(NO_ZONES) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        zones("http://route53.test").list_zones()
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        zones(far.url).list_zones()

        assert proxy.asked == [("GET", "http://route53.test/2013-04-01/hostedzone")]
        assert len(far.asked) == 1


def test_an_encrypted_request_asks_the_proxy_for_a_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    with BadServer(Reply(403)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//me:secret@"))
        monkeypatch.setenv("https_proxy", proxy.url.replace("//", "//me:secret@"))
        with pytest.raises(TryLater, match="cannot be reached"):
            zones(None).open(HOSTED).apply(create(an_address("a")))

        assert proxy.asked == [("CONNECT", "route53.amazonaws.com:443")]


@pytest.mark.parametrize("proxy", ["https://127.0.0.1:1", "http://", "http://127.0.0.1:0"])
def test_a_proxy_that_cannot_be_used_is_told(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, proxy)

    with pytest.raises(Refused, match="is not a proxy"):
        zones("http://route53.test").list_zones()


def test_a_server_is_trusted_by_the_named_authorities_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = {"authority": "ca", "organizations": [], "names": ["127.0.0.1"], "usages": ["server auth"]}
    pki, whole = tmp_path / "pki", tmp_path / "whole.pem"
    write_certificates(pki, {"server": {**told, "commonName": "server"}})
    whole.write_bytes((pki / "server.crt").read_bytes() + (pki / "server.key").read_bytes())
    with BadServer(NO_ZONES, whole) as server:
        with pytest.raises(TryLater, match="certificate"):
            zones(server.url).open(HOSTED).apply(create(an_address("a")))
        monkeypatch.setenv("AWS_CA_BUNDLE", str(pki / "ca.crt"))

        assert zones(server.url).list_zones() == []


def test_a_connection_that_was_closed_between_two_writes_is_not_the_fault_of_the_second() -> None:
    with BadServer(Reply(200, b"<ChangeResourceRecordSetsResponse/>")) as server:  # it closes after each
        zone = zones(server.url).open(HOSTED)
        zone.apply(create(an_address("a")))
        zone.apply(create(an_address("b")))

        assert server.methods == ["POST", "POST"]


@pytest.mark.parametrize("manners", [HANG_UP, CUT, NONSENSE])
def test_a_write_that_is_cut_off_is_not_repeated(manners: Reply) -> None:
    with BadServer(manners) as server:
        with pytest.raises(TryLater) as caught:
            zones(server.url).open(HOSTED).apply(create(an_address("a")))

        assert "may have been carried out" in caught.value.hint
        assert server.methods == ["POST"]


@pytest.mark.parametrize("manners", [HANG_UP, Reply(502, b"Bad Gateway"), Reply(200, b"<html>Welcome</html>")])
def test_a_list_that_is_no_list_never_counts_as_an_empty_one(manners: Reply) -> None:
    with BadServer(manners) as server, pytest.raises(ProtokubeError) as caught:
        zones(server.url).list_zones()

    assert type(caught.value) is TryLater
