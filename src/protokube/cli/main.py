"""The `protokube` command.

Commands are imported lazily: `--help` imports none of them. `run` is the outermost exception handler: an error of ours
is printed as error / saw / want / hint, and a bug as one sentence with a hint how to report it (`shared/failure.py`).
"""

from __future__ import annotations

import errno
import importlib
import os
import select
import stat
import sys
from typing import Any

import click

from protokube import __version__
from protokube.errors import ExitCode, Refused

COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("protokube.cli.up.command:up", "Bring up a self-healing control plane on this machine."),
    "down": ("protokube.cli.down:down", "Remove a local cluster completely."),
    "list": ("protokube.cli.list:list_clusters", "List the local clusters: state, masters, versions, age."),
    "stop": ("protokube.cli.stop:stop", "Stop a local cluster; `protokube start` starts it again."),
    "start": ("protokube.cli.up.start:start", "Start a stopped cluster, also after a reboot of the machine."),
    "status": ("protokube.cli.status:status", "Show the state of a cluster and what it waits for."),
    "logs": ("protokube.cli.logs.command:logs", "Show and follow logs of hosts, members and components."),
    "shell": ("protokube.cli.shell.command:shell", "Open a shell in a host, or run a command there."),
    "expose": ("protokube.cli.expose.command:expose", "Reach Services of a cluster at ports of this machine."),
    "rollout": ("protokube.cli.rollout:rollout", "Show revisions and their rollout; return to an earlier one."),
    "explain": ("protokube.cli.explain:explain", "Explain the state of a volume, etcd member or DNS record."),
    "drill": ("protokube.cli.drill:drill", "Inject a fault, watch the cluster heal, and judge."),
    "etcd": ("protokube.cli.etcd:etcd", "List etcd members; adopt or accept etcd volumes."),
    "bundle": ("protokube.cli.bundle:bundle", "Pack all that machines of a role need into one file."),
    "load": ("protokube.cli.load:load", "Load images into a local cluster, without a registry."),
    "export": ("protokube.cli.export:export", "Export a kubeconfig with a short-lived certificate."),
    "nodeup": (
        "protokube.cli.nodeup.command:nodeup",
        "Provision this machine, up to an installed kubelet.",
    ),
    "agent": ("protokube.cli.agent:agent", "Run the agent of a master: disks, names, etcd, components."),
    "dns-controller": ("protokube.cli.dns.controller:dns_controller", "Publish DNS records for annotated objects."),
    "api-proxy": ("protokube.cli.api_proxy:api_proxy", "Proxy local clients to an API server that is ready."),
    "complete": ("protokube.cli.complete.command:complete", "Expand a short spec into the complete configuration."),
    "completion": ("protokube.cli.completion:completion", "Shell completion for bash, zsh or fish."),
    "diff": ("protokube.cli.diff:diff", "Compare two complete configurations, with reasons."),
    "get": ("protokube.cli.get.command:get", "Read clusters from a state store; get binaries."),
    "token": ("protokube.cli.token:token", "Manage bootstrap tokens, with which new nodes join."),
    "version": ("protokube.cli.version:version", "Show versions: protokube, Python, etcd and Kubernetes."),
    "schema": ("protokube.cli.schema:schema", "Print the JSON Schema of spec documents, for editors."),
}


class Commands(click.Group):
    """Command group that imports a command only when it is called."""

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
            from protokube.nearest import near

            raise click.UsageError(f"there is no command {args[0]!r}. {near(args[0], COMMANDS)}".rstrip(), ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except OSError as error:
            full = error.errno == errno.ENOSPC and error.filename is None and output_is_file()
            if not full and not (error.errno == errno.EPIPE and output_closed()):
                raise
            # Python flushes the rest at exit, which would fail again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if full:
                raise Refused(f"cannot write the result: {error.strerror}", code="output") from error
            return ExitCode.OK  # the reader closed the pipe; click would exit with 1, which means "different" here
        return result


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="protokube")
def cli() -> None:
    """A self-healing Kubernetes control plane.

    `protokube complete examples/minimal.yaml` expands a spec of a few lines into every flag of every component.
    """


def run(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; docs/exit-codes.md says who has to act."""
    argv = sys.argv[1:] if arguments is None else arguments
    try:
        result = cli.main(args=arguments, prog_name="protokube", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return ExitCode.INVALID
    except (Exception, KeyboardInterrupt) as error:  # the outermost frame: a user gets a sentence, not a traceback
        from protokube.cli.shared.failure import DEBUG, describe, show_failure

        if os.environ.get(DEBUG) and describe(error)[1] is ExitCode.BUG:
            raise
        return show_failure(error, argv)
    return int(result) if isinstance(result, int) else ExitCode.OK


def output_is_file() -> bool:
    """Whether stdout is on a disk, which may be full; ENOSPC may also come from another file."""
    mode = os.fstat(sys.stdout.fileno()).st_mode
    return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not sys.stdout.isatty())


def output_closed() -> bool:
    """Whether the reader of stdout or stderr is gone. EPIPE may also come from one of our sockets."""
    poller = select.poll()
    for number in (1, 2):
        poller.register(number, 0)
    return any(events & select.POLLERR for _, events in poller.poll(0))


def have_streams() -> None:
    """Open /dev/null for closed standard streams; else our next file gets the descriptor, and with it our output."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode))


def main() -> None:
    have_streams()
    sys.exit(run())
