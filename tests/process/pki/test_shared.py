"""What all masters share is the same on each of them, closed to others, and stays while the store is away."""

from __future__ import annotations

import subprocess
from pathlib import Path

from protokube.pki.shared import CLUSTER_AUTHORITY, SERVICE_ACCOUNT, sync_shared
from unit.pki.builders import authorities

PAIR = authorities(CLUSTER_AUTHORITY, SERVICE_ACCOUNT)


def test_what_the_service_accounts_key_signs_its_public_half_knows(tmp_path: Path) -> None:
    sync_shared(tmp_path, PAIR)
    (tmp_path / "token").write_text("who I am")
    sign = ["openssl", "dgst", "-sha256", "-sign", "service-account.key", "-out", "signature", "token"]
    verify = ["openssl", "dgst", "-sha256", "-verify", "service-account.pub", "-signature", "signature", "token"]
    subprocess.run(sign, cwd=tmp_path, check=True)

    output = subprocess.run(verify, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert output == "Verified OK\n"
