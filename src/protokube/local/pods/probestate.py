"""Probes of a container: their settings, and the state that follows from their results. Pure; needs no clock.

As with kubelet, a container counts as alive until enough checks in a row have failed, and as ready only after enough
have succeeded; until its startup probe has succeeded, no other probe runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from protokube.local.pods.fields import Fields, PodProblem

SHORTEST_PERIOD = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpGet:
    secure: bool
    host: str
    """Empty: the host's own address."""
    port: int
    path: str
    headers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpSocket:
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Exec:
    command: tuple[str, ...]


Check = HttpGet | TcpSocket | Exec


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Times are seconds."""

    check: Check
    initial_delay: float = 0.0
    period: float = 10.0
    timeout: float = 1.0
    successes: int = 1
    failures: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The state of a probe after the results so far; `good` is None until a threshold is reached."""

    good: bool | None = None
    passed: int = 0
    failed: int = 0
    why: str = ""
    """The reason of the last failure."""


def judge(verdict: Verdict, probe: Probe, why: str | None) -> Verdict:
    """The state after one more result: `why` is None for a success, else the reason."""
    if why is None:
        passed = verdict.passed + 1
        return replace(verdict, passed=passed, failed=0, good=True if passed >= probe.successes else verdict.good)
    failed = verdict.failed + 1
    good = False if failed >= probe.failures else verdict.good
    return Verdict(good=good, passed=0, failed=failed, why=why)


def is_ready(readiness: Verdict | None, startup: Verdict | None) -> bool:
    """Whether a running container is ready; None for a probe that it does not have."""
    return (startup is None or startup.good is True) and (readiness is None or readiness.good is True)


def why_restart(liveness: Verdict | None, startup: Verdict | None) -> str | None:
    """Why a running container must be restarted; None if not."""
    if startup is not None and startup.good is not True:
        return f"startup probe failed: {startup.why}" if startup.good is False else None
    if liveness is not None and liveness.good is False:
        return f"liveness probe failed: {liveness.why}"
    return None


def read_probe(fields: Fields, ports: Mapping[str, int]) -> Probe:
    return Probe(
        check=_read_check(fields, ports),
        initial_delay=fields.number("initialDelaySeconds", 0.0),
        period=fields.number("periodSeconds", 10.0, least=SHORTEST_PERIOD),
        timeout=fields.number("timeoutSeconds", 1.0, least=SHORTEST_PERIOD),
        successes=int(fields.number("successThreshold", 1, least=1)),
        failures=int(fields.number("failureThreshold", 3, least=1)),
    )


def _read_check(fields: Fields, ports: Mapping[str, int]) -> Check:
    if "httpGet" in fields:
        get = fields.section("httpGet")
        return HttpGet(
            secure=get.text("scheme", "HTTP").upper() == "HTTPS",
            host=get.text("host", ""),
            port=_read_port(get, ports),
            path="/" + get.text("path", "/").lstrip("/"),
            headers=tuple((each.text("name"), each.text("value", "")) for each in get.sections("httpHeaders")),
        )
    if "tcpSocket" in fields:
        tcp = fields.section("tcpSocket")
        return TcpSocket(host=tcp.text("host", ""), port=_read_port(tcp, ports))
    if "exec" in fields and (command := fields.section("exec").texts("command")):
        return Exec(tuple(command))
    raise PodProblem(f"{fields.path} has none of httpGet, tcpSocket, exec")


def _read_port(fields: Fields, ports: Mapping[str, int]) -> int:
    named = fields.value("port")
    if isinstance(named, str):
        if named not in ports:
            raise PodProblem(f"{fields.path}.port: no port of the container is called {named!r}")
        return ports[named]
    port = int(fields.number("port", least=1))
    if port > 65535:
        raise PodProblem(f"{fields.path}.port is {port}, beyond 65535")
    return port
