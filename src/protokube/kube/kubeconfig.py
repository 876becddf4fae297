"""An API server by a kubeconfig: the file by which people reach their cluster.

Certificates that are in the file itself are laid into a folder that nobody else can read, for as long as it takes: TLS
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
    """The one asked for, the first there is of those that KUBECONFIG names, or the one in the home directory."""
    named = [Path(each).expanduser() for each in os.environ.get(VARIABLE, "").split(os.pathsep) if each]
    there = [each for each in named if each.exists()]
    found = asked or next(iter([*there, *named]), Path(HOME).expanduser())
    if not found.exists():
        raise InvalidRequest(f"there is no kubeconfig {found}", hint="name one by --kubeconfig or KUBECONFIG")
    return found


@contextmanager
def opened(path: Path) -> Iterator[KubeApi]:
    """The API server that the file's current context leads to."""
    cluster, user = _current(_read(path), path)
    server = str(cluster.get("server", ""))
    if not server.startswith("https://"):
        raise _cannot(path, f"its server is {server or 'not said'}", "https://")
    if cluster.get("insecure-skip-tls-verify"):
        raise _cannot(path, "it trusts anybody (insecure-skip-tls-verify)", "certificate-authority")
    if strange := {"exec", "auth-provider", "username"} & user.keys():
        raise _cannot(path, f"its user logs in by {', '.join(sorted(strange))}", "a certificate or a token")
    with tempfile.TemporaryDirectory(prefix="protokube-") as scratch:
        files = Files(path, Path(scratch))
        ca = files.take(cluster, "certificate-authority")
        if ca is None:
            raise _cannot(path, "it does not say whom to trust", "certificate-authority")
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
    """What a kubeconfig names or holds, as files."""

    def __init__(self, kubeconfig: Path, scratch: Path) -> None:
        self._kubeconfig, self._scratch = kubeconfig, scratch

    def take(self, told: Mapping[str, Any], field: str) -> Path | None:
        """Data wins over a name, as for everybody who reads these files."""
        if data := told.get(f"{field}-data"):
            place = self._scratch / field
            try:
                content = b64decode(data, validate=True)
            except (ValueError, TypeError) as error:
                raise _cannot(self._kubeconfig, f"its {field}-data is not base64", "the file, in base64") from error
            with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
            return place
        if named := told.get(field):
            found = self._kubeconfig.parent / str(named)  # beside the kubeconfig, unless it says from the root
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


def _read(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        tree = yaml.safe_load(path.read_text())
    except OSError as error:
        raise InvalidRequest(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path} is no kubeconfig", saw=str(error).splitlines()[0]) from error
    if not isinstance(tree, Mapping) or tree.get("kind", "Config") != "Config":
        raise InvalidRequest(f"{path} is no kubeconfig", want="kind: Config")
    return tree


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
