"""`protokube get kubernetes`: the programs of a version of Kubernetes, into the cache of this machine."""

from __future__ import annotations

import json
from pathlib import Path

import click

from protokube.cli.options import output_option
from protokube.errors import InvalidRequest
from protokube.signals import ending_like_ctrl_c


def kept_versions(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """What the cache holds, for the shell."""
    from protokube.programs.kubernetes import CACHE, complete_versions

    versions = complete_versions(ctx.params.get("cache") or CACHE)
    return [each for each in versions if each.startswith(incomplete)]


@click.command()
@click.argument("version", metavar="[VERSION]", required=False, shell_complete=kept_versions)
@click.option(
    "--from",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Take the programs from this folder; for machines without a network.",
)
@click.option(
    "--mirror",
    "mirrors",
    metavar="URL",
    multiple=True,
    envvar="PROTOKUBE_KUBERNETES_MIRROR",
    show_envvar=True,
    help="Download from here instead of https://dl.k8s.io/release; again for a second one, asked if the first fails.",
)
@click.option("--build", is_flag=True, help="Build VERSION from Go modules, or what Debian has from its source.")
@click.option("--unverified", is_flag=True, help="With --build: use modules that no checksum database vouches for.")
@click.option(
    "--cache",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where versions are kept.  [default: /var/cache/protokube]",
)
@output_option(default="text", choices=("text", "json"))
def kubernetes(
    version: str | None,
    folder: Path | None,
    mirrors: tuple[str, ...],
    build: bool,
    unverified: bool,
    cache: Path | None,
    output: str,
) -> None:
    """Get the programs of a version of Kubernetes.

    What PROTOKUBE_KUBERNETES_BIN names is used as it is. Then comes the cache; only what is not in it is downloaded,
    copied or built, checked, and put there whole. A download that was cut off goes on where it was. Without VERSION:
    what the folder or Debian has; else the newest that is here. A build takes a quarter of an hour on two processors;
    from modules it needs Go, which is taken from PyPI where none is new enough.

    \b
      protokube get kubernetes 1.34.1
      protokube get kubernetes 1.34.1 --mirror https://mirror.example.com/kubernetes
      protokube get kubernetes 1.34.1 --from /media/usb/kubernetes/server/bin
      protokube get kubernetes 1.36.4 --build
      protokube get kubernetes --build
    """
    from protokube.cli.progress import Progress
    from protokube.programs.kubernetes import CACHE
    from protokube.programs.obtain import obtain

    context = click.get_current_context()
    asked = context.get_parameter_source("mirrors") is click.core.ParameterSource.COMMANDLINE
    # a mirror of the environment is there for all downloads; it does not speak against another way
    chosen = mirrors if asked or not (folder or build) else ()
    if chosen and asked and version is None:
        raise InvalidRequest("--mirror says where, and not what", hint="name a version, such as 1.34.1")
    with ending_like_ctrl_c():
        got = obtain(
            version,
            cache or CACHE,
            folder=folder,
            mirrors=chosen,
            build=build,
            unverified=unverified,
            teller=Progress(),
        )
    if output == "json":
        programs = {name: str(path) for name, path in got.programs.items()}
        click.echo(json.dumps({"version": got.version, "folder": str(got.folder), "programs": programs}, indent=2))
    else:
        click.echo(f"Kubernetes {got.version} is in {got.folder}")
