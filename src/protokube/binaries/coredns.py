"""CoreDNS, the DNS server for pods."""

from __future__ import annotations

import re

from protokube.binaries.product import NUMBERS, Product

COREDNS = Product(
    name="CoreDNS",
    key="coredns",
    programs=("coredns",),
    needed=("coredns",),
    chosen="PROTOKUBE_COREDNS_BIN",
    example="1.14.2",
    ask_version={"coredns": ("-version",)},
    answer=re.compile(rf"\bCoreDNS-{NUMBERS}"),
)
