"""Which zones a command may see: the provider by its name, with what it needs to be reached."""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from protokube.errors import InvalidRequest
from protokube.providers.dns import DnsProvider, ZoneProvider
from protokube.records.zones import Zone

if TYPE_CHECKING:
    from protokube.providers.dns.budget import Budget
    from protokube.providers.dns.keys import TsigKey

PROVIDERS = {"aws-route53": "route53", "route53": "route53", "rfc2136": "rfc2136", "hosts": "hosts"}
"""Also as the original calls them."""
KEY = re.compile(
    r'\s*key\s+"?(?P<name>[^"\s{]+)"?\s*\{(?=[^}]*algorithm\s+"?(?P<algorithm>[\w-]+))(?=[^}]*secret\s+"(?P<secret>[^"]+)")'
)
COMMENT = re.compile(r'(?P<kept>"[^"]*")|(?:#|//)[^\n]*|/\*.*?\*/', re.DOTALL)
"""Never inside quotes: the letters of a secret may hold `//`."""
Decorated = Callable[..., Any]


def dns_options(command: Decorated) -> Decorated:
    """How a zone is reached, alike for every command that looks into one."""
    options = [
        click.option(
            "--dns", "provider", type=click.Choice(sorted(PROVIDERS)), envvar="PROTOKUBE_DNS", show_envvar=True,
            help="Where the zones are.",
        ),
        click.option(
            "-z", "--zone", "zones", multiple=True, metavar="RULE",
            help="A zone to write to: example.com, example.com/ID, */ID or *; again for more. All of them, if unsaid.",
        ),
        click.option("--server", metavar="ADDRESS[:PORT]", help="rfc2136: the primary server of the zones."),
        click.option(
            "--key-file", type=click.Path(path_type=Path, dir_okay=False),
            help="rfc2136: the key, as BIND or our store has it.",
        ),
        click.option(
            "--hosts-file", type=click.Path(path_type=Path, dir_okay=False), default=Path("/etc/hosts"),
            show_default=True, help="hosts: the file.",
        ),
        click.option("--endpoint", metavar="URL", help="route53: another place than AWS's own."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def open_zones(
    provider: str | None,
    zones: tuple[str, ...],
    *,
    server: str | None,
    key_file: Path | None,
    hosts_file: Path,
    endpoint: str | None,
    read_only: bool = False,
) -> OpenZones:
    """The zones that there are; nothing is asked of anybody yet. InvalidRequest with everything that is missing."""
    from protokube.providers.dns.budget import Budget
    from protokube.providers.dns.given import given

    match PROVIDERS.get(provider or ""):
        case "route53":
            from protokube.providers.dns.route53 import Route53Zones

            account = Route53Zones(endpoint=endpoint_of(endpoint))
            return OpenZones(account, account.budget, counts_itself=True, read_only=read_only)
        case "rfc2136":
            return OpenZones(given(*_updated(zones, server, key_file)), Budget(), read_only=read_only)
        case "hosts":
            from protokube.providers.dns.hosts import HostsDns

            files = [HostsDns(zone, hosts_file) for zone in named(zones)]
            return OpenZones(given(*files), Budget(), read_only=read_only)
        case _:
            raise InvalidRequest("it is not said where the zones are", hint=f"--dns {' | '.join(sorted(PROVIDERS))}")


class OpenZones:
    """Implements ZoneProvider: counts what each call costs, and lets nobody write who is only to look."""

    def __init__(
        self, inner: ZoneProvider, budget: Budget, *, counts_itself: bool = False, read_only: bool = False
    ) -> None:
        self._inner, self._budget, self._counts_itself, self._read_only = inner, budget, counts_itself, read_only

    @property
    def calls(self) -> Mapping[str, int]:
        """How often the provider was asked, by kind."""
        return self._budget.calls

    def list_zones(self) -> Sequence[Zone]:
        return self._inner.list_zones()

    def open(self, zone: Zone) -> DnsProvider:
        from protokube.providers.dns.budget import BudgetedDns
        from protokube.providers.dns.readonly import ReadOnlyDns

        found = self._inner.open(zone)
        counted = found if self._counts_itself else BudgetedDns(found, self._budget)
        return ReadOnlyDns(counted) if self._read_only else counted


def named(rules: tuple[str, ...]) -> list[str]:
    """The zones that rules name: a server or a file cannot be asked which it has."""
    from protokube.controllers.dns.decide.zonerules import parse_rules

    names = sorted({rule.name for rule in parse_rules(rules) if rule.name})
    if not names:
        raise InvalidRequest("no zone is named", hint="say each zone: --zone example.com")
    return names


def _updated(rules: tuple[str, ...], server: str | None, key_file: Path | None) -> list[DnsProvider]:
    from protokube.providers.dns.rfc2136 import Rfc2136Dns

    said = {"--zone": any(rules), "--server": server, "--key-file": key_file}
    missing = [option for option in said if not said[option]]
    if missing or server is None or key_file is None:
        raise InvalidRequest(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing for rfc2136")
    zones, (address, port), key = named(rules), server_of(server), read_key(key_file)
    return [Rfc2136Dns(zone, address, key, port=port) for zone in zones]


def server_of(text: str) -> tuple[str, int]:
    """`10.0.0.2`, `10.0.0.2:5353`, `[2001:db8::1]:53` or `2001:db8::1`: an address, since a name would need DNS."""
    found = re.fullmatch(r"\[(?P<six>[^\]]+)\](:(?P<a>\d+))?|(?P<four>[^:]+)(:(?P<b>\d+))?|(?P<plain>.*:.*:.*)", text)
    try:
        address = str(ipaddress.ip_address((found["six"] or found["four"] or found["plain"]) if found else ""))
    except ValueError:
        address = ""
    port = int((found["a"] or found["b"] or 53) if found else 0)
    if not address or not 0 < port < 65536:
        raise InvalidRequest(f"{text!r} is not the address of a DNS server", want="ADDRESS or ADDRESS:PORT")
    return address, port


def endpoint_of(text: str | None) -> str | None:
    """An address of the web, from the option or the environment; InvalidRequest before anybody waits for an answer."""
    said = text or os.environ.get("AWS_ENDPOINT_URL")
    if not said:
        return None
    try:
        parts = urlsplit(said)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # what stands there is no port
        good = False
    if not good or re.search(r"\s", said):
        source = "--endpoint" if text else "AWS_ENDPOINT_URL"
        raise InvalidRequest(
            f"{source} {said!r} is not a place to send requests to", want="https://HOST or http://HOST:PORT"
        )
    return said


def read_key(file: Path) -> TsigKey:
    """A key as `tsig-keygen` prints it, or as our stores keep one."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"cannot read {file}: {getattr(error, 'strerror', '') or 'it is no text'}") from error
    return key_in(text, str(file))


def key_in(text: str, place: str) -> TsigKey:
    """The key in a text that lies at this place."""
    from protokube.providers.dns.keys import TsigKey

    found = _json_key(text) or KEY.match(COMMENT.sub(lambda part: part["kept"] or " ", text))
    if found is None:
        raise InvalidRequest(
            f"{place} holds no key", want='key "name" { algorithm hmac-sha256; secret "..."; };',
            hint="`tsig-keygen NAME` writes one",
        )  # fmt: skip
    if found["algorithm"].lower() != "hmac-sha256":
        raise InvalidRequest(f"{place}: the key is for {found['algorithm']}", want="hmac-sha256")
    return TsigKey(name=found["name"], secret=found["secret"])


def _json_key(text: str) -> dict[str, str] | None:
    """`{"name": ..., "secret": ...}`, perhaps with its algorithm; None if it is something else."""
    try:
        tree = json.loads(text)
    except ValueError:
        return None
    parts = {"algorithm": "hmac-sha256"} | (tree if isinstance(tree, dict) else {})
    return parts if all(isinstance(parts.get(part), str) for part in ("name", "secret", "algorithm")) else None
