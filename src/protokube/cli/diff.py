"""`protokube diff`: compare two complete configurations, with the reason for each value."""

from __future__ import annotations

import json

import click

from protokube.cli.shared.options import output_option
from protokube.errors import ExitCode


@click.command()
@click.argument("left", metavar="A", type=click.Path(allow_dash=True))
@click.argument("right", metavar="B", type=click.Path(allow_dash=True))
@output_option(default="text", choices=("text", "json"))
@click.option("--width", type=int, default=None, help="Width of the table in columns.  [default: that of the terminal]")
def diff(left: str, right: str, output: str, width: int | None) -> int:
    """Compare two complete configurations, with reasons.

    A and B are specs: files, directories, or - for standard input. Each is completed first; then every value that
    differs is shown side by side, with where it comes from. Exit code 1 if they differ.

    \b
      protokube diff before.yaml after.yaml
    """
    import shutil

    from protokube.cli.shared.inputs import read_specs
    from protokube.config.complete import complete
    from protokube.config.diff import differences, table
    from protokube.spec.parse import read

    found = list(differences(*(complete(read(read_specs((name,)))) for name in (left, right))))
    if output == "json":
        rows = [
            {
                "path": each.path,
                "left": {"value": each.left.value, "why": each.left.reason} if each.left.present else None,
                "right": {"value": each.right.value, "why": each.right.reason} if each.right.present else None,
            }
            for each in found
        ]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif found:
        for line in table(found, left, right, width or shutil.get_terminal_size((120, 24)).columns):
            click.echo(line)
    else:
        click.echo("the same configuration")
    return ExitCode.DIFFERENT if found else ExitCode.OK
