"""Derive apt's source repositories from the configured binary repositories: the same URLs, with `deb-src`."""

from __future__ import annotations

import re


def one_line_sources(text: str) -> str:
    """The entries of a `.list` file, as `deb-src` entries."""
    lines = [line.strip() for line in text.splitlines()]
    entries = [
        re.sub(r"^deb(-src)?(?=[\s\[])", "deb-src", line) for line in lines if re.match(r"deb(-src)?[\s\[]", line)
    ]
    return "".join(f"{line}\n" for line in dict.fromkeys(entries))


def stanza_sources(text: str) -> str:
    """The entries of a `.sources` file (deb822), as `deb-src` entries, without comments and disabled entries."""
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    stanzas = [each.strip("\n") for each in re.split(r"\n[ \t]*\n", plain) if each.strip()]
    kept = [
        re.sub(r"(?im)^Types:.*(\n[ \t]+.*)*$", "Types: deb-src", each)
        for each in stanzas
        if re.search(r"(?im)^Types:", each) and not re.search(r"(?im)^Enabled:\s*(no|false|off|0|without)\s*$", each)
    ]
    return "\n\n".join(kept) + "\n" if kept else ""


def upstream_version(debian: str) -> str:
    """The upstream version in a Debian version: `1.20.2` for `1.20.5+really1.20.2-1.1+deb12u1`."""
    upstream = debian.partition(":")[2] or debian
    if "-" in upstream:
        upstream = upstream.rpartition("-")[0]
    upstream = upstream.rpartition("+really")[2]
    return re.split(r"[+~]", upstream)[0]
