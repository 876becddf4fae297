"""`protokube get image`: the image of the dns-controller, made from what is installed here."""

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

    FILE is written as `docker save` would; a file that is there already is left alone. Nothing is downloaded: in the
    image are the Python that runs this command, protokube, and what it needs for the providers of DNS that are
    installed here. It needs a machine of the same kind, and nothing else on it.

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
    from protokube.local.image import images, pythonimage

    try:
        if file.exists():
            raise Refused(f"{file} is there already", hint="another name, or remove it first")
        if not file.parent.is_dir():
            raise Refused(f"there is no folder {file.parent}")
        file.touch(exist_ok=False)  # before minutes of work, whether it can be written at all
        file.unlink()
    except OSError as error:
        raise Refused(f"cannot write {file}: {error.strerror}", hint="name another file") from error
    with Progress(quiet=output == "json").step(f"the image {dnscontroller.IMAGE}"):
        providers = [name for name, extras in dnscontroller.EXTRAS.items() if pythonimage.installed(extras)]
        extras = {extra for name in providers or [dnscontroller.RFC2136] for extra in dnscontroller.EXTRAS[name]}
        data = images.archive(pythonimage.image(dnscontroller.IMAGE, sorted(extras)))
        write_atomic(file, data)
    if output == "json":
        told = {"image": dnscontroller.IMAGE, "file": str(file), "bytes": len(data), "providers": providers}
        click.echo(json.dumps(told, indent=2))
    else:
        click.echo(f"{dnscontroller.IMAGE}, for {' and '.join(providers)}, is in {file} ({size(len(data))})")
