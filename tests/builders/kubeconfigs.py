"""Kubeconfig files as users have them, and a cluster's access to merge into them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any

from protokube import fast_yaml
from protokube.local.contexts.merging import OPERATOR, Access
from protokube.local.contexts.values import BODY, EXTENSION, Mark, Owner

CONFIG = "/home/jane/.kube/config"


def an_owner(cluster: str = "dev") -> Owner:
    return Owner(machine="m1", state=f"/state/{cluster}")


def an_access(cluster: str = "dev", *, owner: Owner | None = None, user: str = OPERATOR, port: int = 6443) -> Access:
    return Access(
        cluster=cluster, mark=Mark(owner=owner or an_owner(cluster), user=user), server=f"https://127.0.0.1:{port}",
        ca=encoded(f"ca of {cluster}"), certificate=encoded(f"certificate of {cluster}"),
        key=encoded(f"key of {cluster}"),
    )  # fmt: skip


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def a_tree(*names: str, current: str | None = None) -> dict[str, Any]:
    """A context of these names each, with a cluster and a user of its own."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example.com"}} for name in names],
        "users": [{"name": f"{name}-user", "user": {"token": name}} for name in names],
        "contexts": [{"name": name, "context": {"cluster": name, "user": f"{name}-user"}} for name in names],
        **({} if current is None else {"current-context": current}),
    }


def a_kubeconfig(*names: str, current: str | None = None) -> bytes:
    return fast_yaml.dump(a_tree(*names, current=current)).encode()


def is_ours(section: str, entry: dict[str, Any]) -> bool:
    return any(each["name"] == EXTENSION for each in entry[BODY[section]].get("extensions", ()))


def entries_of_others(texts: Iterable[bytes | None]) -> list[Any]:
    """By file and section, in their order."""
    trees = [fast_yaml.load(text or b"") or {} for text in texts]
    return [
        [each for each in tree.get(section) or () if not is_ours(section, each)] for tree in trees for section in BODY
    ]


def marks(texts: Iterable[bytes | None]) -> int:
    return sum(text.count(EXTENSION.encode()) for text in texts if text)
