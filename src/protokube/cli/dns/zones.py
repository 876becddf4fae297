"""Which zones a command may see: the provider by its name, with what it needs to be reached."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from protokube.cli.shared.options import Choice
from protokube.errors import InvalidRequest

if TYPE_CHECKING:
    from protokube.providers.catalog import ZoneAccess
    from protokube.providers.dns.opened import OpenZones

PROVIDERS = {"aws-route53": "route53", "route53": "route53", "rfc2136": "rfc2136", "hosts": "hosts"}
"""Also as the original calls them."""
Decorated = Callable[..., Any]


def dns_options(command: Decorated) -> Decorated:
    """How a zone is reached, alike for every command that looks into one."""
    options = [
        click.option(
            "--dns", "provider", type=Choice(sorted(PROVIDERS)), envvar="PROTOKUBE_DNS", show_envvar=True,
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
    """The zones that there are; sends no request yet. InvalidRequest with everything that is missing."""
    from protokube.providers import catalog

    kind = PROVIDERS.get(provider or "")
    match kind:
        case "route53":
            access = catalog.ZoneAccess(endpoint=endpoint_of(endpoint))
        case "rfc2136":
            access = _updated(zones, server, key_file)
        case "hosts":
            access = catalog.ZoneAccess(zones=named(zones), hosts_file=hosts_file)
        case _:
            raise InvalidRequest("no DNS provider given", hint=f"--dns {' | '.join(sorted(PROVIDERS))}")
    return catalog.zones(kind, replace(access, read_only=read_only))


def named(rules: tuple[str, ...]) -> list[str]:
    """The zones that rules name: a server or a file cannot be asked which it has."""
    from protokube.controllers.dns.decide.zonerules import parse_rules

    names = sorted({rule.name for rule in parse_rules(rules) if rule.name})
    if not names:
        raise InvalidRequest("no zone is named", hint="say each zone: --zone example.com")
    return names


def _updated(rules: tuple[str, ...], server: str | None, key_file: Path | None) -> ZoneAccess:
    from protokube.providers.catalog import ZoneAccess
    from protokube.providers.dns.keyfile import read_key

    given = {"--zone": any(rules), "--server": server, "--key-file": key_file}
    missing = [option for option in given if not given[option]]
    if missing or server is None or key_file is None:
        raise InvalidRequest(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing for rfc2136")
    return ZoneAccess(zones=named(rules), server=server_of(server), key=read_key(key_file))


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
    url = text or os.environ.get("AWS_ENDPOINT_URL")
    if not url:
        return None
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # what stands there is no port
        good = False
    if not good or re.search(r"\s", url):
        source = "--endpoint" if text else "AWS_ENDPOINT_URL"
        raise InvalidRequest(
            f"{source} {url!r} is not a place to send requests to", want="https://HOST or http://HOST:PORT"
        )
    return url
