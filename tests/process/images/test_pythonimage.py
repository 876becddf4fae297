"""The image of protokube itself: what is in it, what is not, and that nothing is compiled twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

from protokube.images import pythonimage
from protokube.images.bytecode import compiled


class Asking(Distribution):
    """One that asks for others, and has no files."""

    def __init__(self, *lines: str) -> None:
        self._lines = lines

    @property
    def requires(self) -> list[str]:
        return list(self._lines)

    def read_text(self, filename: str) -> str | None:
        return None

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        raise AssertionError(path)


@pytest.mark.parametrize(
    ("extras", "names"),
    [
        ((), ["one", "two-words", "three"]),
        (("dns",), ["one", "two-words", "three", "dnspython"]),
        (("dns", "route53"), ["one", "two-words", "three", "dnspython", "boto3"]),
    ],
)
def test_of_the_extras_only_those_are_asked_for_that_are_named(extras: Sequence[str], names: list[str]) -> None:
    asking = Asking(
        "one>=1", "Two_Words[more]~=2.0", "three ; python_version < '4'", 'dnspython>=2.8; extra == "dns"',
        "boto3; python_version > '3' and extra == 'route53'",
    )  # fmt: skip
    assert list(pythonimage.requirements(asking, extras)) == names


def test_what_is_needed_is_there_with_what_that_needs_and_nothing_else() -> None:
    names = {each.name.lower() for each in pythonimage.needed(("dns",))}
    assert {"click", "pyyaml", "dnspython", "msgspec", "prometheus-client"} <= names
    assert not {"boto3", "pytest", "mypy", "protokube", "cryptography"} & names
    assert {"boto3", "botocore"} <= {each.name.lower() for each in pythonimage.needed(("dns", "route53"))}


def test_modules_lie_below_one_folder_with_our_own_among_them_and_nothing_that_somebody_compiled() -> None:
    found = pythonimage.own_modules(("dns",))
    assert {"protokube/cli/main.py", "protokube/py.typed", "click/core.py", "dns/resolver.py"} <= found.keys()
    assert not [inside for inside in found if inside.startswith(("/", "..")) or "__pycache__" in inside]
    assert all(file.is_file() for file in found.values())
    assert (
        distribution("click").version in found[f"click-{distribution('click').version}.dist-info/METADATA"].read_text()
    )


def test_of_the_library_what_serves_to_develop_and_what_asks_for_a_screen_stays_here() -> None:
    root = Path(os.__file__).parent
    found = {str(file.relative_to(root)) for file in pythonimage.standard_library()}
    assert {"os.py", "ssl.py", "encodings/idna.py", "json/decoder.py"} <= found
    away = ("test/", "tkinter/", "idlelib/", "site-packages/", "dist-packages/", "lib-dynload/_tkinter", "ensurepip/")
    assert not [inside for inside in found if inside.startswith(away) or "__pycache__" in inside]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("del metadata['msgspec']", "not installed: msgspec\\n  hint: pip install 'protokube[dns]'"),
        ("metadata.clear()", "the single file cannot make an image of itself\\n  hint: pip install 'protokube[dns]'"),
    ],
    ids=["an extra is missing", "nothing is installed"],
)
def test_without_what_it_needs_there_is_no_image(tmp_path: Path, code: str, message: str) -> None:
    """In an interpreter whose list of distributions is one of ours."""
    script = f"""
import re, sys
from pathlib import Path
from importlib.metadata import distributions
metadata = {{re.sub(r"[-_.]+", "-", each.name).lower(): each.read_text("METADATA") for each in distributions()}}
{code}
for name, text in metadata.items():
    folder = Path(sys.argv[1], f"{{name.replace('-', '_')}}-1.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text(text or "Name: " + name)
import protokube.errors, protokube.images.pythonimage as asked, protokube.images.build
sys.path[:] = [sys.argv[1]]
try:
    asked.image("ours:1", ("dns",))
except protokube.errors.Refused as why:
    print(why)
"""
    ran = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == (message.replace("\\n", "\n") + "\n", "")


def test_a_compiled_module_is_taken_whatever_time_its_file_bears_and_whoever_may_not_write(tmp_path: Path) -> None:
    files = {"/m/one.py": b"print(__cached__)\n", "/m/broken.py": b"def (:\n", "/m/text.txt": b"no module"}
    (made,) = compiled(files).items()
    assert made[0] == f"/m/__pycache__/one.{sys.implementation.cache_tag}.pyc"
    place = tmp_path / "__pycache__" / Path(made[0]).name
    place.parent.mkdir()
    place.write_bytes(made[1])
    (tmp_path / "one.py").write_text("raise SystemExit('compiled again')\n")
    ran = subprocess.run(
        [sys.executable, "-B", "-c", "import one"], capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path)}
    )
    assert (ran.stdout, ran.stderr) == (f"{place}\n", "")


def test_modules_that_python_would_warn_of_are_compiled_in_silence() -> None:
    assert len(compiled({"/m/one.py": rb'print("\d", 1 is 1)'})) == 1


def test_the_interpreter_is_the_one_behind_this_environment() -> None:
    found = pythonimage.interpreter()
    asked = subprocess.run([found, "-I", "-c", "import sys; print(sys.version)"], capture_output=True, text=True)
    assert asked.stdout.strip() == sys.version
    assert not found.is_relative_to(sys.prefix) or sys.prefix == sys.base_prefix
