"""Manual pages for every command, from its --help: `pages` gives them by file name, as roff.

What is hard is that text is not roff: a line that begins with a dot or a quote, and every backslash and hyphen, would
be taken for a request or for typography.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from protokube import __version__
from protokube.cli.get import command as get
from protokube.cli.main import COMMANDS, cli

SECTION = "1"
EXIT_STATUS = (
    "0: done. 1: what was compared differs. 2: the request is invalid. 3: try again later. 4: refused. 70: a bug. "
    "130: stopped by Ctrl\\-C."
)


def pages() -> dict[str, str]:
    """By file name, such as `protokube-get-etcd.1`."""
    return {f"{name.replace(' ', '-')}.{SECTION}": page(name, command) for name, command in walk("protokube", cli)}


def walk(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """A command and those below it, by the words that call them."""
    yield name, command
    for each, found in below(command).items():
        yield from walk(f"{name} {each}", found)


def below(command: click.Command) -> dict[str, click.Command]:
    """The subcommands; `get` has some beside the names of clusters."""
    if isinstance(command, get.Get):
        return {each: found for each in get.OTHERS if (found := get.other_command(each))}
    if not isinstance(command, click.Group):
        return {}
    context = click.Context(command)
    known = {each: command.get_command(context, each) for each in command.list_commands(context)}
    return {each: found for each, found in known.items() if found and not found.hidden}


def page(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name, help_option_names=["-h", "--help"])
    title, parent = name.replace(" ", "-"), name.rpartition(" ")[0]
    subcommands = below(command)
    lines = [
        f'.TH "{title.upper()}" "{SECTION}" "" "protokube {escaped(__version__)}" "protokube"',
        ".SH NAME",
        f"{escaped(title)} \\- {escaped(short(name, command))}",
        ".SH SYNOPSIS",
        f".B {escaped(name)}",
        escaped(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        *paragraphs(command.help or ""),
        *options(command, context),
    ]
    if subcommands:
        lines += [".SH COMMANDS"]
    for each, found in subcommands.items():
        lines += [".TP", f".B {escaped(each)}", escaped(short(f"{name} {each}", found))]
    also = [f"{title}-{each}" for each in subcommands] + ([parent.replace(" ", "-")] if parent else [])
    references = [f".BR {escaped(each)} ({SECTION})" for each in also]
    lines += [".SH EXIT STATUS", EXIT_STATUS, ".SH SEE ALSO", *(f"{each}," for each in references[:-1]), references[-1]]
    return "\n".join(lines) + "\n"


def short(name: str, command: click.Command) -> str:
    """The one sentence of a command, without its full stop."""
    words = name.split(" ")
    text = COMMANDS[words[1]][1] if len(words) == 2 and words[1] in COMMANDS else command.get_short_help_str(limit=200)
    return text.rstrip(".")


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    rows = [row for each in command.get_params(context) if (row := each.get_help_record(context)) and row[1]]
    if rows:
        yield ".SH OPTIONS"
    for names, text in rows:
        yield from (".TP", f".B {escaped(names)}", escaped(" ".join(text.split())))


def paragraphs(text: str) -> Iterator[str]:
    """A help text as click reads it: a paragraph that begins with \\b keeps its lines."""
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        kept = paragraph.lstrip().startswith("\b")
        body = [line for line in paragraph.replace("\b", "").splitlines() if line.strip()]
        yield from [".PP"] * bool(number)
        if kept:
            yield from (".nf", *(escaped(line) for line in body), ".fi")
        else:
            yield from (escaped(line.strip()) for line in body)


def escaped(text: str) -> str:
    """Text that roff shows as it is."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain
