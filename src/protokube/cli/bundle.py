"""`protokube bundle`: one offline archive of all that machines of a role need."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from protokube.cli.shared.options import Choice, output_option, show_warnings
from protokube.errors import InvalidRequest
from protokube.signals import ending_like_ctrl_c

if TYPE_CHECKING:
    from protokube.nodeup.assets.bundle import Bundle
    from protokube.nodeup.values import Asset

ROLES = ("Master", "Node")
PROCESSORS = ("x86_64", "aarch64")


@click.command()
@click.argument("specs", metavar="SPEC...", nargs=-1, type=click.Path(allow_dash=True))
@click.option(
    "--file", "target", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Where the bundle goes."
)
@click.option(
    "--check", "checked", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Verify a bundle."
)
@click.option("--role", type=Choice(ROLES), default="Master", show_default=True, help="Masters need all that nodes do.")
@click.option(
    "--processor", type=Choice(PROCESSORS), default=platform.machine, help="Of the machines.  [default: this one's]"
)
@click.option(
    "--mirror",
    "mirrors",
    metavar="PROJECT=URL",
    multiple=True,
    help="Where else releases are; asked first.",
)
@click.option(
    "--release", "releases", metavar="PROJECT=URL", multiple=True, help="Where a project publishes, with checksums."
)
@click.option("--image", "archives", metavar="NAME=FILE", multiple=True, help="An archive of an image that you have.")
@click.option(
    "--cache",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of the cache.  [default: PROTOKUBE_CACHE, else /var/cache/protokube]",
)
@click.option("--dry-run", is_flag=True, help="List what would be in it, and download nothing.")
@output_option(default="text", choices=("text", "json"))
def bundle(
    specs: tuple[str, ...], target: Path | None, checked: Path | None, output: str, *, dry_run: bool, **options: Any
) -> None:  # fmt: skip
    """Pack all that machines of a role need into one file.

    Images are in it, too. Programs and images of the Kubernetes in the cache are used as they are; what is not there is
    downloaded from official releases. Digests come from the releases, never from a mirror; projects are kubernetes,
    containerd, runc, cni and crictl. The same inputs give the same bytes.

    \b
      protokube bundle rack.yaml --file rack.bundle
      protokube bundle rack.yaml --role Node --dry-run
      protokube bundle rack.yaml --file rack.bundle --mirror kubernetes=https://mirror.example.com/k8s
      protokube bundle --check rack.bundle
    """
    from protokube.cli.shared.progress import Progress

    if checked is not None:
        if specs or target or dry_run:
            raise InvalidRequest("--check reads a bundle, and takes nothing else", want="protokube bundle --check FILE")
        from protokube.nodeup.assets.bundle import open_bundle, verify

        progress = Progress(quiet=output == "json")
        found = open_bundle(checked)
        with progress.step("contents compared with the index"):
            verify(found, progress.say)
        show(of_bundle(found), output)
        return
    if not specs or (target is None and not dry_run):
        raise InvalidRequest("a bundle needs a spec, and a file", want="protokube bundle SPEC --file FILE")
    with ending_like_ctrl_c():
        make(specs, target if not dry_run else None, output, **options)


def make(
    specs: tuple[str, ...], target: Path | None, output: str, *, role: str, processor: str, cache: Path | None,
    mirrors: tuple[str, ...], releases: tuple[str, ...], archives: tuple[str, ...],
) -> None:  # fmt: skip
    """Resolve, and without a target only list; else fetch everything and write it."""
    from protokube.binaries.product import CACHE
    from protokube.cli.shared import machine_assets
    from protokube.cli.shared.inputs import read_specs
    from protokube.cli.shared.progress import Progress
    from protokube.config.complete import complete
    from protokube.nodeup.assets.bundle import write_bundle
    from protokube.nodeup.assets.fetch import fetch
    from protokube.nodeup.assets.resolve import file_of
    from protokube.spec.parse import read

    folder = cache or CACHE
    progress = Progress(quiet=output == "json")
    config = complete(read(read_specs(specs)))
    show_warnings(config.warnings)
    images = {name: Path(file) for name, file in machine_assets.pairs("--image", archives, "NAME=FILE")}
    wish = machine_assets.Wish(
        master=role == "Master", processor=processor, here=platform.machine(), cache=folder,
        origins=machine_assets.origins(releases, mirrors, folder), archives=images,
    )  # fmt: skip
    with progress.step("checksums") as step:
        found = machine_assets.find(config, wish, progress)
        step.text = f"{len(found.assets)} assets with their checksums"
    about = f"{config.name}, {role}, {processor}"
    if target is None:
        show(of_assets(found.assets, about), output)
        return
    files = []
    for asset in found.assets:
        if local := file_of(asset):
            files.append((asset, local))
            continue
        with progress.step(asset.name):
            files.append((asset, fetch(asset, folder / "assets", progress.say)))
    with progress.step(f"{target} is written"):
        written = write_bundle(target, files, about, progress.say)
    show(of_bundle(written), output)


def of_assets(assets: tuple[Asset, ...], about: str) -> dict[str, Any]:
    """The plan as data. Pure."""
    rows = [{"name": each.name, "size": each.size, "sha256": each.sha256, "from": each.urls[0]} for each in assets]
    return {"about": about, "file": None, "assets": sorted(rows, key=lambda row: str(row["name"]))}


def of_bundle(found: Bundle) -> dict[str, Any]:
    """A bundle as data. Pure."""
    rows = [{"name": each.name, "size": each.size, "sha256": each.sha256} for each in found.entries]
    return {"about": found.about, "file": str(found.path), "assets": rows}


def show(result: dict[str, Any], output: str) -> None:
    from protokube.cli.render.table import several, size, table

    if output == "json":
        click.echo(json.dumps(result, indent=2))
        return
    rows = [(each["name"], size(each["size"] or 0), each["sha256"], each.get("from", "")) for each in result["assets"]]
    lines = table(("NAME", "SIZE", "SHA256", "FROM"), rows) if result["file"] is None else table(
        ("NAME", "SIZE", "SHA256"), [row[:3] for row in rows]
    )  # fmt: skip
    total = size(sum(each["size"] or 0 for each in result["assets"]))
    place = f" in {result['file']}" if result["file"] else ""
    click.echo("\n".join([*lines, "", f"{several(len(rows), 'asset')}, {total}{place}: {result['about']}"]))
