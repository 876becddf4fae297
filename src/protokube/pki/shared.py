"""What every master has in common: the cluster's authority, and the key pair that signs service accounts' tokens.

As in kops, the files of the cluster's authority are called `ca` on a machine, and the flags name them so. Its key is on
masters only: the controller manager signs nodes' certificates with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from protokube.errors import TryLater
from protokube.pki.authority import Authority
from protokube.pki.files import PRIVATE, PUBLIC, content_of, replace_files, restore_mode

CLUSTER_AUTHORITY, SERVICE_ACCOUNT = "kubernetes-ca", "service-account"
KEYS = ("ca.key", "service-account.key")


def sync_shared(directory: Path, authorities: Mapping[str, Authority]) -> list[str]:
    """Write them as the store has them; say what was written. TryLater if the store or the disk does not answer.

    While the store is unreachable, complete files stay as they are.
    """
    try:
        cluster, accounts = authorities[CLUSTER_AUTHORITY], authorities[SERVICE_ACCOUNT]
    except TryLater:
        if all((directory / name).exists() for name in ("ca.crt", *KEYS)):
            return _close(directory)
        raise
    files = {
        "ca.crt": (cluster.certificate, PUBLIC),
        "ca.key": (cluster.key, PRIVATE),
        "service-account.key": (accounts.key, PRIVATE),
        "service-account.pub": (public_key(accounts), PUBLIC),
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        changed = [name for name, (data, _) in files.items() if content_of(directory / name) != data]
        for name in changed:
            replace_files([(directory / name, *files[name])])
    except OSError as error:
        raise _later(directory, error) from error
    return [*(f"{name}: written" for name in changed), *_close(directory)]


def _close(directory: Path) -> list[str]:
    """Restore the mode of keys that others could read, also while the store is unreachable."""
    try:
        opened = [name for name in KEYS if restore_mode(directory / name, PRIVATE)]
    except OSError as error:
        raise _later(directory, error) from error
    return [f"{name}: could be read by others, no longer" for name in opened]


def _later(directory: Path, error: OSError) -> TryLater:
    return TryLater(f"cannot keep the keys in {directory}", saw=str(error.strerror))


def public_key(pair: Authority) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = x509.load_pem_x509_certificate(pair.certificate).public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
