"""How a command fails: text, or one JSON object with a stable code if `-o json` was asked for; and its exit code.

Imported only once something went wrong. A bug has the same form as any other error: a program that reads JSON must not
meet anything else.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Sequence
from typing import Any

import click

from protokube.errors import ExitCode, ProtokubeError, Refused

DEBUG = "PROTOKUBE_DEBUG"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
Fields = dict[str, Any]


def show_failure(error: BaseException, arguments: Sequence[str]) -> int:
    """Print any error to stderr; return its exit code."""
    fields, code, text = describe(error)
    if wants_json(arguments):
        fields = {"error": fields.pop("error"), **fields, "exitCode": int(code)}
        text = json.dumps({key: value for key, value in fields.items() if value}, indent=2, ensure_ascii=False)
    click.echo(text, err=True)
    return code


def describe(error: BaseException) -> tuple[Fields, ExitCode, str]:
    """As data, as an exit code, and as text."""
    match error:
        case ProtokubeError():
            return _of_ours(error)
        case click.ClickException():
            context = getattr(error, "ctx", None)
            message = error.format_message()
            hint = _named_by_position(message) or f"{context.command_path if context else 'protokube'} --help"
            return _described(message, "usage", ExitCode.INVALID, hint=hint)
        case click.Abort() | KeyboardInterrupt():
            return {"error": "stopped", "code": "stopped"}, ExitCode.STOPPED, "stopped"
        case PermissionError():
            what = f"{error.filename}: " if error.filename else ""
            root = os.geteuid() == 0
            hint, code = ("", "refused") if root else ("if root owns it, use sudo", "needs-root")
            return _of_ours(Refused(f"{what}{error.strerror}", hint=hint, code=code))
        case OSError() if error.errno in NO_ROOM:
            where = f" {error.filename}" if error.filename else ""
            return _of_ours(Refused(f"cannot write{where}: {error.strerror}", hint="make room on that disk"))
        case ModuleNotFoundError() if wanted := brought_by(error.name or ""):
            message, hint = f"this needs {error.name}, which is not installed", f"pip install '{wanted}'"
            return _of_ours(Refused(message, hint=hint, code="missing-program"))
    message = f"a bug in protokube: {type(error).__name__}: {error}"
    hint = f"run it again with {DEBUG}=1 and report what it prints"
    return _described(message, "bug", ExitCode.BUG, hint=hint)


def _named_by_position(message: str) -> str:
    """The option for the name of a local cluster that was given as an argument; empty if it is something else."""
    found = re.fullmatch(r"Got unexpected extra argument \((\S+)\)", message.rstrip("."))
    if found is None:
        return ""
    from protokube.local.choose import clusters

    try:
        return f"--cluster {found[1]}" if found[1] in clusters() else ""
    except OSError:
        return ""


def _described(message: str, code: str, exit_code: ExitCode, *, hint: str) -> tuple[Fields, ExitCode, str]:
    return {"error": message, "code": code, "hint": hint}, exit_code, f"error: {message}\n  hint: {hint}"


def _of_ours(error: ProtokubeError) -> tuple[Fields, ExitCode, str]:
    problems = [
        {"path": each.path, "message": each.message, "hint": each.hint, "where": str(each.where or "")}
        for each in getattr(error, "problems", ())
    ]
    fields = {"error": error.message, "code": error.code, "saw": error.saw, "want": error.want, "hint": error.hint}
    return {**fields, "problems": problems}, error.exit_code, f"error: {error}"


def brought_by(module: str) -> str:
    """What to install for a missing library; empty if it is none that we import only when it is needed."""
    known = {
        "protokube": ("cryptography", "dns", "jeepney", "msgspec", "prometheus_client"),
        "protokube[route53]": ("botocore",),
    }
    return next((wanted for wanted, modules in known.items() if module.partition(".")[0] in modules), "")


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether `-o json` was asked for, in any of its spellings, before a `--`: what follows that is not for us."""
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    words = " ".join(each if each and " " not in each else "?" for each in ours)
    return re.search(r"(?:^| )(?:-[A-Za-z]*o ?|--output[ =])json(?: |$)", words) is not None
