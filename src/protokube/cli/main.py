"""The `protokube` command.

Commands are loaded when they are called, not before: `--help` imports none of them. This is the outermost frame: an
error of ours is shown as what happened, what we saw and what to do; a bug as one sentence and the way to report it.
"""

from __future__ import annotations

import errno
import importlib
import itertools
import os
import select
import sys
from typing import Any

import click

from protokube import __version__
from protokube.errors import ExitCode, ProtokubeError, Refused

COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("protokube.cli.up.command:up", "The main job on one machine: a control plane that heals."),
    "down": ("protokube.cli.down:down", "Take the local cloud away, all of it."),
    "status": ("protokube.cli.status:status", "How far a local cluster has come up, and what it waits for."),
    "explain": ("protokube.cli.explain:explain", "Why a volume, member or name waits, or where it comes from."),
    "drill": ("protokube.cli.drill:drill", "Break something on purpose, watch it heal, and judge."),
    "etcd": ("protokube.cli.etcd:etcd", "The members of etcd, and volumes that came from elsewhere."),
    "load": ("protokube.cli.load:load", "Bring images to a local cluster, without a registry."),
    "export": ("protokube.cli.export:export", "A kubeconfig for a person, which ends by itself."),
    "agent": ("protokube.cli.agent:agent", "The daemon on each master: disks, names and etcd, by rounds."),
    "dns-controller": ("protokube.cli.dns.controller:dns_controller", "What annotations ask for stands in DNS."),
    "api-proxy": ("protokube.cli.api_proxy:api_proxy", "The way of one machine to whichever API server answers."),
    "complete": ("protokube.cli.complete.command:complete", "A spec of a few lines, as the complete configuration."),
    "completion": ("protokube.cli.completion:completion", "Shell completion for bash, zsh or fish."),
    "diff": ("protokube.cli.diff:diff", "Two complete configurations side by side, with reasons."),
    "get": ("protokube.cli.get.command:get", "Read clusters back from a state store."),
    "token": ("protokube.cli.token:token", "What new nodes show to be let in."),
    "schema": ("protokube.cli.schema:schema", "The JSON Schema of our documents, for editors."),
}
DEBUG = "PROTOKUBE_DEBUG"


class Commands(click.Group):
    """A group that knows its commands by name and loads one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from protokube.spec.decode import near

            raise click.UsageError(f"there is no command {args[0]!r}. {near(args[0], COMMANDS)}".rstrip(), ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ENOSPC) or (error.errno == errno.EPIPE and not nobody_reads()):
                raise
            # writing the rest at exit would fail again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno == errno.ENOSPC:
                raise Refused(f"cannot write the result: {error.strerror}") from error
            return ExitCode.OK  # whoever read our output stopped reading; click's 1 is our word for "different"
        return result


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="protokube")
def cli() -> None:
    """A Kubernetes control plane that nobody has to nurse.

    From a spec of a few lines to every flag of every component: `protokube complete examples/minimal.yaml`.
    """


def run(arguments: list[str] | None = None) -> int:
    """One call of the command; the exit code says who has to act."""
    said = sys.argv[1:] if arguments is None else arguments
    try:
        result = cli.main(args=arguments, prog_name="protokube", standalone_mode=False)
    except ProtokubeError as error:
        return tell(error, said)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return ExitCode.INVALID
    except click.ClickException as error:
        click.echo(f"error: {error.format_message()}", err=True)
        context = getattr(error, "ctx", None)
        click.echo(f"  hint: {context.command_path if context else 'protokube'} --help", err=True)
        return ExitCode.INVALID
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        return 130
    except PermissionError as error:
        what = f"{error.filename}: " if error.filename else ""
        refused = Refused(f"{what}{error.strerror}", hint="" if os.geteuid() == 0 else "is it root's? then sudo")
        return tell(refused, said)
    except Exception as bug:  # the outermost frame: a traceback is no answer to a user
        if os.environ.get(DEBUG):
            raise
        if isinstance(bug, ModuleNotFoundError) and (extra := extra_of(bug.name or "")):
            hint = f"pip install 'protokube[{extra}]'"
            return tell(Refused(f"this needs {bug.name}, which is not installed", hint=hint), said)
        click.echo(f"error: a bug in protokube: {type(bug).__name__}: {bug}", err=True)
        click.echo(f"  hint: run it again with {DEBUG}=1 and report what it prints", err=True)
        return ExitCode.BUG
    return int(result) if isinstance(result, int) else ExitCode.OK


def tell(error: ProtokubeError, arguments: list[str]) -> int:
    """An error for a person, or as data where data was asked for."""
    if wants_json(arguments):
        import json

        problems = [
            {"path": each.path, "message": each.message, "hint": each.hint, "where": str(each.where or "")}
            for each in getattr(error, "problems", ())
        ]
        told: dict[str, Any] = {"error": error.message, "saw": error.saw, "want": error.want, "hint": error.hint}
        told["problems"] = problems
        click.echo(json.dumps({key: value for key, value in told.items() if value}, indent=2), err=True)
    else:
        click.echo(f"error: {error}", err=True)
    return error.exit_code


def extra_of(module: str) -> str:
    """The extra that brings a library; empty for one that has to be there."""
    known = {
        "agent": ("cryptography", "dns", "jeepney", "prometheus_client"),
        "dns": ("httpx2", "lightkube", "msgspec"),
        "route53": ("boto3", "botocore"),
    }
    return next((extra for extra, modules in known.items() if module.partition(".")[0] in modules), "")


def nobody_reads() -> bool:
    """Whether it is our own output that is broken, and not a connection that we have."""
    asked = select.poll()
    for number in (1, 2):
        asked.register(number, 0)
    return any(happened & select.POLLERR for _, happened in asked.poll(0))


def have_streams() -> None:
    """A stream that the caller closed leads nowhere; else a file that we open takes its number, and what we print."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode))


def wants_json(arguments: list[str]) -> bool:
    pairs = itertools.pairwise(arguments)
    return any(pair in {("-o", "json"), ("--output", "json")} for pair in pairs) or bool(
        {"-ojson", "--output=json"} & set(arguments)
    )


def main() -> None:
    have_streams()
    sys.exit(run())
