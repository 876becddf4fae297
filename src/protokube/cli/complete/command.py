"""`protokube complete`: a spec in, the complete configuration out."""

from __future__ import annotations

import sys

import click

from protokube.cli.shared.options import output_option, show_warnings, store_option


def known_paths(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """What `--why` can be asked, for the shell: the paths of this very spec, one step further."""
    from protokube.cli.shared.inputs import read_specs
    from protokube.config.complete import complete as complete_spec
    from protokube.config.why import flatten
    from protokube.errors import ProtokubeError
    from protokube.spec.parse import read

    # click stops at `--why` without a value, before it sorts out what the rest is
    specs = ctx.params.get("specs") or [each for each in ctx.args if each == "-" or not each.startswith("-")]
    if "-" in specs:  # standard input is the terminal while a shell completes
        return []
    try:
        paths = flatten(complete_spec(read(read_specs(tuple(specs))))) if specs else {}
    except ProtokubeError:
        return []
    depth = incomplete.count(".") + 1
    return list(dict.fromkeys(".".join(each.split(".")[:depth]) for each in paths if each.startswith(incomplete)))


@click.command()
@click.argument("specs", metavar="SPEC...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@output_option(default="yaml")
@click.option(
    "--why", "path", metavar="PATH", shell_complete=known_paths, help="Say where one value comes from instead."
)
@store_option(required=False)
@click.option("-q", "--quiet", is_flag=True, help="No warnings.")
def complete(specs: tuple[str, ...], output: str, path: str | None, store_url: str | None, quiet: bool) -> None:
    """A spec of a few lines, as the complete configuration.

    SPEC is a file, a directory, or - for standard input; several belong to one cluster. The result names every flag
    and every configuration file of every component, and is a spec again: completing it changes nothing.

    \b
      protokube complete examples/minimal.yaml
      protokube complete examples/minimal.yaml --why kubelet.maxPods
      protokube complete examples/minimal.yaml --why kubeAPIServer.flags.etcd-servers
      protokube complete cluster.yaml nodes.yaml --store s3://bucket/clusters
    """
    from protokube.cli.shared.inputs import read_specs
    from protokube.config.complete import complete as complete_spec
    from protokube.spec.parse import read

    texts = read_specs(specs)
    config = complete_spec(read(texts), store=store_url)
    if not quiet:
        show_warnings(config.warnings)
    if path is not None:
        from protokube.cli.complete.why import tell_why

        tell_why(config, path, output)
    elif store_url:
        from protokube.cli.complete.store import write_store

        write_store(config, texts, store_url, output)
    else:
        from protokube.config.document import documents, write

        write(documents(config), output, sys.stdout)
