"""Build dist/protokube_VERSION_ARCHITECTURE.deb: protokube with all it imports, its unit, manual pages and completion.

The wheels are those of the single file, unpacked into one folder for all Pythons: of a compiled module there is one
file for each, and its name says for which. No debhelper is needed, and equal inputs give equal bytes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

import manpages
import pyz

from protokube import __version__
from protokube.local.base.ourselves import MARK

PARTS = pyz.ROOT / "scripts" / "debian"
ARCHITECTURES = {"x86_64-glibc": "amd64", "aarch64-glibc": "arm64"}
HOME = "usr/lib/protokube"
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/protokube",
    "zsh": "usr/share/zsh/vendor-completions/_protokube",
    "fish": "usr/share/fish/vendor_completions.d/protokube.fish",
}
SCRIPTS = ("postinst", "prerm", "postrm")
DIFFERS = ("RECORD", "WHEEL")
"""Files of a wheel's metadata that name the Python it was built for."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    here = pyz.this_kind()
    parser.add_argument("--for", dest="kind", choices=[*ARCHITECTURES], default=here if here in ARCHITECTURES else None)
    parser.add_argument("--output", type=Path, help="default: dist/protokube_VERSION_ARCHITECTURE.deb")
    asked = parser.parse_args()
    if asked.kind is None:
        raise SystemExit("error: Debian does not run on this kind of machine\n  hint: name another one with --for")
    architecture = ARCHITECTURES[asked.kind]
    output: Path = asked.output or pyz.ROOT / "dist" / f"protokube_{__version__}_{architecture}.deb"
    wheels = {path.name: path.read_bytes() for path in pyz.dependency_wheels([asked.kind])} | pyz.our_wheel()
    files = {
        **{f"{HOME}/{name}": content for name, content in merged(wheels).items()},
        f"{HOME}/{MARK}": b"kept\n",
        "usr/bin/protokube": (PARTS / "launcher").read_bytes(),
        "usr/lib/systemd/system/protokube-agent.service": (PARTS / "protokube-agent.service").read_bytes(),
        **{f"usr/share/man/man1/{name}.gz": packed(text) for name, text in manpages.pages().items()},
        **{place: completion(shell) for shell, place in COMPLETIONS.items()},
        "usr/share/doc/protokube/copyright": (pyz.ROOT / "LICENSE").read_bytes(),
        "usr/share/doc/protokube/changelog.gz": packed((pyz.ROOT / "CHANGELOG.md").read_text()),
    }
    write(output, files, control(architecture, sum(map(len, files.values()))))
    print(f"{output}: {output.stat().st_size / 1e6:.1f} MB, {len(files)} files")


def merged(wheels: dict[str, bytes]) -> dict[str, bytes]:
    """The files of all wheels in one folder. Wheels of one project share all that is not compiled."""
    found: dict[str, bytes] = {}
    for name, data in sorted(wheels.items()):
        with ZipFile(io.BytesIO(data)) as wheel:
            for inside in wheel.namelist():
                content = wheel.read(inside)
                if inside.endswith("/"):
                    continue
                if found.setdefault(inside, content) != content and Path(inside).name not in DIFFERS:
                    raise SystemExit(f"error: {name} has another {inside} than a wheel before it")
    return found


def control(architecture: str, size: int) -> str:
    programs = "e2fsprogs, iproute2, libc-bin, mount, util-linux"
    newest = f"3.{int(pyz.PYTHONS[-1].partition('.')[2]) + 1}~"
    return f"""Package: protokube
Version: {__version__}
Architecture: {architecture}
Maintainer: The protokube authors <protokube@localhost>
Installed-Size: {size // 1024 + 1}
Depends: python3 (>= {pyz.PYTHONS[0]}), python3 (<< {newest}), {programs}
Section: admin
Priority: optional
Description: self-healing Kubernetes control plane
 protokube expands a spec of a few lines into a complete control plane, and runs
 each etcd member on a volume that can move between machines: if a machine
 fails, another one attaches its volume and continues as the same member.
 .
 This package has the command, the agent of a master and the dns-controller. The
 agent starts once /etc/protokube/agent.json exists and its unit is enabled.
"""


def completion(shell: str) -> bytes:
    command = [sys.executable, "-m", "protokube", "completion", shell]
    return subprocess.run(command, capture_output=True, check=True).stdout


def packed(text: str) -> bytes:
    return gzip.compress(text.encode(), 9, mtime=0)


def write(output: Path, files: dict[str, bytes], about: str) -> None:
    """Lay the package out and let dpkg-deb pack it; put it in place at once."""
    if shutil.which("dpkg-deb") is None:
        raise SystemExit("error: there is no dpkg-deb on this machine\n  hint: make pyz needs nothing of Debian")
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "root"
        sums = "".join(f"{hashlib.md5(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
        texts = {"control": about, "md5sums": sums, **{name: (PARTS / name).read_text() for name in SCRIPTS}}
        for name, content in {**files, **{f"DEBIAN/{name}": text.encode() for name, text in texts.items()}}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            runs = name == "usr/bin/protokube" or path.name in SCRIPTS
            path.chmod(0o755 if runs else 0o644)
        for path in [root, *root.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
        environ = {**os.environ, "SOURCE_DATE_EPOCH": str(pyz.EPOCH)}
        made = Path(scratch) / output.name
        print(f"packing {len(files)} files", file=sys.stderr, flush=True)
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(made)]
        subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)
        output.parent.mkdir(parents=True, exist_ok=True)
        part = output.with_name(f".{output.name}.{os.getpid()}")
        shutil.copyfile(made, part)
        part.replace(output)


if __name__ == "__main__":
    main()
