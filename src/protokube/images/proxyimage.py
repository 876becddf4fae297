"""The image of kube-proxy: the program, and the tools with which it changes the packet filter of a host.

iptables is the nft variant: every kernel since 2018 supports nftables, and not every one the legacy tables.
"""

from __future__ import annotations

from pathlib import Path

from protokube.images import build
from protokube.images.build import PROGRAMS, Image
from protokube.images.packages import Package, unpack_whole

TABLES, TRACKING = "iptables", "conntrack"
MULTI = "usr/sbin/xtables-nft-multi"
"""A multi-call program: it acts by the name it is called by."""
NAMES = tuple(f"{tool}{kind}" for tool in ("iptables", "ip6tables") for kind in ("", "-save", "-restore"))


def obtain(name: str, program: Path, cache: Path) -> Image:
    return image(name, program, unpack_whole(TABLES, cache), unpack_whole(TRACKING, cache))


def image(name: str, program: Path, tables: Package, tracking: Package) -> Image:
    multi, conntrack = tables.root / MULTI, tracking.root / "usr/sbin" / TRACKING
    plugins = sorted(tables.root.glob("usr/lib/*/xtables/*.so"))
    files = {
        **{f"{PROGRAMS}/{called}": multi for called in NAMES},
        **{f"/{plugin.relative_to(tables.root)}": plugin for plugin in plugins},
        **build.libraries(multi, *plugins, roots=tables.libraries),
        f"{PROGRAMS}/{TRACKING}": conntrack,
        **build.libraries(conntrack, roots=tracking.libraries),
    }
    return Image(name=name, files={**files, **build.of_program(name, program).files})
