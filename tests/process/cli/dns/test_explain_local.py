"""`protokube explain record` in a local cloud: names of the agents from their status, all others from objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from builders.command import Call
from builders.dns_objects import a_pod
from builders.view import CLUSTER, FakeCloud, ShortFolder, a_view, cloud_rows, write_state
from fakes.name_servers import Running, embedded
from fakes.object_api import DnsApi, dns_api
from protokube.errors import ExitCode
from protokube.local.base import client_files
from protokube.local.base.paths import Paths
from protokube.providers.dns.rfc2136 import Rfc2136Dns
from protokube.records import Change, Record
from protokube.store import layout

ZONE = "example.com"
WWW = Record(name=f"www.{ZONE}", type="A", values=("192.0.2.9",), ttl=60)
VIEW = a_view(records=(*a_view().records, WWW))


@pytest.fixture
def api() -> Iterator[DnsApi]:
    with dns_api() as found:
        found.add(a_pod(internal_names=f"web.{ZONE}"))
        yield found


@pytest.fixture
def dns() -> Iterator[Running]:
    with embedded(ZONE) as found:
        provider = Rfc2136Dns(ZONE, "127.0.0.1", found.key, port=found.port)
        provider.apply([Change(before=None, after=WWW, why="by hand")])
        yield found


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch, api: DnsApi, dns: Running) -> Iterator[Paths]:
    with ShortFolder() as folder:
        monkeypatch.setenv("PROTOKUBE_STATE", str(folder))
        found = write_state(folder, VIEW)
        client_files.folder(found).mkdir()
        api.kubeconfig(client_files.folder(found))
        key = found.store / layout.secret(CLUSTER, "dns-update-key")
        key.parent.mkdir(parents=True, exist_ok=True)
        key.write_text(json.dumps({"name": dns.key.name, "secret": dns.key.secret}))
        rows: dict[str, Any] = {**cloud_rows(VIEW), "about": {"zones": [ZONE], "dns_port": dns.port}}
        with FakeCloud(found.admin_socket, rows):
            yield found


@pytest.mark.parametrize("name", [f"web.{ZONE}", "web"])
def test_a_name_that_an_object_asks_for_is_told_by_objects(call: Call, paths: Paths, name: str) -> None:
    answer = call("explain", "record", name)

    assert (answer.code, answer.err) == (ExitCode.OK, "")
    assert answer.out.splitlines()[:3] == [
        f"web.{ZONE}",
        "asked for by:",
        "  pod/default/web (annotation dns.alpha.kubernetes.io/internal): A 10.0.0.1",
    ]


def test_a_name_of_the_agents_is_told_by_them_without_any_api(call: Call, paths: Paths, api: DnsApi) -> None:
    api.refuse["/api/v1/namespaces/kube-system"] = 503
    answer = call("explain", "record", "etcd-b")

    assert answer.out.startswith(f"etcd-b.internal.{CLUSTER} is the name of etcd-b\n")


def test_without_kubernetes_all_is_as_the_cloud_sees_it(call: Call, paths: Paths) -> None:
    (client_files.folder(paths) / "kubeconfig").unlink()

    assert call("explain", "record", f"www.{ZONE}").out.startswith(f"www.{ZONE} is in the zone\n")


def test_while_the_api_is_away_a_name_that_is_there_is_told_as_the_cloud_sees_it(
    call: Call, paths: Paths, api: DnsApi
) -> None:
    seen = call("explain", "record", f"www.{ZONE}")
    api.refuse["/api/v1/namespaces/kube-system"] = 503
    there, missing = call("explain", "record", f"www.{ZONE}"), call("explain", "record", f"web.{ZONE}")

    assert "  A 192.0.2.9, TTL 60: no owner is recorded, so it stays" in seen.out.splitlines()
    assert there.out.startswith(f"www.{ZONE} is in the zone\n")
    assert (missing.code, missing.out) == (ExitCode.TRY_LATER, "")
