"""The spec that `up` works on: a file of the user, the one that an existing cluster keeps, or a default one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from protokube.cli.up.change import refuse_renamed
from protokube.cli.up.choosing import default_spec, read_default_spec, read_spec
from protokube.cli.up.existing import kept_spec
from protokube.errors import InvalidRequest

if TYPE_CHECKING:
    from protokube.cli.shared.inputs import Texts
    from protokube.spec.parse import Spec


def read_input(file: Path | None, name: str, masters: int | None, *, events: bool) -> tuple[Spec, Texts]:
    """The SPEC that is given, or that of the existing cluster, or a default one."""
    if file is None:
        return kept_spec(name) or read_default_spec(default_spec(name, masters or 3, events))
    parsed, texts = read_spec(file)
    check_conflicting_options(parsed.name, name, masters, events=events)
    refuse_renamed(file, parsed.name)
    return parsed, texts


def check_conflicting_options(called: str, name: str, masters: int | None, *, events: bool) -> None:
    """InvalidRequest for options that conflict with the SPEC: they must not be ignored silently."""
    typed = click.get_current_context().get_parameter_source("name") is click.core.ParameterSource.COMMANDLINE
    options = {f"--cluster {name}": typed and name != called, "--masters": masters is not None, "--events": events}
    if given := [option for option, is_given in options.items() if is_given]:
        raise InvalidRequest(f"{', '.join(given)}: the spec of {called} sets that", hint="set it in the spec")
