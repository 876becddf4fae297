"""TLS contexts for etcd: CA and client certificate, always as the files on the disk are now.

Certificates are renewed while we run, so the contexts are rebuilt when a file changes. The hard part is the moment when
certificate and key do not match: then the old contexts are used until the next call.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import TryLater


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The CA of etcd's clients and servers, and our own client certificate."""

    ca: Path
    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Contexts:
    """One pair for each version of the files; two versions are never equal."""

    gateway: ssl.SSLContext
    grpc: ssl.SSLContext


Stamp = tuple[tuple[int, int, int], ...]


class Trust:
    """The contexts for a set of files."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._made: tuple[Stamp, Contexts] | None = None

    def contexts(self) -> Contexts:
        """TryLater if the files cannot be used and never could."""
        before = self._made
        try:
            stamp = self._stamp()
            if before is None or before[0] != stamp:
                self._made = before = (stamp, Contexts(self._context(), self._context("h2")))
        except OSError as error:  # SSLError is one
            if before is None:
                raise TryLater(
                    "cannot connect to etcd: our certificate cannot be read",
                    saw=f"{type(error).__name__}: {error}",
                    want=f"{self._files.ca}, {self._files.cert} and {self._files.key}",
                    hint="the agent issues them; see its report for why it has not",
                ) from error
        return before[1]

    def _stamp(self) -> Stamp:
        seen = (path.stat() for path in (self._files.ca, self._files.cert, self._files.key))
        return tuple((each.st_mtime_ns, each.st_size, each.st_ino) for each in seen)

    def _context(self, *protocols: str) -> ssl.SSLContext:
        """Not `create_default_context`, which also trusts the CAs that the environment names."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies the chain and the name
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_verify_locations(self._files.ca)
        context.load_cert_chain(self._files.cert, self._files.key)
        if protocols:
            context.set_alpn_protocols(protocols)
        return context
