"""The commands about names with Route 53, where two zones can have the same name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.command import Call
from builders.dns_objects import a_node, a_pod
from fakes.object_api import DnsApi, dns_api
from fakes.route53 import ENVIRONMENT, Route53Server
from protokube.cli.dns.zones import open_zones
from protokube.errors import ExitCode

WEB = "web.example.com"


@pytest.fixture
def route53(monkeypatch: pytest.MonkeyPatch) -> Iterator[Route53Server]:
    for name in list(os.environ):
        if name.startswith("AWS_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with Route53Server() as server:
        yield server


@pytest.fixture
def api() -> Iterator[DnsApi]:
    with dns_api() as found:
        yield found


def test_a_name_is_told_in_the_public_and_in_the_private_zone(
    call: Call, route53: Route53Server, api: DnsApi, tmp_path: Path
) -> None:
    public, private = route53.zone("example.com"), route53.zone("example.com", private=True)
    unclear = [route53.zone("other.org") for _ in range(2)]
    api.add(a_node("n1", external=["192.0.2.1"]), a_pod(internal_names=WEB, external_names=f"{WEB},web.other.org"))
    options = ("--dns", "aws-route53", "--endpoint", route53.url, "--kubeconfig", str(api.kubeconfig(tmp_path)))
    wrote = call("dns-controller", *options, "--once")
    shown = call("explain", "record", WEB, *options).out.splitlines()
    left = call("explain", "record", "web.other.org", *options).out.splitlines()

    assert wrote.code == ExitCode.OK
    assert f"  {public}: A 192.0.2.1, TTL 60: ours, for pod/default/web>node/n1" in shown
    assert f"  {private}: A 10.0.0.1, TTL 60: ours, for pod/default/web" in shown
    assert shown[-1] == "next: nothing: it is in order"
    assert any(f"{unclear[0]} is left alone: other.org is 2 public zones" in line for line in left)


def test_the_calls_of_an_account_are_counted_once(route53: Route53Server) -> None:
    zone = route53.zone("example.com")
    options = {"server": None, "key_file": None, "hosts_file": Path("/etc/hosts")}
    account = open_zones("route53", (), endpoint=route53.url, read_only=True, **options)  # type: ignore[arg-type]

    assert account.list_zones() == [zone]
    account.open(zone).list_records()
    assert account.calls == {"zones": 1, "list": 1}


NOT_NEEDED = ("boto3", "asyncio", "dns", "cryptography", "prometheus_client", "fsspec")


def test_a_round_loads_no_library_that_it_does_not_use(route53: Route53Server, api: DnsApi, tmp_path: Path) -> None:
    route53.zone("example.com")
    api.add(a_node("n1"), a_pod(internal_names=WEB))
    words = ["dns-controller", "--dns", "route53", "--endpoint", route53.url, "--once"]
    words += ["--kubeconfig", str(api.kubeconfig(tmp_path))]
    code = f"""
import sys
from protokube.cli.main import run
code = run({words!r})
print(code, [name for name in {NOT_NEEDED} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.splitlines()[-1] == "0 []", done.stderr
    assert "1 name changed" in done.stdout
