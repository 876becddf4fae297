"""etcd's own configuration file, one for each member.

Once etcd reads a file it ignores every flag, so everything is in the file, and the environment names the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from protokube.config.controlplane import CONFIG_DIRECTORY, EVERYWHERE
from protokube.config.draft import Draft, Origin
from protokube.config.flags import flag_table
from protokube.config.pki import member_dns_name, member_name
from protokube.config.places import DIRECTORY
from protokube.config.render.forms import words
from protokube.config.render.settings import put
from protokube.nearest import near
from protokube.spec.decode import Tree
from protokube.spec.fields import duration
from protokube.spec.version import Version, parse

SECTIONS = {
    "client-cert-auth": "client-transport-security.client-cert-auth",
    "cert-file": "client-transport-security.cert-file",
    "key-file": "client-transport-security.key-file",
    "trusted-ca-file": "client-transport-security.trusted-ca-file",
    "auto-tls": "client-transport-security.auto-tls",
    "client-cert-file": "client-transport-security.client-cert-file",
    "client-key-file": "client-transport-security.client-key-file",
    "client-cert-allowed-hostname": "client-transport-security.allowed-hostname",
    "peer-client-cert-auth": "peer-transport-security.client-cert-auth",
    "peer-cert-file": "peer-transport-security.cert-file",
    "peer-key-file": "peer-transport-security.key-file",
    "peer-trusted-ca-file": "peer-transport-security.trusted-ca-file",
    "peer-auto-tls": "peer-transport-security.auto-tls",
    "peer-client-cert-file": "peer-transport-security.client-cert-file",
    "peer-client-key-file": "peer-transport-security.client-key-file",
    "peer-cert-allowed-cn": "peer-transport-security.allowed-cn",
    "peer-cert-allowed-hostname": "peer-transport-security.allowed-hostname",
    "socket-reuse-address": "socket-options.reuse-address",
    "socket-reuse-port": "socket-options.reuse-port",
    "peer-skip-client-san-verification": "peer-transport-security.skip-client-san-verification",
    "experimental-snapshot-catchup-entries": "experimental-snapshot-catch-up-entries",
}
"""Entries of etcd's file that are not named like the flag."""
SINCE = dict.fromkeys(
    ("client-cert-allowed-hostname", "peer-cert-allowed-cn", "peer-cert-allowed-hostname"), Version(3, 5, 15)
)
"""The etcd version since which the file has the entry; earlier ones have only the flag."""
FIELDS = {
    "data-dir": "dataDir", "election-timeout": "leaderElectionTimeout", "heartbeat-interval": "heartbeatInterval",
    "initial-cluster-token": "token", "listen-client-urls": "clientPort", "listen-metrics-urls": "metricsPort",
    "listen-peer-urls": "peerPort", "log-level": "logLevel", "quota-backend-bytes": "quotaBackendBytes",
}  # fmt: skip
FLAG_ONLY = frozenset({
    "client-crl-file", "peer-crl-file", "experimental-peer-skip-client-san-verification", "raft-read-timeout",
    "raft-write-timeout", "discovery-cacert", "discovery-cert", "discovery-dial-timeout", "discovery-endpoints",
    "discovery-fallback", "discovery-insecure-skip-tls-verify", "discovery-insecure-transport",
    "discovery-keepalive-time", "discovery-keepalive-timeout", "discovery-key", "discovery-password",
    "discovery-request-timeout", "discovery-token", "discovery-user", "proxy", "proxy-dial-timeout",
    "proxy-failure-wait", "proxy-read-timeout", "proxy-refresh-interval", "proxy-write-timeout",
})  # fmt: skip
"""Flags that the file does not have; etcd silently ignores such an entry."""
LISTS = frozenset({"cipher-suites", "log-outputs", *SINCE})
DURATIONS = frozenset({
    "backend-batch-interval", "compact-hash-check-time", "compaction-sleep-interval", "corrupt-check-time",
    "downgrade-check-time", "experimental-compact-hash-check-time", "experimental-compaction-sleep-interval",
    "experimental-corrupt-check-time", "experimental-downgrade-check-time", "experimental-warning-apply-duration",
    "experimental-warning-unary-request-duration", "experimental-watch-progress-notify-interval",
    "grpc-keepalive-interval", "grpc-keepalive-min-time", "grpc-keepalive-timeout", "warning-apply-duration",
    "warning-unary-request-duration", "watch-progress-notify-interval",
})  # fmt: skip
"""Durations: text in a flag, but a number of nanoseconds in the file, where etcd does not start with text."""
PROGRESS, PROGRESS_EVERY = "watch-progress-notify-interval", 5 * 10**9
"""How often etcd sends progress notifications on idle watches. API servers send bookmarks to watchers of a quiet kind
only after such a notification: with etcd's default of 10 minutes these cannot tell an idle watch from a broken one."""
UNITS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1e3, "m": 60e3, "h": 3600e3}


def etcd_members(cluster: Draft, key: str, etcd: Draft) -> Tree:
    """For each member its file, and the environment variable that names the file."""
    internal, port = cluster.get("masterInternalName"), etcd.get("peerPort")
    members = list(etcd.get("members"))
    hosts = {short: member_dns_name(internal, key, short) for short in members}
    peers = ",".join(f"{member_name(key, short)}=https://{host}:{port}" for short, host in sorted(hosts.items()))
    extra, env = dict(_extra(etcd)), dict(_environment(etcd))
    rendered: Tree = {}
    for short in members:
        path = f"{CONFIG_DIRECTORY}/{'etcd' if key == 'main' else f'etcd-{key}'}.yaml"
        content = _file(etcd, key, short, hosts[short], peers)
        for flag, value in extra.items():
            content.pop(flag.removeprefix("experimental-"), None)  # our value under the newer name: etcd refuses both
            put(content, SECTIONS.get(flag, flag), value)
        rendered[short] = {"env": {"ETCD_CONFIG_FILE": path, **env}, "files": {path: content}}
        of = (etcd.at(f"members.{short}"), etcd.path)
        etcd.ledger.origins[f"etcd.{key}.{short}"] = Origin("derived from the member and its etcd cluster", of)
    return rendered


def _file(etcd: Draft, key: str, short: str, host: str, peers: str) -> Tree:
    client, peer = etcd.get("clientPort"), etcd.get("peerPort")
    content: dict[str, Any] = {
        "name": member_name(key, short),
        "data-dir": etcd.get("dataDir"),
        "listen-client-urls": f"https://{EVERYWHERE}:{client}",
        "advertise-client-urls": f"https://{host}:{client}",
        "listen-peer-urls": f"https://{EVERYWHERE}:{peer}",
        "initial-advertise-peer-urls": f"https://{host}:{peer}",
        "listen-metrics-urls": f"http://127.0.0.1:{etcd.get('metricsPort')}",
        "initial-cluster": peers,
        "initial-cluster-token": etcd.get("token"),
        "initial-cluster-state": "new",
        "quota-backend-bytes": etcd.get("quotaBackendBytes"),
        "pre-vote": True,
        "enable-grpc-gateway": True,  # off by default if etcd reads a file; the agent uses the gateway
        "logger": "zap",
        "log-outputs": ["stderr"],
        "client-transport-security": _tls("etcd-client-ca", f"{member_name(key, short)}-server"),
        "peer-transport-security": _tls("etcd-peer-ca", f"{member_name(key, short)}-peer"),
    }
    version = parse(etcd.get("version")) or Version(3, 6)
    content[PROGRESS if version >= (3, 6) else f"experimental-{PROGRESS}"] = PROGRESS_EVERY
    for field, name in (("heartbeatInterval", "heartbeat-interval"), ("leaderElectionTimeout", "election-timeout")):
        if etcd.has(field):
            content[name] = round(milliseconds(etcd.get(field)))
    if etcd.has("logLevel"):
        content["log-level"] = etcd.get("logLevel")
    return content


def _tls(authority: str, certificate: str) -> Tree:
    return {
        "cert-file": f"{DIRECTORY}/{certificate}.crt",
        "key-file": f"{DIRECTORY}/{certificate}.key",
        "client-cert-auth": True,
        "trusted-ca-file": f"{DIRECTORY}/{authority}.crt",
    }


def _extra(etcd: Draft) -> list[tuple[str, Any]]:
    version = parse(etcd.get("version")) or Version(3, 5)
    table = flag_table("etcd", version.series)
    given = {name.removeprefix("--") for name in etcd.get("extraFlags") or {}}
    found = []
    for name, value in (etcd.get("extraFlags") or {}).items():
        flag = name.removeprefix("--")
        path = etcd.at(f"extraFlags.{name}")
        if not table.lists(flag):
            etcd.ledger.unfit(path, f"etcd {version.short} has no flag --{flag}", near(flag, table.sure))
        elif flag in FIELDS:
            etcd.ledger.problem(path, "there is a field for it", f"set {etcd.at(FIELDS[flag])}")
        elif flag in FLAG_ONLY or version < SINCE.get(flag, Version(0, 0)):
            message = f"etcd {version} has --{flag} only as a flag, and ignores flags if it reads a file"
            etcd.ledger.unfit(path, message, "remove it from the spec")
        elif flag in DURATIONS and duration(str(value)):
            etcd.ledger.problem(path, str(duration(str(value))))
        elif (newer := flag.removeprefix("experimental-")) != flag and newer in given:
            etcd.ledger.problem(path, f"is the old name of --{newer}: etcd does not start with both", "remove it")
        else:
            found.append((flag, _entry(flag, value)))
    return found


def _entry(flag: str, value: Any) -> Any:
    """The value of a flag in the form that the file needs."""
    if flag in DURATIONS:
        return round(milliseconds(str(value)) * 1e6)
    return words(value) if flag in LISTS and isinstance(value, str) else value


def _environment(etcd: Draft) -> Iterator[tuple[str, str]]:
    for index, each in enumerate(etcd.get("env") or []):
        path, name = etcd.at(f"env[{index}]"), each.get("name")
        if not name:
            etcd.ledger.problem(path, "has no `name`", "", etcd.at("env"))
        elif str(name).startswith("ETCD_"):
            hint = "set the field of that name, or `extraFlags`"
            etcd.ledger.problem(path, f"{name} would be ignored: etcd reads its file only", hint, etcd.at("env"))
        else:
            yield str(name), str(each.get("value", ""))


def milliseconds(text: str) -> float:
    """A duration in milliseconds."""
    if text[:1] in ("-", "+"):
        return milliseconds(text[1:]) * (-1 if text[0] == "-" else 1)
    total, digits, unit = 0.0, "", ""
    for sign in f"{text} ":
        if sign.isdigit() or sign in ". ":
            if unit:
                total += float(digits) * UNITS[unit]
                digits, unit = "", ""
            digits += sign
        else:
            unit += sign
    return total
