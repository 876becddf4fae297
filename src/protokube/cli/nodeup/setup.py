"""`protokube nodeup setup`: what nodeup of one machine is told, from a spec."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from protokube.cli.shared.asset_options import asset_options
from protokube.cli.shared.options import show_warnings
from protokube.errors import InvalidRequest
from protokube.signals import ending_like_ctrl_c

if TYPE_CHECKING:
    from protokube.config.complete import Config
    from protokube.launch.setups.values import AssetSetup


@click.command()
@click.argument("specs", metavar="SPEC...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--group", metavar="NAME", help="The instance group of the machine.  [default: the only one of nodes]")
@click.option("--name", "node_name", metavar="NAME", default="", help="Name of its node.  [default: its host name]")
@click.option("--address", metavar="ADDRESS", default="", help="Address of its kubelet.  [default: found there]")
@click.option(
    "--agent", "launch", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="Launch data of a master's agent, agent.json.",
)  # fmt: skip
@asset_options
def setup(
    specs: tuple[str, ...], group: str | None, node_name: str, address: str, launch: Path | None, **options: Any
) -> None:
    """Print what nodeup of one machine is told.

    That is everything its spec says of it: kubelet, container runtime, files, units, and what it downloads, with the
    digest of each file. Files in the cache of this machine are named as they lie there; give the machine a bundle of
    the same, or name mirrors. It holds no secret. A master also needs the launch data of its agent.

    \b
      protokube nodeup setup cluster.yaml --name worker-1 > setup.json
      protokube nodeup setup cluster.yaml --group masters --agent agent.json
    """
    from protokube.cli.shared.inputs import read_specs
    from protokube.config.complete import complete
    from protokube.launch.boot import read_launch_document
    from protokube.launch.derive_setup import derive_setup, machine_group
    from protokube.launch.setup import to_tree
    from protokube.launch.setups.group import only_group_of_nodes
    from protokube.spec.parse import read

    config = complete(read(read_specs(specs)))
    group = group or only_group_of_nodes(config)
    agent = read_launch_document(launch) if launch is not None else None
    role = machine_group(config, group)["role"]
    if (agent is not None) != (role == "Master"):
        hint = "leave out --agent" if agent is not None else "--agent FILE names its launch data"
        raise InvalidRequest("masters have an agent, and no other machines", saw=f"{group} has role {role}", hint=hint)
    with ending_like_ctrl_c():
        found, images = resolved(config, group, master=role == "Master", **options)
    derived = derive_setup(
        config, group, assets=found, images=images, agent=agent, node_name=node_name, address=address
    )
    show_warnings(derived.warnings)
    click.echo(json.dumps(to_tree(derived.setup), indent=2, sort_keys=True))


def resolved(
    config: Config, group: str, *, master: bool, processor: str, cache: Path | None, mirrors: tuple[str, ...],
    releases: tuple[str, ...], archives: tuple[str, ...],
) -> tuple[list[AssetSetup], dict[str, str]]:  # fmt: skip
    """What the machine downloads, and the asset of each of its images."""
    from protokube.binaries.product import CACHE
    from protokube.cli.shared import machine_assets
    from protokube.cli.shared.progress import Progress
    from protokube.launch.setups.runtime import pinned_assets
    from protokube.launch.setups.values import AssetSetup

    given = [each for each in pinned_assets(config, group) if each.processor == processor]
    folder, progress = cache or CACHE, Progress()
    wish = machine_assets.Wish(
        master=master, processor=processor, here=platform.machine(), cache=folder, group=group,
        given={each.name for each in given},
        origins=machine_assets.origins(releases, mirrors, folder),
        archives={name: Path(file) for name, file in machine_assets.pairs("--image", archives, "NAME=FILE")},
    )  # fmt: skip
    with progress.step("checksums") as step:
        found = machine_assets.find(config, wish, progress)
        step.text = f"{len(found.assets)} assets with their checksums"
    assets = [
        AssetSetup(name=each.name, sha256=each.sha256, urls=each.urls, size=each.size, processor=processor)
        for each in found.assets
    ]
    return [*assets, *given], dict(found.images)
