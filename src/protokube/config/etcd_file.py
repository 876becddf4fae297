"""etcd's own configuration file, one for each member.

Once etcd reads a file it ignores every flag, so everything is in the file, and the environment names the file.
"""

from __future__ import annotations

from typing import Any

from protokube.config.controlplane import CONFIG_DIRECTORY, EVERYWHERE
from protokube.config.draft import Draft, Origin
from protokube.config.flags import flag_table
from protokube.config.pki import DIRECTORY, member_dns_name, member_name
from protokube.config.render import put
from protokube.spec.decode import Tree, near
from protokube.spec.version import Version, parse

SECTIONS = {
    "client-cert-auth": "client-transport-security.client-cert-auth",
    "cert-file": "client-transport-security.cert-file",
    "key-file": "client-transport-security.key-file",
    "trusted-ca-file": "client-transport-security.trusted-ca-file",
    "client-crl-file": "client-transport-security.crl-file",
    "client-cert-allowed-hostname": "client-transport-security.client-cert-allowed-hostname",
    "peer-client-cert-auth": "peer-transport-security.client-cert-auth",
    "peer-cert-file": "peer-transport-security.cert-file",
    "peer-key-file": "peer-transport-security.key-file",
    "peer-trusted-ca-file": "peer-transport-security.trusted-ca-file",
    "peer-crl-file": "peer-transport-security.crl-file",
    "peer-cert-allowed-cn": "peer-transport-security.allowed-cn",
    "peer-cert-allowed-hostname": "peer-transport-security.allowed-hostname",
}
"""Where etcd's file has another name for a flag than the flag's own."""
UNITS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1e3, "m": 60e3, "h": 3600e3}


def etcd_members(cluster: Draft, key: str, etcd: Draft) -> Tree:
    """For each member its file, and the environment that names it."""
    internal, port = cluster.get("masterInternalName"), etcd.get("peerPort")
    members = list(etcd.get("members"))
    hosts = {short: member_dns_name(internal, key, short) for short in members}
    peers = ",".join(f"{member_name(key, short)}=https://{host}:{port}" for short, host in sorted(hosts.items()))
    extra = dict(_extra(etcd))
    told: Tree = {}
    for short in members:
        path = f"{CONFIG_DIRECTORY}/{'etcd' if key == 'main' else f'etcd-{key}'}.yaml"
        content = _file(etcd, key, short, hosts[short], peers)
        for flag, value in extra.items():
            put(content, SECTIONS.get(flag, flag), value)
        env = {"ETCD_CONFIG_FILE": path, **{each["name"]: each.get("value", "") for each in etcd.get("env") or []}}
        told[short] = {"env": env, "files": {path: content}}
        of = (etcd.at(f"members.{short}"), etcd.path)
        etcd.ledger.origins[f"etcd.{key}.{short}"] = Origin("follows from the member and its cluster", of)
    return told


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
        "logger": "zap",
        "log-outputs": ["stderr"],
        "client-transport-security": _tls("etcd-client-ca", f"{member_name(key, short)}-server"),
        "peer-transport-security": _tls("etcd-peer-ca", f"{member_name(key, short)}-peer"),
    }
    for field, name in (("heartbeatInterval", "heartbeat-interval"), ("leaderElectionTimeout", "election-timeout")):
        if etcd.has(field):
            content[name] = milliseconds(etcd.get(field))
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
    found = []
    for name, value in (etcd.get("extraFlags") or {}).items():
        flag = name.removeprefix("--")
        if table.lists(flag):
            found.append((flag, value))
        else:
            path = etcd.at(f"extraFlags.{name}")
            etcd.ledger.unfit(path, f"etcd {version.short} has no flag --{flag}", near(flag, table.sure))
    return found


def milliseconds(text: str) -> int:
    """A duration as etcd counts it."""
    total, digits, unit = 0.0, "", ""
    for sign in f"{text} ":
        if sign.isdigit() or sign in ". ":
            if unit:
                total += float(digits) * UNITS[unit]
                digits, unit = "", ""
            digits += sign
        else:
            unit += sign
    return round(total)
