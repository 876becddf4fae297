"""slirp4netns: a process of the user's that speaks TCP and UDP to the outside for a network namespace.

It is the machine's own, or Debian's package unpacked into our cache. In the namespace there is a tap device, which goes
when the process does; in the user's network there are its sockets, and nothing else.

Its sandbox unmounts all that the user has mounted, and where mounts are shared it would do so for everybody. So it gets
a mount namespace of its own first, as a slave: what the machine unmounts goes there, too, and not the other way round.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import Refused
from protokube.local.base.executables import which
from protokube.local.host import network
from protokube.local.outside.routes import TAP, TAP_NETWORK

PROGRAM = "slirp4netns"
TUN = Path("/dev/net/tun")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Where it is, and the folders of libraries that this machine lacks."""

    path: str
    libraries: tuple[str, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        found = {"PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}
        return {**found, "LD_LIBRARY_PATH": os.pathsep.join(self.libraries)} if self.libraries else found


def obtain(cache: Path, tun: Path = TUN) -> Program:
    """Have it on this machine; Refused or TryLater say why it cannot be had."""
    from protokube.local.image.packages import unpack_whole  # `up` alone needs it

    need_tun(tun)
    if own := which(PROGRAM):
        return Program(path=own)
    package = unpack_whole(PROGRAM, cache)
    return Program(path=str(package.root / "usr/bin" / PROGRAM), libraries=tuple(map(str, package.library_folders)))


def need_tun(device: Path = TUN) -> None:
    """Raises with what to do about it where the kernel lends us no tap device."""
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError as missing:
        hint = f"`modprobe tun`; in a container: `mkdir -p {device.parent} && mknod {device} c 10 200`"
        raise Refused(f"this machine has no {device}", hint=hint) from missing
    except OSError as why:
        hint = "`modprobe tun`; a container has to be allowed to use the device"
        raise Refused(f"{device} cannot be used", saw=why.strerror or str(why), hint=hint) from why


def command(program: Program, switch: str, *, ready: int, leave: int) -> Sequence[str]:
    """It writes to `ready` when it serves, and ends when the other end of `leave` is closed, whatever closes it."""
    unshare = which("unshare")
    if unshare is None:
        raise Refused("the way outside needs the program `unshare`", hint="apt-get install util-linux")
    return [
        *(unshare, "--mount", "--propagation=slave", "--", program.path, "--netns-type=path"),
        *("--disable-host-loopback", "--disable-dns", "--enable-sandbox", "--enable-seccomp"),
        *(f"--cidr={TAP_NETWORK}", f"--ready-fd={ready}", f"--exit-fd={leave}"),
        *(str(network.switch_path(switch)), TAP),
    ]
