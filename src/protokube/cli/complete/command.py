"""`protokube complete`: expand a spec into the complete configuration."""

from __future__ import annotations

import sys

import click

from protokube.cli.shared.options import output_option, show_warnings, store_option


def known_paths(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion for `--why`: the field paths of this spec, one level at a time."""
    from protokube.cli.shared.inputs import read_specs
    from protokube.config.complete import complete as complete_spec
    from protokube.config.why import flatten
    from protokube.errors import ProtokubeError
    from protokube.spec.parse import read

    # while `--why` has no value yet, click leaves the SPEC arguments unparsed in `ctx.args`
    specs = ctx.params.get("specs") or [each for each in ctx.args if each == "-" or not each.startswith("-")]
    if "-" in specs:  # during completion, stdin is the user's terminal
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
    "--why", "path", metavar="PATH", shell_complete=known_paths, help="Explain where the value at PATH comes from."
)
@store_option(required=False)
@click.option("-q", "--quiet", is_flag=True, help="Print no warnings.")
def complete(specs: tuple[str, ...], output: str, path: str | None, store_url: str | None, quiet: bool) -> None:
    """Expand a short spec into the complete configuration.

    SPEC is a file, a directory, or - for standard input; several SPECs describe one cluster. The result contains every
    flag and configuration file of every component. It is itself a valid spec: completing it again changes nothing.
    With --store it is written to the state store, and the paths written are printed.

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
        from protokube.cli.complete.why import show_why

        show_why(config, path, output)
    elif store_url:
        from protokube.cli.complete.store import write_store

        write_store(config, texts, store_url, output)
    else:
        from protokube.config.document import documents, write

        write(documents(config), output, sys.stdout)
