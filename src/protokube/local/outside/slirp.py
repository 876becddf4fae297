"""slirp4netns: a user-mode TCP/IP stack that gives a network namespace outbound access through plain sockets.

It is the machine's own, or Debian's package unpacked into our cache. It adds a tap device to the namespace, which goes
when the process ends; in the user's network it has only its sockets.

Its sandbox unmounts everything, and shared mounts would propagate that to the whole machine. So it starts in its own
mount namespace with slave propagation: unmounts of the machine reach it, and its own do not reach the machine.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from protokube.binaries.executables import which
from protokube.errors import Refused
from protokube.local.host import network
from protokube.local.outside.routes import TAP, TAP_NETWORK

PROGRAM = "slirp4netns"
TUN = Path("/dev/net/tun")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Its path, and folders of libraries that this machine lacks."""

    path: str
    libraries: tuple[str, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        found = {"PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}
        return {**found, "LD_LIBRARY_PATH": os.pathsep.join(self.libraries)} if self.libraries else found


def obtain(cache: Path, tun: Path = TUN) -> Program:
    """Find it, or unpack its package into the cache; raises Refused or TryLater with the reason."""
    from protokube.images.packages import unpack_whole  # only `up` needs it

    need_tun(tun)
    if own := which(PROGRAM):
        return Program(path=own)
    package = unpack_whole(PROGRAM, cache)
    return Program(path=str(package.root / "usr/bin" / PROGRAM), libraries=tuple(map(str, package.library_folders)))


def need_tun(device: Path = TUN) -> None:
    """Raise Refused, with a hint, if no tap device can be created."""
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError as missing:
        hint = f"`modprobe tun`; in a container: `mkdir -p {device.parent} && mknod {device} c 10 200`"
        raise Refused(f"this machine has no {device}", hint=hint) from missing
    except OSError as why:
        hint = "`modprobe tun`; a container has to be allowed to use the device"
        raise Refused(f"{device} cannot be used", saw=why.strerror or str(why), hint=hint) from why


def command(program: Program, switch: str, *, ready: int, leave: int) -> Sequence[str]:
    """It writes to `ready` when it serves, and exits when the other end of `leave` is closed."""
    unshare = which("unshare")
    if unshare is None:
        raise Refused("the way outside needs the program `unshare`", hint="apt-get install util-linux")
    return [
        *(unshare, "--mount", "--propagation=slave", "--", program.path, "--netns-type=path"),
        *("--disable-host-loopback", "--disable-dns", "--enable-sandbox", "--enable-seccomp"),
        *(f"--cidr={TAP_NETWORK}", f"--ready-fd={ready}", f"--exit-fd={leave}"),
        *(str(network.switch_path(switch)), TAP),
    ]
