"""Open an API server from a kubeconfig.

Certificates that are embedded in the file are written to a private temporary folder while the client is open: TLS
libraries read files.
"""

from __future__ import annotations

import os
import tempfile
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from protokube.errors import InvalidRequest
from protokube.kube.client import KubeApi

VARIABLE = "KUBECONFIG"
HOME = "~/.kube/config"


def find(asked: Path | None) -> Path:
    """The given file, the first existing file in KUBECONFIG, or the one in the home directory."""
    named = [Path(each).expanduser() for each in os.environ.get(VARIABLE, "").split(os.pathsep) if each]
    there = [each for each in named if each.exists()]
    found = asked or next(iter([*there, *named]), Path(HOME).expanduser())
    if not found.exists():
        raise InvalidRequest(f"there is no kubeconfig {found}", hint="name one by --kubeconfig or KUBECONFIG")
    return found


@contextmanager
def opened(path: Path) -> Iterator[KubeApi]:
    """The API server of the file's current context."""
    with opened_text(_read(path), path) as api:
        yield api


@contextmanager
def opened_text(text: str, path: Path) -> Iterator[KubeApi]:
    """The same with a kubeconfig that need not be a file; `path` is its name in errors, and where it would be."""
    cluster, user = _current(_parsed(text, path), path)
    server = str(cluster.get("server", ""))
    if not server.startswith("https://"):
        raise _cannot(path, f"its server is {server or 'not set'}", "https://")
    if cluster.get("insecure-skip-tls-verify"):
        raise _cannot(path, "it trusts any server (insecure-skip-tls-verify)", "certificate-authority")
    if strange := {"exec", "auth-provider", "username"} & user.keys():
        raise _cannot(path, f"its user logs in by {', '.join(sorted(strange))}", "a certificate or a token")
    with tempfile.TemporaryDirectory(prefix="protokube-") as scratch:
        files = Files(path, Path(scratch))
        ca = files.take(cluster, "certificate-authority")
        if ca is None:
            raise _cannot(path, "it has no certificate authority", "certificate-authority")
        api = KubeApi(
            server,
            ca=ca,
            certificate=files.take(user, "client-certificate"),
            key=files.take(user, "client-key"),
            token=_token(user, path),
        )
        try:
            yield api
        finally:
            api.close()


class Files:
    """The credentials of a kubeconfig, referenced or embedded, as files."""

    def __init__(self, kubeconfig: Path, scratch: Path) -> None:
        self._kubeconfig, self._scratch = kubeconfig, scratch

    def take(self, section: Mapping[str, Any], field: str) -> Path | None:
        """The file for a field; embedded data wins over a path, as in kubectl."""
        if data := section.get(f"{field}-data"):
            place = self._scratch / field
            try:
                content = b64decode(data, validate=True)
            except (ValueError, TypeError) as error:
                raise _cannot(self._kubeconfig, f"its {field}-data is not base64", "the file, in base64") from error
            with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
            return place
        if named := section.get(field):
            found = self._kubeconfig.parent / str(named)  # relative to the kubeconfig, unless absolute
            if not found.exists():
                raise _cannot(self._kubeconfig, f"its {field} is missing", str(found))
            return found
        return None


def _token(user: Mapping[str, Any], path: Path) -> str:
    if token := user.get("token"):
        return str(token)
    if named := user.get("tokenFile"):
        try:
            return (path.parent / str(named)).read_text().strip()
        except OSError as error:
            raise _cannot(path, f"its tokenFile cannot be read: {error.strerror}", str(named)) from error
    return ""


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise InvalidRequest(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _no_kubeconfig(path, str(error)) from error


def _parsed(text: str, path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _no_kubeconfig(path, str(error)) from error
    if not isinstance(tree, Mapping) or tree.get("kind", "Config") != "Config":
        raise InvalidRequest(f"{path} is no kubeconfig", want="kind: Config")
    return tree


def _no_kubeconfig(path: Path, saw: str) -> InvalidRequest:
    return InvalidRequest(f"{path} is no kubeconfig", saw=saw.splitlines()[0])


def _current(tree: Mapping[str, Any], path: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    context = _named(tree, "contexts", "context", tree.get("current-context"), path)
    cluster = _named(tree, "clusters", "cluster", context.get("cluster"), path)
    return cluster, _named(tree, "users", "user", context.get("user"), path)


def _named(tree: Mapping[str, Any], listed: str, field: str, name: Any, path: Path) -> Mapping[str, Any]:
    for each in tree.get(listed) or ():
        if isinstance(each, Mapping) and each.get("name") == name and isinstance(each.get(field), Mapping):
            found: Mapping[str, Any] = each[field]
            return found
    raise _cannot(path, f"it has no {field} {name!r}", f"one of {listed}")


def _cannot(path: Path, saw: str, want: str) -> InvalidRequest:
    return InvalidRequest(f"{path} cannot be used", saw=saw, want=want)
