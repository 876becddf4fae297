"""Address and credentials of the API server: from a kubeconfig, or from the service account of our pod.

Of the environment only the variables that Kubernetes itself sets count: no proxies, no other CAs. Credential files are
rotated while we run, so a Login names where to read them and does not hold their content.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import os
import ssl
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import msgspec
import yaml
from lightkube.config.client_adapter import user_auth, verify_cluster
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import NameValue, User
from lightkube.core.exceptions import ConfigError

from protokube.errors import InvalidRequest
from protokube.kube.client import JSON
from protokube.kube.kubeconfig import find

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
ENVIRONMENT = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
KEEP_IDLE = 60.0
"""Seconds for which an idle connection stays open: longer than the interval between two lease renewals."""
UNREADABLE = (ConfigError, msgspec.MsgspecError, yaml.YAMLError, OSError, ValueError, TypeError, AttributeError)
"""Errors that reading an invalid or truncated kubeconfig can raise."""
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Passed for plain HTTP, where it is not used: the default would load the system's CAs, which is slow."""
PLUG_INS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
Stamp = tuple[tuple[str, int, int], ...]

logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs every request at level INFO


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A kubeconfig and a context in it, or the folder of a service account."""

    kubeconfig: Path | None = None
    context: str | None = None
    account: Path = SERVICE_ACCOUNT

    def client(self, patience: float) -> tuple[httpx2.Client, Stamp]:
        """An HTTP client with the credentials now in the files, and the stamp of those files."""
        found = self._read()
        user = self._plug_in(found.user or User())
        self._check_data(found, user)
        try:
            if user.token_file:
                user = msgspec.structs.replace(user, token_file=str(found.abs_file(user.token_file)))
            stamp = stamp_of(self._files(found, user))
            client = httpx2.Client(
                base_url=(server := self._server(found)),
                verify=_trust(found, user) if server.startswith("https") else NO_TLS,
                auth=user_auth(user),
                trust_env=False,
                timeout=patience,
                limits=httpx2.Limits(max_connections=None, keepalive_expiry=KEEP_IDLE),
                headers={"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": "protokube"},
            )
        except UNREADABLE as error:
            raise self._cannot(_first_line(error), "certificates and keys that belong together") from error
        return client, stamp

    def _read(self) -> SingleConfig:
        try:
            if self.kubeconfig is None:
                config = KubeConfig.from_service_account(self.account)
            else:
                config = KubeConfig.from_file(self.kubeconfig)
            found = config.get(self.context)
        except KeyError as error:
            raise self._cannot(f"it has no {error.args[0]!r}", "a context with its cluster and its user") from error
        except UNREADABLE as error:
            raise self._cannot(_first_line(error), "a kubeconfig") from error
        assert found is not None  # only if we had passed a default
        return found

    def _server(self, found: SingleConfig) -> str:
        server = found.cluster.server
        if not server.startswith("https://") and not _is_here(server):
            raise self._cannot(f"its server is {server or 'not set'}", "https://")
        if found.cluster.insecure:
            raise self._cannot("it trusts any server (insecure-skip-tls-verify)", "certificate-authority")
        return server

    def _check_data(self, found: SingleConfig, user: User) -> None:
        for data in (found.cluster.certificate_auth_data, user.client_cert_data, user.client_key_data):
            try:
                if data is not None and b"-----BEGIN " not in b64decode(data, validate=True):
                    raise self._cannot("something in it is no certificate and no key", "PEM, in base64")
            except ValueError as error:
                raise self._cannot("a certificate or key in it is not in base64", "PEM, in base64") from error

    def _plug_in(self, user: User) -> User:
        """Prepare an exec credential plug-in: set KUBERNETES_EXEC_INFO with the version that the kubeconfig names. The
        library knows only v1beta1, and v1 kept all fields of it."""
        if not user.exec:
            return user
        version = user.exec.apiVersion
        if version not in PLUG_INS:
            raise self._cannot(f"its plug-in speaks {version}", " or ".join(PLUG_INS))
        request = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
        info = NameValue(name="KUBERNETES_EXEC_INFO", value=json.dumps(request))
        plug_in = msgspec.structs.replace(user.exec, apiVersion=PLUG_INS[-1], env=[*(user.exec.env or ()), info])
        return msgspec.structs.replace(user, exec=plug_in)

    def _files(self, found: SingleConfig, user: User) -> Iterator[Path]:
        if self.kubeconfig is not None:
            yield self.kubeconfig
        for named in (found.cluster.certificate_auth, user.client_cert, user.client_key, user.token_file):
            if named:
                yield Path(found.abs_file(named))

    def _cannot(self, saw: str, want: str) -> InvalidRequest:
        return InvalidRequest(f"{self.kubeconfig or self.account} cannot be used", saw=saw, want=want)


def find_login(kubeconfig: Path | None, context: str | None) -> Login:
    """The given kubeconfig or context; else the service account, if we run in a pod; else as kubectl does."""
    asked = kubeconfig is not None or context is not None
    if not asked and (SERVICE_ACCOUNT / "token").exists() and all(os.environ.get(each) for each in ENVIRONMENT):
        return Login()
    return Login(kubeconfig=find(kubeconfig), context=context)


def stamp_of(files: Iterator[Path] | tuple[Path, ...]) -> Stamp:
    """Detects that a file was changed or replaced; a file that is missing at the moment is skipped."""
    found = []
    for file in files:
        try:
            seen = file.stat()
        except OSError:
            continue
        found.append((str(file), seen.st_mtime_ns, seen.st_ino))
    return tuple(found)


def _trust(found: SingleConfig, user: User) -> ssl.SSLContext:
    return verify_cluster(found.cluster, user, found.abs_file, trust_env=False)


def _is_here(server: str) -> bool:
    """Whether the server is plain HTTP on this machine: `kubectl proxy`, for example."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    try:
        return parts.scheme == "http" and (host == "localhost" or ipaddress.ip_address(host).is_loopback)
    except ValueError:
        return False


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
