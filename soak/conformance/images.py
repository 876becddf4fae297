"""The images that the suite's pods run, under their official names, built from Go modules and Debian packages.

Kubernetes is tested, not these images: each has the programs that the tests call, at the paths where they call them.
The suite itself lists the images that it uses. An image that cannot be built here is reported, and tests that need it
do not count.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from protokube.binaries import executables
from protokube.binaries.etcd import ETCD
from protokube.binaries.product import Release
from protokube.images import build
from protokube.images.build import Image
from protokube.images.packages import unpack_whole
from soak.conformance.certificate import self_signed

TOOLS = {
    "bash": ("bin/bash",),
    "curl": ("usr/bin/curl",),
    "bind9-dnsutils": ("usr/bin/dig",),
    "netcat-openbsd": ("bin/nc.openbsd",),
    "iproute2": ("bin/ip", "bin/ss"),
    "iperf": ("usr/bin/iperf",),
    "libc-bin": ("usr/bin/getent",),
    "nginx": ("usr/sbin/nginx",),
}
"""Programs by the Debian package that has them."""
CALLED = {"nc.openbsd": "nc"}
SHELL = "/bin/sh"
AGNHOST_TOOLS = ("curl", "bind9-dnsutils", "netcat-openbsd", "iproute2", "iperf", "libc-bin")
PEOPLE = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
    "user-defined-in-image:x:1000:1000::/home:/bin/sh\n",
    "/etc/group": "root:x:0:\nnobody:x:65534:\nuser-defined-in-image:x:1000:\n"
    "group-defined-in-image:x:50000:user-defined-in-image\n",
}
"""A test about groups defined in an image uses the last entries by name."""
FOLDERS = {"/tmp": 0o1777, "/root": 0o700, "/home": 0o755, "/var/run": 0o755}
NGINX = """user root;
daemon off;
error_log stderr;
pid /tmp/nginx.pid;
events {}
http {
  access_log off;
  client_body_temp_path /tmp; proxy_temp_path /tmp; fastcgi_temp_path /tmp; uwsgi_temp_path /tmp; scgi_temp_path /tmp;
  server { listen 80; root /usr/share/nginx/html; }
}
"""
WELCOME = "<!DOCTYPE html>\n<html><head><title>Welcome to nginx!</title></head><body>Welcome to nginx!</body></html>\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What images are built from."""

    suite: Release
    etcd: Path
    busybox: Path
    applets: tuple[str, ...]
    """Names by which busybox is called."""
    cache: Path

    @staticmethod
    def find(suite: Release, cache: Path) -> Parts:
        etcd = ETCD.find(None, cache)
        assert etcd is not None, f"no etcd in {cache}: `scripts/kubernetes` has it made"
        busybox = executables.unpack("busybox-static", cache) / "bin/busybox"
        listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout
        return Parts(
            suite=suite, etcd=etcd.programs["etcd"], busybox=busybox, applets=tuple(listed.split()), cache=cache
        )


def tools(parts: Parts, *packages: str) -> dict[str, Path]:
    """Programs of packages, for `/usr/bin`, with all libraries that they need."""
    found: dict[str, Path] = {}
    for name in packages:
        package = unpack_whole(name, parts.cache)
        programs = [package.root / inside for inside in TOOLS[name]]
        found |= {f"/usr/bin/{CALLED.get(each.name, each.name)}": each for each in programs}
        found |= build.libraries(*programs, roots=package.libraries)
    return found


def base(name: str, parts: Parts) -> Image:
    """A shell and the small tools.

    The shell is bash: Debian's busybox prefers its own tools to others in the PATH, and drops variables from the
    environment whose names are none for a shell, which a test is about.
    """
    links = {f"/bin/{applet}": "busybox" for applet in parts.applets if applet not in ("busybox", "sh")}
    files = {"/bin/busybox": parts.busybox, **tools(parts, "bash")}
    return Image(name=name, files=files, links={**links, SHELL: "/usr/bin/bash"}, texts=PEOPLE, folders=FOLDERS)


def with_tools(image: Image, more: Mapping[str, Path]) -> Image:
    """Add tools; they replace busybox applets of the same name."""
    names = {Path(path).name for path in more}
    links = {path: target for path, target in image.links.items() if Path(path).name not in names}
    return replace(image, files={**image.files, **more}, links=links)


def of_busybox(name: str, parts: Parts) -> Image:
    """`/bin/sh` is busybox: a test expects the exact error of its shell for a read-only file system."""
    plain = base(name, parts)
    return replace(plain, links={**plain.links, SHELL: "busybox", "/usr/bin/sh": "bash"}, command=("sh",))


def of_pause(name: str, parts: Parts) -> Image:
    return build.of_pause(name, parts.busybox)


def of_etcd(name: str, parts: Parts) -> Image:
    return build.of_program(name, parts.etcd)


def of_agnhost(name: str, parts: Parts) -> Image:
    plain = base(name, parts)
    image = with_tools(plain, {**tools(parts, *AGNHOST_TOOLS), "/agnhost": parts.suite.programs["agnhost"]})
    certificate, key = self_signed("localhost", "127.0.0.1", "::1")
    return replace(
        image,
        # a second name, which tests use as a replaced entry point
        links={**image.links, "/agnhost-2": "agnhost"},
        texts={**plain.texts, "/localhost.crt": certificate, "/localhost.key": key},
        folders={**plain.folders, "/uploads": 0o755},
        entry=("/agnhost",),
        command=("pause",),
    )


def of_picture(name: str, parts: Parts) -> Image:
    """A web server that reports which picture it serves."""
    image, picture = of_agnhost(name, parts), f"{short(name)}.jpg"
    texts = {**image.texts, "/data.json": f'{{"image": "{picture}"}}\n', f"/{picture}": ""}
    return replace(image, texts=texts, command=("test-webserver",))


def of_names(name: str, parts: Parts) -> Image:
    """Tools for name resolution by the C library and by DNS queries."""
    return replace(with_tools(base(name, parts), tools(parts, "bind9-dnsutils", "libc-bin")), command=("sh",))


def of_nonroot(name: str, parts: Parts) -> Image:
    return replace(base(name, parts), command=("sh",), user="1234")


def of_nonewprivs(name: str, parts: Parts) -> Image:
    plain, place = base(name, parts), f"{build.PROGRAMS}/nnp"
    more = {place: parts.suite.programs["nnp"]}
    return replace(with_tools(plain, more), modes={place: 0o4755}, command=("nnp",))


def of_sample_apiserver(name: str, parts: Parts) -> Image:
    program = parts.suite.programs["sample-apiserver"]
    plain = Image(name=name, files={"/sample-apiserver": program}, texts=PEOPLE, folders=FOLDERS)
    return replace(plain, entry=("/sample-apiserver",))


def of_nginx(name: str, parts: Parts) -> Image:
    plain = base(name, parts)
    return replace(
        with_tools(plain, tools(parts, "nginx")),
        texts={**plain.texts, "/etc/nginx/nginx.conf": NGINX, "/usr/share/nginx/html/index.html": WELCOME},
        folders={**plain.folders, "/var/log/nginx": 0o755, "/var/lib/nginx": 0o755},
        entry=("/usr/bin/nginx", "-c", "/etc/nginx/nginx.conf"),
    )


MAKERS: Mapping[str, Callable[[str, Parts], Image]] = {
    "agnhost": of_agnhost,
    "busybox": of_busybox,
    "etcd": of_etcd,
    "glibc-dns-testing": of_names,
    "jessie-dnsutils": of_names,
    "kitten": of_picture,
    "nautilus": of_picture,
    "nginx": of_nginx,
    "nonewprivs": of_nonewprivs,
    "nonroot": of_nonroot,
    "pause": of_pause,
    "sample-apiserver": of_sample_apiserver,
}
"""By the last part of an image's name, without its tag."""
FOREIGN = ("gcr.io/k8s-authenticated-test/", "invalid.registry.k8s.io/")
"""Names that are unavailable on purpose, for tests of failed pulls."""


def short(name: str) -> str:
    return name.rpartition("/")[2].partition(":")[0]


def can_be_made(names: Iterable[str]) -> list[str]:
    return sorted(name for name in set(names) if short(name) in MAKERS and not name.startswith(FOREIGN))


def keep(name: str, parts: Parts) -> Path:
    """The archive of an image, built if it does not exist yet."""
    return build.keep(MAKERS[short(name)](name, parts), parts.cache / "images")
