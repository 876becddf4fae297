"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from protokube.errors import Problem

Decorated = Callable[..., Any]


class Choice(click.Choice[str]):
    """One of some words; a mistyped one is told with the one probably meant."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        from protokube.nearest import near

        return " ".join([super().get_invalid_choice_message(value, ctx), near(str(value), self.choices)]).rstrip()


def output_option(*, default: str, choices: tuple[str, ...] = ("yaml", "json")) -> Callable[[Decorated], Decorated]:
    kind = Choice(choices)
    return click.option("-o", "--output", type=kind, default=default, show_default=True, help="Output format.")


def store_option(*, required: bool) -> Callable[[Decorated], Decorated]:
    text = "State store: file:///path, s3://bucket/prefix, gs://bucket/prefix, https://host/prefix."
    return click.option(
        "--store", "store_url", metavar="URL", envvar="PROTOKUBE_STORE", show_envvar=True, required=required, help=text
    )


def show_warnings(warnings: Iterable[Problem]) -> None:
    """Print to stderr, so that stdout has the result alone."""
    for each in warnings:
        first, *rest = str(each).splitlines()
        click.echo(f"warning: {first}", err=True)
        for line in rest:
            click.echo(line, err=True)
