"""Build dist/protokube-image.tar: an image with every command of protokube, for `docker load` and `ctr images import`.

It is made by our own code from what is installed in .run; docker is not needed. `Dockerfile` makes one with docker.
It holds the agent, the dns-controller and the commands that read and write specs and stores. The local cloud is not in
it: that needs programs of a machine, and its privileges.
"""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path

from protokube import __version__
from protokube.images import archive, build, pythonimage, reading

ROOT = Path(__file__).resolve().parent.parent
NAME = f"protokube/protokube:{__version__}"
PROVIDERS = ("http", "s3", "gs", "route53")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=ROOT / "dist" / "protokube-image.tar")
    parser.add_argument("--extra", action="append", choices=PROVIDERS, default=[], help="which has to be installed")
    asked = parser.parse_args()
    output: Path = asked.output
    extras: list[str] = asked.extra
    print("the image: Python, its library, protokube and what it imports, compiled", file=sys.stderr, flush=True)
    data = build.layout(pythonimage.image(NAME, extras, whole=True))
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_name(f".{output.name}.new")
    part.write_bytes(data)
    verdict = archive.judge(reading.read_archive(part), build.ARCHITECTURES.get(platform.machine(), platform.machine()))
    if verdict.problems:
        part.unlink()
        raise SystemExit(f"error: the image is not what it should be\n  saw:  {'; '.join(verdict.problems)}")
    part.replace(output)
    print(f"{output}: {len(data) / 1e6:.1f} MB, {NAME}, with the extras: {', '.join(extras) or 'none'}")


if __name__ == "__main__":
    main()
