"""Shared by `protokube get kubernetes`, `etcd` and `coredns`: options, cache and output."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from protokube.cli.shared.options import output_option
from protokube.errors import InvalidRequest
from protokube.signals import ending_like_ctrl_c

if TYPE_CHECKING:
    from protokube.binaries.product import Product

Command = Callable[..., None]


def version_argument(find_product: Callable[[], Product]) -> Callable[[Command], Command]:
    """The VERSION argument; the shell completes versions in the cache."""

    def kept_versions(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        from protokube.binaries.product import CACHE

        versions = find_product().complete_versions(ctx.params.get("cache") or CACHE)
        return [each for each in versions if each.startswith(incomplete)]

    return click.argument("version", metavar="[VERSION]", required=False, shell_complete=kept_versions)


def origin_options(*, official: str, mirror_variable: str, build: str) -> Callable[[Command], Command]:
    """The options for where programs come from; the parameters are help texts for one product."""
    options = (
        click.option(
            "--from",
            "folder",
            metavar="DIR",
            type=click.Path(path_type=Path, exists=True, file_okay=False),
            help="Copy the programs from this folder; for machines without a network.",
        ),
        click.option(
            "--mirror",
            "mirrors",
            metavar="URL",
            multiple=True,
            envvar=mirror_variable,
            show_envvar=True,
            help=f"Download from here instead of {official}; repeat it for mirrors to try if the first one fails.",
        ),
        click.option("--build", is_flag=True, help=build),
        click.option(
            "--unverified", is_flag=True, help="With --build: use modules that no checksum database has verified."
        ),
        click.option(
            "--cache",
            metavar="DIR",
            type=click.Path(path_type=Path, file_okay=False),
            help="The folder of the cache.  [default: PROTOKUBE_CACHE, else /var/cache/protokube]",
        ),
        output_option(default="text", choices=("text", "json")),
    )

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def get_programs(
    product: Product,
    version: str | None,
    cache: Path | None,
    output: str,
    *,
    mirrors: tuple[str, ...],
    **origin: Any,
) -> None:
    from protokube.binaries.obtain import Origin, obtain
    from protokube.binaries.product import CACHE
    from protokube.cli.shared.progress import Progress

    context = click.get_current_context()
    explicit = context.get_parameter_source("mirrors") is click.core.ParameterSource.COMMANDLINE
    # a mirror from the environment is for all downloads; it does not conflict with --from or --build
    chosen = mirrors if explicit or not (origin["folder"] or origin["build"]) else ()
    if chosen and explicit and version is None:
        raise InvalidRequest("--mirror needs a VERSION", hint=f"name a version, such as {product.example}")
    with ending_like_ctrl_c():
        got = obtain(product, version, cache or CACHE, Origin(mirrors=chosen, **origin), Progress())
    if output == "json":
        programs = {name: str(path) for name, path in got.programs.items()}
        click.echo(json.dumps({"version": got.version, "folder": str(got.folder), "programs": programs}, indent=2))
    else:
        click.echo(f"{product.name} {got.version} is in {got.folder}")
