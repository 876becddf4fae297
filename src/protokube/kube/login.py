"""Where the API server is and who we are to it: a kubeconfig, or the service account of the pod we run in.

Nothing is taken from the environment but what Kubernetes itself puts there: no proxies, no other authorities. Files
are renewed under our feet, so a login is a place to read from and not what was read.
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
"""Seconds that an idle connection is kept: longer than between two renewals of a lease."""
UNREADABLE = (ConfigError, msgspec.MsgspecError, yaml.YAMLError, OSError, ValueError, TypeError, AttributeError)
"""What reading a file that is no kubeconfig, or half of one, can end in."""
NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusted where nothing is encrypted; loading the authorities of this machine would take longer than all else."""
PLUG_INS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
Stamp = tuple[tuple[str, int, int], ...]

logging.getLogger("httpx2").setLevel(logging.WARNING)  # it would log every request, as news


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A kubeconfig and the context in it, or a folder with a service account."""

    kubeconfig: Path | None = None
    context: str | None = None
    account: Path = SERVICE_ACCOUNT

    def client(self, patience: float) -> tuple[httpx2.Client, Stamp]:
        """An HTTP client that logs in by what the files say now, and what they looked like."""
        found = self._read()
        user = self._plug_in(found.user or User())
        self._check_data(found, user)
        try:
            if user.token_file:
                user = msgspec.structs.replace(user, token_file=str(found.abs_file(user.token_file)))
            stamp = stamp_of(self._files(found, user))
            client = httpx2.Client(
                base_url=(server := self._server(found)),
                verify=_trust(found, user) if server.startswith("https") else NOBODY,
                auth=user_auth(user),
                trust_env=False,
                timeout=patience,
                limits=httpx2.Limits(max_connections=None, keepalive_expiry=KEEP_IDLE),
                headers={"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": "protokube"},
            )
        except UNREADABLE as error:
            raise self._cannot(_said(error), "certificates and keys that belong together") from error
        return client, stamp

    def _read(self) -> SingleConfig:
        try:
            if self.kubeconfig is None:
                told = KubeConfig.from_service_account(self.account)
            else:
                told = KubeConfig.from_file(self.kubeconfig)
            found = told.get(self.context)
        except KeyError as error:
            raise self._cannot(f"it has no {error.args[0]!r}", "a context with its cluster and its user") from error
        except UNREADABLE as error:
            raise self._cannot(_said(error), "a kubeconfig") from error
        assert found is not None  # only if we had passed a default
        return found

    def _server(self, found: SingleConfig) -> str:
        server = found.cluster.server
        if not server.startswith("https://") and not _is_here(server):
            raise self._cannot(f"its server is {server or 'not said'}", "https://")
        if found.cluster.insecure:
            raise self._cannot("it trusts anybody (insecure-skip-tls-verify)", "certificate-authority")
        return server

    def _check_data(self, found: SingleConfig, user: User) -> None:
        for data in (found.cluster.certificate_auth_data, user.client_cert_data, user.client_key_data):
            try:
                if data is not None and b"-----BEGIN " not in b64decode(data, validate=True):
                    raise self._cannot("something in it is no certificate and no key", "PEM, in base64")
            except ValueError as error:
                raise self._cannot("a certificate or key in it is not in base64", "PEM, in base64") from error

    def _plug_in(self, user: User) -> User:
        """A program that logs in is told how to answer; the library knows its old words, of which `v1` kept all."""
        if not user.exec:
            return user
        spoken = user.exec.apiVersion
        if spoken not in PLUG_INS:
            raise self._cannot(f"its plug-in speaks {spoken}", " or ".join(PLUG_INS))
        asked = {"apiVersion": spoken, "kind": "ExecCredential", "spec": {"interactive": False}}
        told = NameValue(name="KUBERNETES_EXEC_INFO", value=json.dumps(asked))
        plug_in = msgspec.structs.replace(user.exec, apiVersion=PLUG_INS[-1], env=[*(user.exec.env or ()), told])
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
    """What was asked for; else the pod's service account, if we are in one; else as every other client does."""
    asked = kubeconfig is not None or context is not None
    if not asked and (SERVICE_ACCOUNT / "token").exists() and all(os.environ.get(each) for each in ENVIRONMENT):
        return Login()
    return Login(kubeconfig=find(kubeconfig), context=context)


def stamp_of(files: Iterator[Path] | tuple[Path, ...]) -> Stamp:
    """What tells that a file was changed or replaced; one that is away for the moment does not."""
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
    """Plain text is for a proxy on this very machine, such as that of kubectl."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    try:
        return parts.scheme == "http" and (host == "localhost" or ipaddress.ip_address(host).is_loopback)
    except ValueError:
        return False


def _said(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
