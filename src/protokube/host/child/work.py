"""Run the requested job in the child, and encode its result."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from protokube.host.child import formatting, mounting, proof, writing
from protokube.host.child.claim import Refusal, Wanted


def main(request: str) -> None:
    sys.stdout.write(json.dumps(answer(json.loads(request))) + "\n")
    sys.stdout.flush()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do the job; a refusal is a result too. Any other error ends the child with a traceback."""
    try:
        return do(request)
    except mounting.Damaged as why:
        return {"failed": str(why), "damaged": True}
    except (Refusal, OSError) as why:
        return {"failed": str(why)}


def do(request: dict[str, Any]) -> dict[str, Any]:
    job = request["job"]
    if job == "unmount":
        mounting.unmount(Path(request["point"]).resolve(), pair(request["number"]))
        return {"done": True}
    if job == "write":
        return writing.test(Path(request["point"]).resolve(), pair(request["number"]))
    wanted = Wanted(request["path"], pair(request["number"]), request["size"], request["serial"])
    if job == "probe":
        found = proof.probe(wanted)
        return {"content": found.content, "told": found.description, "uuid": found.uuid}
    if job == "format":
        formatting.format_device(wanted, request["uuid"], request["again"], request["parent"])
    elif job == "mount":
        mounting.mount(wanted, Path(request["point"]).resolve(), request["parent"])
    else:
        raise Refusal(f"there is no job {job!r}")
    return {"done": True}


def pair(number: list[int]) -> tuple[int, int]:
    major, minor = number
    return major, minor
