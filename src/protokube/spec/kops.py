"""Translate documents of the original (`kops.k8s.io/v1alpha2`) into ours, before they are checked.

The hard part is to drop nothing silently: each of their fields is applied, or ignored with a warning because the
cluster is the same without it, or refused because the cluster would be a different one. `kops_rules.py` has the tables.
Nodes keep their lines, so a message about a translated value names the line that the user wrote.
"""

from __future__ import annotations

from protokube.errors import Where
from protokube.nearest import near
from protokube.spec.cluster import CLOUDS as OUR_CLOUDS
from protokube.spec.decode import Reading, join
from protokube.spec.kops_rules import CLUSTER, GROUP, Ignore, Refuse, Rename, Rule
from protokube.spec.network import PLUGINS
from protokube.spec.tree import FALSE, TRUE, Mapping, Node, Scalar, Sequence

API_VERSIONS = ("kops.k8s.io/v1alpha2", "kops/v1alpha2")
OTHER_KINDS = ("SSHCredential",)
THEIR_PLUGINS = {"kuberouter": "kube-router"}
CLOUDS = {"baremetal": "metal"}
ROLES = {"ControlPlane": "Master"}


def translate_cluster(node: Mapping, file: str, reading: Reading) -> Mapping:
    """The spec of their Cluster as a spec of ours."""
    walker = _Walker(CLUSTER, file, reading)
    spec = walker.mapping(node, "", "")
    walker.word(spec, "cloud", CLOUDS)
    cloud = spec.text("cloud")
    if cloud is not None and cloud not in OUR_CLOUDS:
        message = f"cloudProvider {cloud!r}; supported are {', '.join(OUR_CLOUDS)}"
        walker.refuse("cloud", spec.lines["cloud"], message)
        _drop(spec, "cloud")
    if "configStore" in spec.fields and "configBase" not in spec.fields:
        spec.fields["configBase"], spec.lines["configBase"] = spec.fields["configStore"], spec.lines["configStore"]
    _drop(spec, "configStore")
    walker.networking(spec)
    walker.authorization(spec)
    walker.dns_controller(spec)
    walker.roles(spec)
    etcd = spec.fields.get("etcdClusters")
    for each in etcd.items if isinstance(etcd, Sequence) else ():
        if isinstance(each, Mapping):
            walker.etcd_manager(each)
    return spec


def translate_group(node: Mapping, path: str, file: str, reading: Reading) -> Mapping:
    """The spec of their InstanceGroup as a spec of ours."""
    walker = _Walker(GROUP, file, reading)
    spec = walker.mapping(node, path, "")
    walker.word(spec, "role", ROLES)
    walker.roles(spec)
    manager = spec.text("manager")
    if manager is not None and manager != "CloudGroup":
        walker.refuse(join(path, "manager"), spec.lines["manager"], f"{manager!r}; use CloudGroup")
    _drop(spec, "manager")
    return spec


class _Walker:
    """Applies one table of rules to a tree, and then the few translations that are more than a rename."""

    def __init__(self, rules: dict[str, Rule], file: str, reading: Reading) -> None:
        self.rules, self.file, self.reading = rules, file, reading

    def ignore(self, path: str, line: int, why: str) -> None:
        self.reading.warn(path, Where(self.file, line), f"ignored: {why}")

    def refuse(self, path: str, line: int, why: str) -> None:
        hint = "docs/kops-fields.md lists what happens to each field"
        self.reading.problem(path, Where(self.file, line), f"not supported: {why}", hint)

    def mapping(self, node: Mapping, path: str, key: str) -> Mapping:
        """`path` is for messages; `key` selects the rule: the same path without the indexes of list items."""
        fields: dict[str, Node] = {}
        lines: dict[str, int] = {}
        for name, child in node.fields.items():
            line = node.lines[name]
            rule = self.rules.get(join(key, name))
            if _is_null(child) and rule is not None:
                continue
            match rule:
                case Ignore(why, unless):
                    if not (unless and isinstance(child, Scalar) and child.text == unless):
                        self.ignore(join(path, name), line, why)
                    continue
                case Refuse(why):
                    self.refuse(join(path, name), line, why)
                    continue
            new = rule.to if isinstance(rule, Rename) else name
            if new in fields:
                message = f"is the same setting as `{new}`, which is also given"
                self.reading.problem(join(path, name), Where(self.file, line), message, "keep one of the two")
            fields[new] = self.child(child, join(path, name), join(key, name))
            lines[new] = line
        return Mapping(fields, lines, node.line)

    def child(self, node: Node, path: str, key: str) -> Node:
        if isinstance(node, Mapping):
            return self.mapping(node, path, key)
        if isinstance(node, Sequence):
            items = (self.child(item, f"{path}[{index}]", f"{key}[]") for index, item in enumerate(node.items))
            return Sequence(tuple(items), node.line)
        return node

    def word(self, spec: Mapping, name: str, ours: dict[str, str]) -> None:
        value = spec.fields.get(name)
        if isinstance(value, Scalar) and value.text in ours:
            spec.fields[name] = Scalar(ours[value.text], value.plain, value.line)

    def roles(self, spec: Mapping) -> None:
        """Translate the roles of files and hooks."""
        for name in ("fileAssets", "hooks"):
            listed = spec.fields.get(name)
            for each in listed.items if isinstance(listed, Sequence) else ():
                value = each.fields.get("roles") if isinstance(each, Mapping) else None
                if isinstance(each, Mapping) and isinstance(value, Sequence):
                    each.fields["roles"] = Sequence(tuple(map(_our_role, value.items)), value.line)

    def networking(self, spec: Mapping) -> None:
        """`calico: {mtu: 1400}` becomes `plugin: calico, options: {mtu: 1400}`."""
        theirs = spec.fields.get("networking")
        if not isinstance(theirs, Mapping) or "plugin" in theirs.fields:
            return
        chosen = {name: node for name, node in theirs.fields.items() if not _is_null(node)}
        fields: dict[str, Node] = {}
        lines: dict[str, int] = {}
        for name, node in chosen.items():
            line, plugin = theirs.lines[name], THEIR_PLUGINS.get(name, name)
            if plugin not in PLUGINS:
                where = Where(self.file, line)
                hint = near(name, PLUGINS) or f"known are {', '.join(PLUGINS)}"
                self.reading.problem(f"networking.{name}", where, "unknown network plugin", hint)
            elif "plugin" in fields:
                first = fields["plugin"]
                assert isinstance(first, Scalar)
                where = Where(self.file, line)
                message = f"a second network plugin; {first.text} is set already"
                self.reading.problem(f"networking.{name}", where, message, "keep one of the two")
            else:
                fields["plugin"], lines["plugin"] = Scalar(plugin, True, line), line
                if isinstance(node, Mapping) and node.fields:
                    fields["options"], lines["options"] = node, line
        if fields:
            spec.fields["networking"] = Mapping(fields, lines, theirs.line)
        else:
            _drop(spec, "networking")

    def authorization(self, spec: Mapping) -> None:
        theirs = spec.fields.get("authorization")
        if not isinstance(theirs, Mapping):
            return
        words = {"rbac": "RBAC", "alwaysAllow": "AlwaysAllow"}
        line = spec.lines["authorization"]
        _drop(spec, "authorization")
        for name in (each for each, node in theirs.fields.items() if not _is_null(node)):
            path, where = f"authorization.{name}", Where(self.file, theirs.lines[name])
            if name not in words:
                self.reading.problem(path, where, "unknown field", near(name, words))
            elif chosen := spec.text("authorization"):
                self.reading.problem(path, where, f"a second mode; {chosen} is set already", "keep one of the two")
            else:
                spec.fields["authorization"] = Scalar(words[name], True, where.line)
                spec.lines["authorization"] = line

    def dns_controller(self, spec: Mapping) -> None:
        """`externalDns.disable: true` becomes `dnsController.enabled: false`."""
        theirs = spec.fields.get("externalDns")
        if not isinstance(theirs, Mapping):
            return
        disable = theirs.fields.get("disable")
        if isinstance(disable, Scalar):
            opposite = {**dict.fromkeys(FALSE, "true"), **dict.fromkeys(TRUE, "false")}
            theirs.fields["enabled"] = Scalar(opposite.get(disable.text, disable.text), disable.plain, disable.line)
            theirs.lines["enabled"] = disable.line
            _drop(theirs, "disable")
        spec.fields["dnsController"], spec.lines["dnsController"] = theirs, spec.lines["externalDns"]
        _drop(spec, "externalDns")

    def etcd_manager(self, cluster: Mapping) -> None:
        """Move the backup settings of etcd-manager to `backups`."""
        manager = cluster.fields.get("manager")
        if isinstance(manager, Mapping):
            backups = cluster.fields.setdefault("backups", Mapping({}, {}, manager.line))
            cluster.lines.setdefault("backups", manager.line)
            for theirs, ours in (("backupInterval", "interval"), ("backupRetentionDays", "retentionDays")):
                if theirs in manager.fields and isinstance(backups, Mapping):
                    backups.fields[ours], backups.lines[ours] = manager.fields[theirs], manager.lines[theirs]
                    _drop(manager, theirs)
            for name, line in manager.lines.items():
                known = ("backupInterval", "backupRetentionDays", "env", "image", "logLevel")
                path = f"etcdClusters.{cluster.text('name')}.manager.{name}"
                self.reading.warn(path, Where(self.file, line), "ignored: unknown field", near(name, known))
        _drop(cluster, "manager")


def _our_role(node: Node) -> Node:
    if isinstance(node, Scalar) and node.text in ROLES:
        return Scalar(ROLES[node.text], node.plain, node.line)
    return node


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.is_null


def _drop(node: Mapping, name: str) -> None:
    node.fields.pop(name, None)
    node.lines.pop(name, None)
