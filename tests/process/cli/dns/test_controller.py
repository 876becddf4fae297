"""`protokube dns-controller`, as its users call it: once by hand, and as a supervised process that gets signals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders.command import COMMAND, Call, environment, process
from builders.dns_objects import a_node, a_pod, a_service
from fakes.name_servers import Running, create, embedded, free_port
from fakes.object_api import CLUSTER, DnsApi, dns_api
from protokube.controllers.dns.read.watching import CORE
from protokube.errors import ExitCode
from protokube.providers.dns.rfc2136 import Rfc2136Dns
from protokube.records.names import make_record

METRICS = 20_000 + os.getpid() % 10_000
"""A port outside of the ephemeral range: the process binds it only some time after its start."""
WEB = "web.example.com"
POD = a_pod(internal_names=WEB)


@pytest.fixture
def api() -> Iterator[DnsApi]:
    with dns_api() as found:
        found.add(a_node("n1", external=["192.0.2.1"]), POD)
        found.add(a_service("no", "ClusterIP", external_names="no.example.com"))
        yield found


@pytest.fixture
def dns() -> Iterator[Running]:
    with embedded("example.com") as found:
        yield found


@pytest.fixture
def options(api: DnsApi, dns: Running, tmp_path: Path) -> tuple[str, ...]:
    key = tmp_path / "key"
    key.write_text(json.dumps({"name": dns.key.name, "secret": dns.key.secret}))
    return (
        "--dns", "rfc2136", "--server", f"127.0.0.1:{dns.port}", "--key-file", str(key), "--zone", "example.com",
        "--kubeconfig", str(api.kubeconfig(tmp_path)),
    )  # fmt: skip


def standing(dns: Running) -> dict[str, tuple[str, ...]]:
    """The records in the zone, without those of the zone itself and of its name server."""
    records = [each for each in list(dns.kept.records.values()) if each.name not in ("example.com", "ns.example.com")]
    return {f"{each.name} {each.type}": tuple(value.strip('"') for value in each.values) for each in records}


ON_DNS = {
    f"{WEB} A": ("10.0.0.1",),
    f"_protokube.{WEB} TXT": (f"protokube/1 {CLUSTER} A 10.0.0.1 pod/default/web",),
}


def test_a_dry_run_tells_what_would_be_written_and_writes_nothing(
    call: Call, options: tuple[str, ...], dns: Running, api: DnsApi
) -> None:
    answer = call("dns-controller", *options, "--once", "--dry-run")

    assert answer.code == ExitCode.OK
    assert answer.out.splitlines() == [
        "example.com (example.com): 1 name would change",
        f"  {WEB} A: nothing -> 10.0.0.1 (10.0.0.1 for pod/default/web)",
        "not as asked for:",
        "  service/default/no: a service of type 'ClusterIP' cannot be reached from outside; "
        "LoadBalancer or NodePort can",
    ]
    assert standing(dns) == {}
    assert api.wrote == [], "neither a Lease nor an Event"


def test_one_round_writes_and_the_next_has_nothing_to_do(call: Call, options: tuple[str, ...], dns: Running) -> None:
    first, second = (call("dns-controller", *options, "--once") for _ in range(2))

    assert (first.code, second.code) == (ExitCode.OK, ExitCode.OK)
    assert first.out.startswith("example.com (example.com): 1 name changed\n")
    assert second.out.startswith("example.com (example.com): 0 names changed\n")
    assert standing(dns) == ON_DNS


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_a_round_is_told_to_programs_as_data(
    call: Call, options: tuple[str, ...], output: str, read: Callable[[str], Any]
) -> None:
    document = read(call("dns-controller", *options, "--once", "--dry-run", "-o", output).out)

    assert (document["waits"], document["dryRun"]) == ("", True)
    (zone,) = document["zones"]
    assert (zone["zone"], zone["private"], zone["trouble"], zone["refused"]) == ("example.com", False, "", [])
    assert {"name": WEB, "type": "A", "before": None, "after": {"values": ["10.0.0.1"], "ttl": 60}} in zone["changes"]
    assert [each["source"] for each in document["problems"]] == ["service/default/no"]


def test_a_record_of_nobodys_becomes_ours_only_if_a_person_says_so(
    call: Call, options: tuple[str, ...], dns: Running
) -> None:
    old = make_record(WEB, "A", ["192.0.2.99"], 60)
    Rfc2136Dns("example.com", "127.0.0.1", dns.key, port=dns.port).apply(create(old))

    left = call("dns-controller", *options, "--once")
    before = standing(dns)
    taken = call("dns-controller", *options, "--once", "--adopt", f"{WEB.upper()}.")

    assert f"{WEB}: A 192.0.2.99 is there and not ours" in left.out
    assert before == {f"{WEB} A": ("192.0.2.99",)}
    assert (taken.code, standing(dns)) == (ExitCode.OK, ON_DNS)


def test_what_is_gone_leaves_at_once_when_a_person_runs_it_by_hand(
    call: Call, options: tuple[str, ...], dns: Running, api: DnsApi
) -> None:
    call("dns-controller", *options, "--once")
    api.remove(POD)
    answer = call("dns-controller", *options, "--once")

    assert f"  {WEB} A: 10.0.0.1 -> nothing (10.0.0.1 no longer for pod/default/web)" in answer.out.splitlines()
    assert standing(dns) == {}


@pytest.mark.parametrize("broken", ["api", "dns"])
def test_what_does_not_answer_is_told_and_the_shell_knows_to_try_later(
    call: Call, options: tuple[str, ...], tmp_path: Path, broken: str
) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    if broken == "api":
        file = tmp_path / "kubeconfig"
        file.write_text(re.sub(r"http://[^\s]+", f"http://{nobody}", file.read_text()))
        arguments = options
    else:
        arguments = (
            "--server",
            nobody,
            *(each for each in options if each != "--server" and not each.startswith("127.")),
        )
    answer = call("dns-controller", *arguments, "--once")

    assert answer.code == ExitCode.TRY_LATER
    assert "does not answer" in answer.out + answer.err
    assert "Traceback" not in answer.err


def test_a_login_that_is_turned_away_is_for_a_person(call: Call, options: tuple[str, ...], api: DnsApi) -> None:
    api.refuse[f"{CORE}/namespaces/kube-system"] = 403
    answer = call("dns-controller", *options, "--once")

    assert (answer.code, answer.out) == (ExitCode.REFUSED, "")
    assert "told to say 403" in answer.err


def test_a_kubeconfig_that_is_not_there_is_told_with_its_name(call: Call, options: tuple[str, ...]) -> None:
    answer = call("dns-controller", *options, "--kubeconfig", "/nowhere/kubeconfig", "--once")

    assert answer.code == ExitCode.INVALID
    assert "/nowhere/kubeconfig" in answer.err


def test_a_key_that_the_server_does_not_know_is_told_as_that(
    call: Call, options: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "key").write_text('key "stranger" { algorithm hmac-sha256; secret "c3RyYW5nZXI="; };')
    answer = call("dns-controller", *options, "--once", "-o", "json")

    assert answer.code == ExitCode.TRY_LATER
    assert "do not share the key" in json.loads(answer.out)["zones"][0]["trouble"]


def until(true: Callable[[], Any], seconds: float = 30) -> Any:
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
    return found


class Controller:
    """The command as a process, and its metrics."""

    def __init__(self, options: tuple[str, ...], port: int, log: Path) -> None:
        self.address, self._log = f"127.0.0.1:{port}", log
        command = [*COMMAND, "dns-controller", *options, "--metrics", self.address]
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(command, stderr=stderr, env=environment())

    def metric(self, name: str) -> float:
        try:
            with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=10) as answer:
                text = answer.read().decode()
        except OSError:
            return 0.0
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def logged(self) -> str:
        return self._log.read_text()


@contextmanager
def running(options: tuple[str, ...], log: Path) -> Iterator[Controller]:
    controller = Controller(options, METRICS, log)
    try:
        yield controller
    finally:
        controller.process.kill()
        controller.process.wait()


def test_a_controller_that_is_told_to_go_gives_its_lease_back(
    options: tuple[str, ...], api: DnsApi, dns: Running, tmp_path: Path
) -> None:
    with running((*options, "--grace", "0"), tmp_path / "log") as controller:
        until(lambda: standing(dns) == ON_DNS)
        assert api.lease()
        until(lambda: controller.metric('protokube_dns_provider_calls_total{kind="apply"}') == 1)
        assert controller.metric('protokube_dns_provider_calls_total{kind="list"}') >= 1
        until(lambda: controller.metric("protokube_dns_lag_seconds_count") == 1)
        until(lambda: controller.metric("protokube_dns_leading") == 1)
        events = until(lambda: len(api.events()) >= 2 and api.events())
        rounds = controller.metric("protokube_dns_rounds_total")
        controller.process.send_signal(signal.SIGHUP)
        until(lambda: controller.metric("protokube_dns_rounds_total") > rounds)
        controller.process.send_signal(signal.SIGTERM)
        code = controller.process.wait(20)

    assert (code, api.lease()) == (0, "")
    assert "Traceback" not in controller.logged()
    assert {(each["type"], each["reason"], each["involvedObject"]["uid"]) for each in events} == {
        ("Normal", "DNSNameSet", "uid-web"),
        ("Warning", "DNSNameNotSet", "uid-no"),
    }


def test_events_that_are_not_wanted_or_turned_away_change_nothing(
    options: tuple[str, ...], api: DnsApi, dns: Running, tmp_path: Path
) -> None:
    api.refuse[f"{CORE}/namespaces/default/events"] = 403
    with running(options, tmp_path / "first"):
        until(lambda: standing(dns) == ON_DNS)
        until(api.events)
    api.wrote.clear()
    api.add(a_pod("more", internal_names="more.example.com"))
    lease = ("--lease", "another")  # the first controller was killed, and its Lease has not expired yet
    with running((*options, *lease, "--no-events"), tmp_path / "second") as controller:
        until(lambda: "more.example.com A" in standing(dns))
        until(lambda: controller.metric("protokube_dns_problems") == 1)
        controller.process.send_signal(signal.SIGTERM)
        controller.process.wait(20)

    assert api.events() == []


def test_a_dry_run_that_goes_on_takes_no_lease_and_writes_nothing(
    options: tuple[str, ...], api: DnsApi, dns: Running, tmp_path: Path
) -> None:
    with running((*options, "--dry-run"), tmp_path / "log") as controller:
        until(lambda: "nothing -> 10.0.0.1" in controller.logged())
        controller.process.send_signal(signal.SIGTERM)

        assert controller.process.wait(20) == 0
    assert (api.wrote, standing(dns)) == ([], {})


def test_one_that_still_waits_for_the_api_server_goes_when_it_is_told_to(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "away").mkdir()
    with dns_api() as away:
        options = (*options, "--kubeconfig", str(away.kubeconfig(tmp_path / "away")))
    with running(options, tmp_path / "log") as controller:
        until(lambda: "waiting for the API server" in controller.logged())
        controller.process.send_signal(signal.SIGTERM)

        assert controller.process.wait(20) == 0


def test_an_address_for_metrics_that_is_taken_is_told_before_anything_is_done(
    options: tuple[str, ...], dns: Running
) -> None:
    answer = process("dns-controller", *options, "--metrics", f"127.0.0.1:{dns.port}")

    assert answer.code == ExitCode.REFUSED
    assert "cannot serve metrics" in answer.err
    assert standing(dns) == {}


HEAVY = ("msgspec", "dns", "botocore", "prometheus_client", "yaml", "ssl", "protokube.controllers")


@pytest.mark.parametrize("arguments", [["--help"], ["dns-controller", "--help"], ["explain", "--help"]])
def test_help_loads_nothing_that_only_the_work_needs(arguments: list[str]) -> None:
    code = f"from protokube.cli.main import run; import sys; run({arguments!r})"
    code += f"; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_the_help_names_every_option_with_what_it_is_for(call: Call) -> None:
    text = call("dns-controller", "--help").out

    for option in ("--dns", "--zone", "--key-file", "--grace", "--dry-run", "--once", "--events", "--lease", "--owner"):
        assert re.search(rf"{option}\b.*\S", text), option
    assert "dns.alpha.kubernetes.io/external" in text


def test_the_shell_completes_its_options() -> None:
    env = {"_PROTOKUBE_COMPLETE": "bash_complete", "COMP_WORDS": "protokube dns-controller --dr", "COMP_CWORD": "2"}

    assert process(env=env).out.split() == ["plain,--dry-run"]
