"""CoreDNS, which answers pods in a cluster."""

from __future__ import annotations

from protokube.programs.product import Product

COREDNS = Product(
    name="CoreDNS",
    key="coredns",
    programs=("coredns",),
    needed=("coredns",),
    chosen="PROTOKUBE_COREDNS_BIN",
    example="1.14.2",
    ask_version={"coredns": ("-version",)},
)
