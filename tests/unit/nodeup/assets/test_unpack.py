"""Which members of archives lead out of them: for any names and links."""

from __future__ import annotations

import posixpath
import tarfile

from hypothesis import given
from hypothesis import strategies as st

from builders.assets import member
from protokube.nodeup.assets.unpack import _leads_out

PATHS = st.lists(st.sampled_from(["..", ".", "a", "b", "", "a..", "...", "..a"]), min_size=1, max_size=6).map("/".join)
KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE])


def inside(path: str) -> bool:
    """As the kernel would take it, unpacked into /x."""
    whole = posixpath.normpath(posixpath.join("/x", path))
    return whole == "/x" or whole.startswith("/x/")


@given(name=PATHS, kind=KINDS, link=PATHS)
def test_what_is_let_through_stays_inside_wherever_it_is_unpacked(name: str, kind: bytes, link: str) -> None:
    entry, _ = member(name, kind=kind, link=link)
    if _leads_out(entry):
        return

    assert inside(name)
    if kind == tarfile.SYMTYPE:
        assert inside(posixpath.join(posixpath.dirname(name), link))
    if kind == tarfile.LNKTYPE:
        assert inside(link)


@given(name=PATHS)
def test_what_is_refused_would_have_left(name: str) -> None:
    entry, _ = member(name)

    assert bool(_leads_out(entry)) == (name.startswith("/") or not inside(name))
