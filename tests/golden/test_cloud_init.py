"""Tasks of every kind as a cloud-init document, byte for byte.

`make golden` writes the golden file anew; look at the diff before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

from builders.nodeup import DEBIAN
from builders.nodeup_image import every_kind
from protokube.nodeup.cloudinit.document import document
from protokube.nodeup.order import order

GOLDEN = Path(__file__).parent / "nodeup" / "cloud-init.yaml"
REFRESH = bool(os.environ.get("PROTOKUBE_REFRESH_GOLDEN"))


def test_the_document_of_every_kind_is_that_of_the_golden_file() -> None:
    text = document(order(every_kind()), DEBIAN, cache="/var/cache/nodeup")
    if REFRESH:
        GOLDEN.write_text(text, "utf-8")

    assert text == GOLDEN.read_text("utf-8")
