"""The image of protokube itself: the running interpreter, its standard library, and the needed distributions.

Nothing is downloaded: the image contains what is installed here. Modules are compiled in advance, since the image is
read-only.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import protokube
from protokube.errors import Refused
from protokube.images import build
from protokube.images.build import PROGRAMS, Image

MODULES = "/usr/local/lib/protokube"
LAUNCHER = f"""#!{{python}} -I
import sys

sys.path.insert(0, "{MODULES}")
from protokube.cli.main import main

main()
"""
UNUSED = re.compile(
    r"(.*/)?(__pycache__|test|tests|idlelib|tkinter|turtledemo|ensurepip|lib2to3|pydoc_data|config-[^/]*"
    r"|site-packages|dist-packages)/.*|lib-dynload/(_tkinter|_test|_ctypes_test|xxlimited)[^/]*"
)
"""Parts of the standard library to omit: development tools and graphical modules."""
NOT_IN_PODS = frozenset({"cryptography", "jeepney"})
"""Requirements of agents and of `up` alone: what runs in a pod imports none of them, and they are large."""
NAME, EXTRA = re.compile(r"[\w.-]+"), re.compile(r"""extra\s*==\s*['"]([\w.-]+)['"]""")


def image(name: str, extras: Sequence[str], *, whole: bool = False) -> Image:
    """The image of `protokube` with these extras; only `whole`, it can also run an agent.

    Interpreter and standard library keep their paths, so that they find each other however they were built.
    """
    python = interpreter()
    modules = {f"{MODULES}/{inside}": file for inside, file in own_modules(extras, whole=whole).items()}
    library = {str(file): file for file in standard_library()}
    loaded = [file for file in (*modules.values(), *library.values()) if ".so" in file.suffixes]
    return Image(
        name=name,
        files={**modules, **library, str(python): python, **build.libraries(python, *loaded)},
        texts={f"{PROGRAMS}/protokube": LAUNCHER.format(python=python)},
        entry=(f"{PROGRAMS}/protokube",),
        bytecode=True,
    )


def interpreter() -> Path:
    """The interpreter behind the virtual environment."""
    version = sys.version_info
    return Path(sys.base_prefix, "bin", f"python{version.major}.{version.minor}").resolve(strict=True)


def standard_library() -> list[Path]:
    root = sysconfig.get_path("stdlib")
    found: list[Path] = []
    for at, folders, names in os.walk(root):
        inside = "" if at == root else f"{at.removeprefix(root).lstrip('/')}/"
        folders[:] = [each for each in folders if not UNUSED.fullmatch(f"{inside}{each}/")]
        found += [Path(at, name) for name in names if not UNUSED.fullmatch(f"{inside}{name}")]
    return sorted(file for file in found if file.is_file())


def own_modules(extras: Sequence[str], *, whole: bool = False) -> dict[str, Path]:
    """Our modules and those of the needed distributions, by path below one folder."""
    home = Path(protokube.__file__).parent.parent
    ours = (file for file in sorted((home / "protokube").rglob("*")) if file.is_file())
    found = {str(file.relative_to(home)): file for file in ours}
    for each in needed(extras, whole=whole):
        found |= {str(path): Path(str(path.locate())) for path in each.files or () if ".." not in path.parts}
    return {inside: file for inside, file in found.items() if "__pycache__" not in inside and file.is_file()}


def needed(extras: Sequence[str], *, whole: bool = False) -> list[Distribution]:
    """The distributions required by protokube with these extras, transitively."""
    if missing := [name for name in requirements(_ourselves(), extras) if _found(name) is None]:
        raise Refused(f"not installed: {', '.join(missing)}", hint=f"pip install '{_wanted(extras)}'")
    found: dict[str, Distribution] = {}
    left_out = frozenset() if whole else NOT_IN_PODS
    asked = deque(name for name in requirements(_ourselves(), extras) if name not in left_out)
    while asked:
        name = asked.popleft()
        # requirements for other systems or Python versions are not installed, and not needed
        if name not in found and (each := _found(name)):
            found[name] = each
            asked.extend(requirements(each))
    return list(found.values())


def installed(extras: Sequence[str]) -> bool:
    return all(_found(name) for name in requirements(_ourselves(), extras))


def _wanted(extras: Sequence[str]) -> str:
    return f"protokube[{','.join(extras)}]" if extras else "protokube"


def _found(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _ourselves() -> Distribution:
    if ours := _found("protokube"):
        return ours
    raise Refused("what is installed of protokube cannot be listed", hint="pip install protokube")


def requirements(of: Distribution, extras: Sequence[str] = ()) -> Iterator[str]:
    """Normalized names of a distribution's requirements, including those of these extras."""
    for line in of.requires or ():
        extra, name = EXTRA.search(line), NAME.match(line)
        if name and (extra is None or extra[1] in extras):
            yield re.sub(r"[-_.]+", "-", name[0]).lower()
