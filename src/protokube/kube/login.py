"""Address and credentials of the API server: from a kubeconfig, or from the service account of our pod.

Of the environment only the variables that Kubernetes itself sets count: no proxies, no other CAs. Credential files are
rotated while we run, so a Login names where to read them and does not hold their content.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
import tempfile
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from protokube.errors import InvalidRequest
from protokube.kube.credentials import PLUG_INS, Credentials, User
from protokube.kube.kubeconfig import find
from protokube.kube.pool import Pool

PLUG_IN_PATIENCE = 30.0
"""Seconds that a login plug-in may take: all requests wait for it."""
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
ENVIRONMENT = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
UNREADABLE = (msgspec.MsgspecError, OSError, ValueError, TypeError, AttributeError)
"""Errors that reading an invalid or truncated kubeconfig can raise."""
Stamp = tuple[tuple[str, int, int], ...]
T = TypeVar("T")


class _Context(msgspec.Struct):
    cluster: str
    user: str | None = None


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A kubeconfig and a context in it, or the folder of a service account."""

    kubeconfig: Path | None = None
    context: str | None = None
    account: Path = SERVICE_ACCOUNT
    plug_in_patience: float = PLUG_IN_PATIENCE

    def pool(self) -> tuple[Pool, Stamp]:
        """Connections with the credentials now in the files, and the stamp of those files."""
        cluster, user = self._of_account() if self.kubeconfig is None else self._of_file(self.kubeconfig)
        self._check(cluster, user)
        try:
            stamp = stamp_of(self._files(cluster, user))
            pool = Pool(
                cluster.server,
                self._trust(cluster, user) if cluster.server.startswith("https") else None,
                Credentials(user, self._path(user.token_file), patience=self.plug_in_patience),
            )
        except UNREADABLE as error:
            raise self._cannot(_first_line(error), "certificates and keys that belong together") from error
        return pool, stamp

    def _of_account(self) -> tuple[_Cluster, User]:
        token, authority = self.account / "token", self.account / "ca.crt"
        if missing := next((each for each in ENVIRONMENT if not os.environ.get(each)), ""):
            raise self._cannot(f"it has no {missing!r}", "a pod's environment")
        if not token.exists():
            raise self._cannot(f"there is no {token}", "a token")
        host, port = (os.environ[each] for each in ENVIRONMENT)
        server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        return _Cluster(server=server, certificate_authority=str(authority)), User(token_file=str(token))

    def _of_file(self, file: Path) -> tuple[_Cluster, User]:
        import yaml

        from protokube import fast_yaml

        try:
            tree = fast_yaml.load(file.read_text())
            clusters, users = _all(tree, "cluster", _Cluster), _all(tree, "user", User)
            contexts, name = _all(tree, "context", _Context), self.context or tree.get("current-context")
            if not name:
                raise ValueError("no current context is set and none is given")
            if name not in contexts:
                raise ValueError(f"context {name!r} not found")
            context = contexts[name]
            return clusters[context.cluster], users[context.user] if context.user else User()
        except KeyError as error:
            raise self._cannot(f"it has no {error.args[0]!r}", "a context with its cluster and its user") from error
        except (*UNREADABLE, yaml.YAMLError) as error:
            raise self._cannot(_first_line(error), "a kubeconfig") from error

    def _check(self, cluster: _Cluster, user: User) -> None:
        if not _host(cluster.server) or not (cluster.server.startswith("https://") or _is_here(cluster.server)):
            raise self._cannot(f"its server is {cluster.server or 'not set'}", "https://")
        if cluster.insecure_skip_tls_verify:
            raise self._cannot("it trusts any server (insecure-skip-tls-verify)", "certificate-authority")
        if user.exec and user.exec.api_version not in PLUG_INS:
            raise self._cannot(f"its plug-in speaks {user.exec.api_version}", " or ".join(PLUG_INS))
        if user.acts_as:
            raise self._cannot(f"its user acts as {user.acts_as}", "a user who acts as itself")
        if user.auth_provider and not (user.token or user.token_file or user.exec):
            raise self._cannot("its user logs in by an auth-provider", "a token, a plug-in (exec) or a certificate")
        for data in (cluster.certificate_authority_data, user.client_certificate_data, user.client_key_data):
            try:
                if data is not None and b"-----BEGIN " not in b64decode(data, validate=True):
                    raise self._cannot("something in it is no certificate and no key", "PEM, in base64")
            except ValueError as error:
                raise self._cannot("a certificate or key in it is not in base64", "PEM, in base64") from error

    def _files(self, cluster: _Cluster, user: User) -> Iterator[Path]:
        if self.kubeconfig is not None:
            yield self.kubeconfig
        for named in (cluster.certificate_authority, user.client_certificate, user.client_key, user.token_file):
            if path := self._path(named):
                yield path

    def _path(self, named: str | None) -> Path | None:
        """Relative to the kubeconfig, unless absolute."""
        folder = self.account if self.kubeconfig is None else self.kubeconfig.parent
        return folder / named if named else None

    def _trust(self, cluster: _Cluster, user: User) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the default one trusts CAs from the environment
        if authority := self._path(cluster.certificate_authority):
            context.load_verify_locations(authority)
        elif data := cluster.certificate_authority_data:
            context.load_verify_locations(cadata=b64decode(data).decode())
        else:
            known = ssl.get_default_verify_paths()
            context.load_verify_locations(_there(known.openssl_cafile), _there(known.openssl_capath))
        with ExitStack() as scratch:
            certificate = _as_file(scratch, user.client_certificate_data) or self._path(user.client_certificate)
            key = _as_file(scratch, user.client_key_data) or self._path(user.client_key)
            if certificate:
                context.load_cert_chain(certificate, key)
        return context

    def _cannot(self, saw: str, want: str) -> InvalidRequest:
        return InvalidRequest(f"{self.kubeconfig or self.account} cannot be used", saw=saw, want=want)


def find_login(kubeconfig: Path | None, context: str | None) -> Login:
    """The given kubeconfig or context; else the service account, if we run in a pod; else as kubectl does."""
    asked = kubeconfig is not None or context is not None
    if not asked and (SERVICE_ACCOUNT / "token").exists() and all(os.environ.get(each) for each in ENVIRONMENT):
        return Login()
    return Login(kubeconfig=find(kubeconfig), context=context)


def stamp_of(files: Iterator[Path] | Sequence[Path]) -> Stamp:
    """Detects that a file was changed or replaced; a file that is missing at the moment is skipped."""
    found = []
    for file in files:
        try:
            seen = file.stat()
        except OSError:
            continue
        found.append((str(file), seen.st_mtime_ns, seen.st_ino))
    return tuple(found)


def _all(tree: Mapping[str, Any], kind: str, of: type[T]) -> dict[str, T]:
    """By name, and all checked: what is wrong in a file is told before another context needs it."""
    return {each["name"]: msgspec.convert(each[kind], of) for each in tree.get(f"{kind}s") or ()}


def _as_file(scratch: ExitStack, data: str | None) -> Path | None:
    """Embedded data as a private file: TLS libraries read certificates of clients from files only."""
    if not data:
        return None
    file = scratch.enter_context(tempfile.NamedTemporaryFile(prefix="protokube-"))  # noqa: SIM115  # it has one
    file.write(b64decode(data))
    file.flush()
    return Path(file.name)


def _there(path: str) -> str | None:
    return path if Path(path).exists() else None


def _is_here(server: str) -> bool:
    """Whether the server is plain HTTP on this machine: `kubectl proxy`, for example."""
    host = _host(server)
    try:
        return server.startswith("http://") and (host == "localhost" or ipaddress.ip_address(host).is_loopback)
    except ValueError:
        return False


def _host(server: str) -> str:
    """Empty if the address names none, or is none."""
    try:
        return urlsplit(server).hostname or ""
    except ValueError:
        return ""


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
