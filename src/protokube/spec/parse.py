"""Parse files into a spec: find the documents, their kinds, and the values that the user set.

`apiVersion` distinguishes our own documents from those of the original. The latter are translated node by node before
they are checked, so every value keeps the line on which the user wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from protokube.errors import InvalidSpec, Problem, Where
from protokube.nearest import near
from protokube.spec import kops, version
from protokube.spec.cluster import Cluster
from protokube.spec.decode import Reading, Tree, decode, free_form
from protokube.spec.group import InstanceGroup
from protokube.spec.tree import Mapping, Node, Scalar, Sequence, read_documents

API_VERSION = "protokube.io/v1alpha1"
KINDS = ("Cluster", "InstanceGroup")
GROUPS = "instanceGroups"
CLUSTER_LABELS = ("protokube.io/cluster", "kops.k8s.io/cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The values that the user set, with the place of each; no defaults."""

    name: str
    cluster: Tree
    groups: dict[str, Tree]
    places: dict[str, Where]
    problems: tuple[Problem, ...] = ()
    """Problems found while parsing; `complete` adds those of the whole configuration, and raises InvalidSpec."""
    warnings: tuple[Problem, ...] = ()
    translated: bool = False
    """Whether a document of the original is among them."""
    rendered: dict[str, Tree] = field(default_factory=dict)
    """Flags and files that a complete configuration lists; by group name, "" for the cluster."""


def parse(texts: Iterable[tuple[str, str]]) -> Spec:
    """Parse one cluster from the documents of several files, given as (file name, text); raises on any problem."""
    spec = read(texts)
    if spec.problems:
        raise InvalidSpec(spec.problems)
    return spec


def read(texts: Iterable[tuple[str, str]]) -> Spec:
    """Like `parse`, but return the problems together with the rest, so that all can be reported at once.

    Raises InvalidSpec if a file is not YAML or there is not exactly one cluster: nothing more can be checked then.
    """
    reading = Reading()
    parser = _Parser(reading)
    for file, text in texts:
        parser.files.append(file)
        try:
            documents = read_documents(text, file)
        except InvalidSpec as error:
            reading.problems += error.problems
            parser.broken = True
            continue
        for document in documents:
            for each in unfold(document):
                parser.item(each, file)
    return parser.result()


def unfold(document: Mapping) -> Iterable[Node]:
    """A `kind: List` is the documents in it."""
    items = document.fields.get("items")
    if document.text("kind") == "List" and isinstance(items, Sequence):
        return items.items
    return [document]


class _Parser:
    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.files: list[str] = []
        self.clusters: list[tuple[str, Where]] = []
        self.cluster: Tree = {}
        self.groups: dict[str, Tree] = {}
        self.rendered: dict[str, Tree] = {}
        self.belongs: list[tuple[str, str, Where]] = []
        self.keys: list[str] = []
        self.translated = False
        self.broken = False

    def item(self, node: Node, file: str) -> None:
        if isinstance(node, Mapping):
            self.document(node, file)
        else:
            message = "a document must be a mapping with apiVersion, kind, metadata and spec"
            self.reading.problem("items", Where(file, node.line), message)

    def document(self, document: Mapping, file: str) -> None:
        here = Where(file, document.line)
        api, kind = document.text("apiVersion"), document.text("kind")
        theirs = api in kops.API_VERSIONS
        known = (*KINDS, *kops.OTHER_KINDS) if theirs else KINDS
        if api is None or kind is None:
            for name, value, example in (("apiVersion", api, API_VERSION), ("kind", kind, " or ".join(KINDS))):
                if value is None:
                    self.reading.problem(name, here, "is not given", f"{name}: {example}")
        elif api != API_VERSION and not theirs:
            want = f"use {API_VERSION} or {kops.API_VERSIONS[0]}"
            place = Where(file, document.lines["apiVersion"])
            self.reading.problem("apiVersion", place, f"unknown apiVersion {api!r}", want)
        elif kind not in known:
            hint = near(kind, known) or f"known are {', '.join(known)}"
            self.reading.problem("kind", Where(file, document.lines["kind"]), f"unknown kind {kind!r}", hint)
        else:
            self.known(document, kind, theirs, file)

    def known(self, document: Mapping, kind: str, theirs: bool, file: str) -> None:
        here = Where(file, document.line)
        self.translated |= theirs
        for name, line in document.lines.items():
            if name not in ("apiVersion", "kind", "metadata", "spec", "rendered", "status"):
                self.reading.problem(name, Where(file, line), "unknown field", near(name, ("metadata", "spec")))
        name = self.metadata(document, kind, file)
        spec = document.fields.get("spec", Mapping({}, {}, document.line))
        if kind == "SSHCredential":
            self.ssh_key(spec, here)
        elif kind == "Cluster":
            self.clusters.append((name, here))
            if theirs and isinstance(spec, Mapping):
                spec = kops.translate_cluster(spec, file, self.reading)
            self.cluster = decode(Cluster, spec, "", file, self.reading, theirs=theirs)
        elif name:
            path = f"{GROUPS}.{name}"
            if name in self.groups:
                first = self.reading.places[path]
                hint = "give one of the two another name"
                self.reading.problem(path, here, f"the name {name!r} is taken already, by {first}", hint)
            if theirs and isinstance(spec, Mapping):
                spec = kops.translate_group(spec, path, file, self.reading)
            self.reading.places[path] = here
            self.groups[name] = decode(InstanceGroup, spec, path, file, self.reading, theirs=theirs)
        rendered = document.fields.get("rendered")
        key, path = ("", "rendered") if kind == "Cluster" else (name, f"{GROUPS}.{name}.rendered")
        if isinstance(rendered, Mapping) and kind in KINDS:
            self.rendered[key] = free_form(rendered, path, file, self.reading)
        elif rendered and not (isinstance(rendered, Scalar) and rendered.is_null):
            self.reading.problem(
                path, Where(file, rendered.line), "expected a mapping", "delete it: `complete` shows it"
            )

    def ssh_key(self, spec: Node, here: Where) -> None:
        key = spec.text("publicKey") if isinstance(spec, Mapping) else None
        if key:
            self.keys.append(key.strip())
            self.reading.places.setdefault("sshPublicKeys", here)
        else:
            self.reading.problem("publicKey", here, "is not given", "the text of a public key, as in id_ed25519.pub")

    def metadata(self, document: Mapping, kind: str, file: str) -> str:
        """Return the name, and note the cluster that a group's label names."""
        metadata = document.fields.get("metadata")
        hint = "metadata: {name: dev.example.com}" if kind == "Cluster" else "metadata: {name: nodes}"
        if not isinstance(metadata, Mapping):
            self.reading.problem("metadata.name", Where(file, document.line), f"this {kind} has no name", hint)
            return ""
        for field_name, line in metadata.lines.items():
            if field_name not in ("name", "labels", "annotations", "creationTimestamp", "generation", "namespace"):
                close = near(field_name, ("name", "labels", "annotations"))
                self.reading.problem(f"metadata.{field_name}", Where(file, line), "unknown field", close)
        labels = metadata.fields.get("labels")
        name = metadata.text("name") or ""
        if isinstance(labels, Mapping):
            for label in CLUSTER_LABELS:
                if owner := labels.text(label):
                    path = f"{GROUPS}.{name}" if kind == "InstanceGroup" else f"metadata.labels.{label}"
                    self.belongs.append((path, owner, Where(file, labels.lines[label])))
        elif labels and not (isinstance(labels, Scalar) and labels.is_null):
            self.reading.problem("metadata.labels", Where(file, labels.line), "expected a mapping", "name: value")
        # the names of the original's SSH keys are not used
        if not name and kind != "SSHCredential":
            self.reading.problem("metadata.name", Where(file, metadata.line), f"this {kind} has no name", hint)
        elif kind == "Cluster":
            self.reading.places["metadata.name"] = Where(file, metadata.lines["name"])
        return name

    def result(self) -> Spec:
        reading = self.reading
        if len(self.clusters) > 1:
            (first, at), *others = self.clusters
            for name, where in others:
                hint = "put each cluster in files of its own"
                reading.problem("", where, f"a second Cluster, {name!r}; the first is {first!r} at {at}", hint)
        if not self.clusters and not reading.problems:
            hint = "start from examples/minimal.yaml: a name, a cloud and zones"
            place = Where(self.files[0], 1) if len(self.files) == 1 else None
            message = "there is no document of kind Cluster"
            reading.problems.append(Problem(path="", message=message, hint=hint, where=place))
        name = self.clusters[0][0] if self.clusters else ""
        for path, owner, where in self.belongs:
            if name and owner != name:
                hint = "change the label, or leave the group out of this cluster's files"
                reading.problem(
                    path, where, f"its label names the cluster {owner!r}, but the cluster is {name!r}", hint
                )
        if self.broken or len(self.clusters) != 1 or not name:
            raise InvalidSpec(reading.problems)
        if self.keys:
            self.cluster["sshPublicKeys"] = [*self.cluster.get("sshPublicKeys", []), *self.keys]
        if "kubernetesVersion" in self.cluster:
            self.cluster["kubernetesVersion"] = version.normal(self.cluster["kubernetesVersion"])
        return Spec(
            name=name,
            cluster=self.cluster,
            groups=self.groups,
            places=reading.places,
            problems=tuple(reading.problems),
            warnings=tuple(sorted(reading.warnings, key=lambda each: each.order)),
            translated=self.translated,
            rendered=self.rendered,
        )
