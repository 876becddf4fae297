"""Keep the certificates of this machine current: NAME.crt and NAME.key for each, AUTHORITY.crt for its authority.

etcd and others read both files again at every handshake, and two files cannot be replaced in one atomic step: of 60
renewals of both under a busy etcd, nine hit a reader in between. So a renewal keeps the key and replaces the
certificate alone. A new key is made only where there is none, or where the pair was not usable anyway.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.manifests.certificate import CertificateWanted
from protokube.pki.authority import Authority
from protokube.pki.check import judge
from protokube.pki.issue import issue
from protokube.pki.renewal import ALONE, LIFETIME, Place

PUBLIC, PRIVATE = 0o644, 0o600


def sync_certificates(
    directory: Path,
    wanted: Mapping[str, CertificateWanted],
    authorities: Mapping[str, Authority],
    now: float,
    place: Place = ALONE,
    lifetime: float = LIFETIME,
) -> list[str]:
    """Issue what is missing, wrong or due; say what and why. What is in order is not touched.

    An authority that cannot be read right now is an error only if a certificate must be issued and cannot wait.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        changes = [_sync(directory, name, wanted[name], authorities, now, place, lifetime) for name in sorted(wanted)]
    except OSError as error:
        raise TryLater(
            f"cannot keep the certificates in {directory}",
            saw=f"{error.strerror} ({error.filename})",
            hint="make room on that disk, or mend it; certificates are issued again by themselves",
        ) from error
    return [news for each in changes for news in each]


def _sync(
    directory: Path,
    name: str,
    wanted: CertificateWanted,
    authorities: Mapping[str, Authority],
    now: float,
    place: Place,
    lifetime: float,
) -> list[str]:
    signer_file, certificate_file, key_file = (
        directory / each for each in (f"{wanted.authority}.crt", f"{name}.crt", f"{name}.key")
    )
    trusted, certificate, key = content_of(signer_file), content_of(certificate_file), content_of(key_file)
    news: list[str] = []
    authority, unreachable = _reach(authorities, wanted.authority)
    if authority and trusted != authority.certificate:
        trusted = authority.certificate
        replace_files([(signer_file, trusted, PUBLIC)])
        news.append(f"{wanted.authority}: written")
    pair = None if certificate is None or key is None else (certificate, key)
    verdict = judge(pair, wanted, trusted or b"", now, place, lifetime)
    if verdict.why and authority:
        issued = issue(wanted, authority, now, lifetime, key if verdict.keep_key else None)
        new_key = [] if verdict.keep_key else [(key_file, issued.key, PRIVATE)]
        replace_files([(certificate_file, issued.certificate, PUBLIC), *new_key])
        news.append(f"{name}: issued, {verdict.why}")
    elif unreachable and not verdict.usable:
        raise unreachable
    elif unreachable and verdict.why:
        news.append(f"{name}: not issued though {verdict.why}: {unreachable.message}")
    if restore_mode(key_file, PRIVATE):
        news.append(f"{name}: its key could be read by others, no longer")
    return news


def _reach(authorities: Mapping[str, Authority], name: str) -> tuple[Authority | None, ProtokubeError | None]:
    try:
        return authorities[name], None
    except ProtokubeError as why:
        return None, why
    except KeyError:
        return None, Refused(f"there is no authority {name!r}", want=f"one of {', '.join(sorted(authorities))}")


def restore_mode(path: Path, mode: int) -> bool:
    """Set the mode of a file or folder; return whether it was another."""
    changed = stat.S_IMODE(path.stat().st_mode) != mode
    if changed:
        path.chmod(mode)
    return changed


def content_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return None


def replace_files(files: Sequence[tuple[Path, bytes, int]]) -> None:
    """Write and flush all of them as drafts, then rename one after the other."""
    drafts = []
    for path, data, mode in files:
        draft = path.with_name(f".{path.name}.new")  # always the same name, so the next run removes what a crash left
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        drafts.append(draft)
    for draft, (path, _, _) in zip(drafts, files, strict=True):
        draft.replace(path)
    folder = os.open(files[0][0].parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
