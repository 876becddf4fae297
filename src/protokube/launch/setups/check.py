"""Whether the parts of a machine's setup fit together: paths, digests, names. All problems at once."""

from __future__ import annotations

import posixpath
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator

from protokube.errors import InvalidRequest, Problem
from protokube.launch.boot import LaunchDocument
from protokube.launch.setups.values import DOCUMENTS, MASTER, NODE, MachineSetup
from protokube.spec import version as versions

DIGEST = re.compile(r"[0-9a-f]{64}")
UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]{1,200}\.(service|socket|timer|path|mount|target)")
SYSCTL = re.compile(r"[A-Za-z0-9_./*-]+")
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+:~@-]{0,199}")
UPDATE_POLICIES = ("", "automatic", "external")
SCHEMES = ("https://", "http://", "file:///")


def problems_of(setup: MachineSetup) -> list[Problem]:
    return [Problem(path=path, message=message) for path, message in _problems(setup)]


def _problems(setup: MachineSetup) -> Iterator[tuple[str, str]]:
    if versions.parse(setup.kubernetes) is None:
        yield "kubernetes", "is not a version"
    if setup.role not in (MASTER, NODE):
        yield "role", f"is not {MASTER} or {NODE}"
    if (setup.agent is None) == (setup.role == MASTER):
        yield "agent", "is what masters have, and no others"
    try:
        if setup.agent is not None:
            LaunchDocument.from_tree(dict(setup.agent), "its document")
    except InvalidRequest as error:
        yield "agent", error.in_one_line()
    yield from _assets(setup)
    yield from _paths(setup)
    for name, files in (("files", setup.files), ("documents", setup.documents)):
        for index, file in enumerate(files):
            try:
                b64decode(file.content, validate=True)
            except ValueError:
                yield f"{name}[{index}].content", "is not base64"
    yield from _hooks(setup)
    yield from _lines(setup)
    for name in setup.sysctls:
        if not SYSCTL.fullmatch(name):
            yield f"sysctls.{name}", "is not the name of a kernel parameter"
    if setup.update_policy not in UPDATE_POLICIES:
        yield "updatePolicy", "is not automatic, external or empty"
    yield from _twice(setup)


def _lines(setup: MachineSetup) -> Iterator[tuple[str, str]]:
    """Where another line would be another setting of the file that it goes to."""
    found = [(f"sshKeys[{index}]", key) for index, key in enumerate(setup.ssh_keys)]
    found += [(f"sysctls.{name}", value) for name, value in setup.sysctls.items()]
    found += [(f"modules[{index}]", name) for index, name in enumerate(setup.modules)]
    if setup.proxy:
        found += [("proxy.url", setup.proxy.url), *(("proxy.excludes", each) for each in setup.proxy.excludes)]
    for index, hook in enumerate(setup.hooks):
        found += [(f"hooks[{index}]", each) for each in (*hook.requires, *hook.before)]
    yield from ((at, "is not one line") for at, text in found if len(text.splitlines()) > 1)


def _hooks(setup: MachineSetup) -> Iterator[tuple[str, str]]:
    for index, hook in enumerate(setup.hooks):
        if not UNIT.fullmatch(hook.name):
            yield f"hooks[{index}].name", "is not the name of a unit"
        kinds = sum(map(bool, (hook.service, hook.unit, hook.container)))
        if kinds != 1 and not hook.disabled:
            yield f"hooks[{index}]", "has one of service, unit and container"


def _twice(setup: MachineSetup) -> Iterator[tuple[str, str]]:
    for kind, names in (
        ("files", [each.path for each in setup.files]),
        ("mounts", [each.path for each in setup.mounts]),
        ("hooks", [each.name for each in setup.hooks]),
        ("programs", [each.path for each in setup.programs]),
        ("images", [each.name for each in setup.images]),
    ):
        yield from ((kind, f"has {name} twice") for name, count in Counter(names).items() if count > 1)


def _assets(setup: MachineSetup) -> Iterator[tuple[str, str]]:
    for index, each in enumerate(setup.assets):
        at = f"assets[{index}]"
        if not FILE_NAME.fullmatch(each.name):
            yield f"{at}.name", "is not a file name"
        if not DIGEST.fullmatch(each.sha256):
            yield f"{at}.sha256", "is not a SHA-256 digest"
        if not each.urls or not all(url.startswith(SCHEMES) for url in each.urls):
            yield f"{at}.urls", "are not https, http or file URLs"
        if any("@" in url.partition("://")[2].partition("/")[0] for url in each.urls):
            yield f"{at}.urls", "have a user or a password, which every process of the machine could read"
    seen = Counter((each.name, each.processor) for each in setup.assets)
    yield from (("assets", f"has {name} twice") for (name, _), count in seen.items() if count > 1)
    known = {each.name for each in setup.assets}
    for index, program in enumerate(setup.programs):
        if program.asset not in known:
            yield f"programs[{index}].asset", f"there is no asset {program.asset}"
    for index, image in enumerate(setup.images):
        if image.asset not in known:
            yield f"images[{index}].asset", f"there is no asset {image.asset}"


def _paths(setup: MachineSetup) -> Iterator[tuple[str, str]]:
    found = [("pki", setup.pki), ("runtime.address", setup.runtime.address)]
    found += [("runtime.root", setup.runtime.root), ("runtime.state", setup.runtime.state)]
    found += [(f"kubelet.files.{path}", path) for path in setup.kubelet.files]
    found += [(f"files[{index}].path", each.path) for index, each in enumerate(setup.files)]
    found += [(f"programs[{index}].path", each.path) for index, each in enumerate(setup.programs)]
    found += [(f"mounts[{index}].path", each.path) for index, each in enumerate(setup.mounts)]
    found += [(f"mounts[{index}].device", each.device) for index, each in enumerate(setup.mounts)]
    for index, each in enumerate(setup.documents):
        found.append((f"documents[{index}].path", each.path))
        if not each.path.startswith(f"{DOCUMENTS}/"):
            yield f"documents[{index}].path", f"is not below {DOCUMENTS}"
    for at, path in found:
        if not path.startswith("/") or posixpath.normpath(path) != path or path.startswith("//"):
            yield at, "is not an absolute, normalized path"
    for index, each in enumerate((*setup.files, *setup.documents)):
        if not 0 <= each.mode <= 0o777:
            yield f"files[{index}].mode", "is not a file mode"
