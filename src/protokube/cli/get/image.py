"""`protokube get image`: build the image of the dns-controller from what is installed here."""

from __future__ import annotations

import json
from pathlib import Path

import click

from protokube.cli.shared.options import output_option


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@output_option(default="text", choices=("text", "json"))
def image(file: Path, output: str) -> None:
    """Make the image of the dns-controller.

    FILE is written in the format of `docker save`; an existing file is not overwritten. Nothing is downloaded: the
    image has the Python that runs this command, protokube, and its dependencies for the DNS providers that are
    installed here. It runs on machines of the same architecture and needs nothing else on them.

    \b
      protokube get image dns-controller.tar
      ctr --namespace k8s.io images import dns-controller.tar
      docker load --input dns-controller.tar
    """
    from protokube.cli.render.table import size
    from protokube.cli.shared.progress import Progress
    from protokube.config import dnscontroller
    from protokube.errors import Refused
    from protokube.host.files import write_atomic
    from protokube.images import build, pythonimage

    try:
        if file.exists():
            raise Refused(f"{file} is there already", hint="another name, or remove it first")
        if not file.parent.is_dir():
            raise Refused(f"there is no folder {file.parent}")
        file.touch(exist_ok=False)  # check that it can be written, before minutes of work
        file.unlink()
    except OSError as error:
        raise Refused(f"cannot write {file}: {error.strerror}", hint="name another file") from error
    with Progress(quiet=output == "json").step(f"the image {dnscontroller.IMAGE}"):
        providers = [name for name, extras in dnscontroller.EXTRAS.items() if pythonimage.installed(extras)]
        extras = {extra for name in providers or [dnscontroller.RFC2136] for extra in dnscontroller.EXTRAS[name]}
        data = build.archive(pythonimage.image(dnscontroller.IMAGE, sorted(extras)))
        write_atomic(file, data)
    if output == "json":
        result = {"image": dnscontroller.IMAGE, "file": str(file), "bytes": len(data), "providers": providers}
        click.echo(json.dumps(result, indent=2))
    else:
        click.echo(f"{dnscontroller.IMAGE}, for {' and '.join(providers)}, is in {file} ({size(len(data))})")
