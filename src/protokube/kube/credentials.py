"""How a user logs in, as a kubeconfig says it: a token, a file with one, a plug-in, or a name and a password.

A token can be renewed while we run: a refused one is read or made again, once for each refused request.
"""

from __future__ import annotations

import json
import os
import threading
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

PLUG_INS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class NoLogin(Exception):
    """There is no token at the moment: a plug-in failed, or the file of the token is missing."""


class Variable(msgspec.Struct):
    name: str
    value: str


class PlugIn(msgspec.Struct, rename="camel"):
    """A program that prints an ExecCredential with a token."""

    api_version: str
    command: str
    args: Sequence[str] | None = None
    env: Sequence[Variable] | None = None


class User(msgspec.Struct, rename="kebab"):
    """A user of a kubeconfig: only the fields that we use."""

    exec: PlugIn | None = None
    username: str | None = None
    password: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(name="tokenFile", default=None)
    auth_provider: object | None = None
    acts_as: str | None = msgspec.field(name="as", default=None)
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None


class Credentials:
    """The Authorization header of one user; any thread may call it."""

    def __init__(self, user: User, token_file: Path | None, *, patience: float) -> None:
        """`patience` is with a plug-in."""
        self._user, self._file, self._patience = user, token_file, patience
        self._lock = threading.Lock()
        self._token = "" if self.renewable else user.token or ""

    @property
    def renewable(self) -> bool:
        """Whether another token may follow a refused one."""
        return self._file is not None or (self._user.exec is not None and self._user.token is None)

    def headers(self, refused: str | None = None) -> Mapping[str, str]:
        """Raises NoLogin. `refused` is the header that the server just refused: a renewable one is made anew, unless
        another thread has done so."""
        user = self._user
        if not self.renewable and not self._token:
            if not (user.username and user.password):
                return {}
            return {"Authorization": f"Basic {b64encode(f'{user.username}:{user.password}'.encode()).decode()}"}
        with self._lock:
            if self.renewable and (not self._token or refused == f"Bearer {self._token}"):
                self._token = self._renewed()
            if not self._token.isascii() or not self._token.isprintable():
                raise NoLogin("the token holds what no header can hold")
            return {"Authorization": f"Bearer {self._token}"}

    def _renewed(self) -> str:
        if self._file is not None:
            try:
                return self._file.read_text().strip()
            except (OSError, ValueError) as error:
                raise NoLogin(f"the token in {self._file} cannot be read: {error}") from error
        assert self._user.exec is not None
        return _token_of(self._user.exec, self._patience)


def _token_of(plug_in: PlugIn, patience: float) -> str:
    import subprocess  # few users have a plug-in

    request = {"apiVersion": plug_in.api_version, "kind": "ExecCredential", "spec": {"interactive": False}}
    more = {each.name: each.value for each in plug_in.env or ()}
    environment = {**os.environ, **more, "KUBERNETES_EXEC_INFO": json.dumps(request)}
    try:
        done = subprocess.run(  # noqa: S603  # the user's own kubeconfig names it
            [plug_in.command, *(plug_in.args or ())], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            check=False, timeout=patience,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise NoLogin(f"the plug-in {plug_in.command} cannot be run: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise NoLogin(f"the plug-in {plug_in.command} did not end within {patience:g} s") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[-300:]
        raise NoLogin(f"the plug-in {plug_in.command} returned {done.returncode}: {said}")
    try:
        token = json.loads(done.stdout)["status"]["token"]
    except (ValueError, KeyError, TypeError) as error:
        raise NoLogin(f"the plug-in {plug_in.command} printed no token: {error!r}") from error
    if not isinstance(token, str):
        raise NoLogin(f"the plug-in {plug_in.command} printed no token: it is {token!r}")
    return token
