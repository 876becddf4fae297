"""The image of CoreDNS in hosts of the local cloud; without the CoreDNS program, that of a stand-in.

Debian has no package of CoreDNS, but one of dnsmasq. The stand-in runs in the CoreDNS pod, with its permissions, name
and ports: it watches Services, resolves only their cluster IPs, and forwards other names as the Corefile says.
"""

from __future__ import annotations

import re
from pathlib import Path

from protokube.images import build
from protokube.images.build import PROGRAMS, Image
from protokube.images.packages import Package, unpack_whole

TAG = re.compile(r":v?(\d+\.\d+\.\d+)$")
PACKAGE = "dnsmasq-base"
"""The Debian package of the stand-in's server."""
SERVER, ASKING, SHELL, ENTRY = "dnsmasq", "kubectl", "/busybox", "/cluster-dns"
SCRIPT = r"""#!/busybox sh
# Called like CoreDNS: -conf FILE. The only place that may be written is memory.
domain=$(sed -n 's/^ *kubernetes \([^ ]*\).*/\1/p' "$2" | head -n 1)
upstream=
for each in $(sed -n 's/^ *forward \. \([^{]*\).*/\1/p' "$2" | head -n 1); do
    case "$each" in
        /*) upstream="$upstream --resolv-file=$each" ;;
        *.*:*) upstream="$upstream --server=${each%:*}#${each#*:}" ;;
        *) upstream="$upstream --server=$each" ;;
    esac
done
case "$upstream" in *--resolv-file=*) ;; *) upstream="--no-resolv $upstream" ;; esac
state=/dev/shm/dns
mkdir -p $state/names $state/www
echo yes > $state/www/health
httpd -p 8080 -h $state/www
httpd -p 8181 -h $state/www

row='{.metadata.namespace}{" "}{.metadata.name}{" "}{.spec.clusterIP}{"\n"}'
event='{.type}{" "}{.object.metadata.namespace}{" "}{.object.metadata.name}{" "}{.object.spec.clusterIP}{"\n"}'

ask() {
    timeout 300 kubectl --cache-dir=$state/cache get services --all-namespaces "$@"
}

keep() {  # folder, namespace, name, address: nothing or `None` where a Service has no address of its own
    case "$4" in
        *[.:]*) echo "$4 $3.$2.svc.$domain" > "$1/$3.$2" ;;
        *) rm -f "$1/$3.$2" ;;
    esac
}

follow() {
    while :; do
        rm -rf $state/new $state/old
        mkdir $state/new
        if ask --output=jsonpath="{range .items[*]}$row{end}" > $state/list; then
            while read -r namespace name address; do
                keep $state/new "$namespace" "$name" "$address"
            done < $state/list
            mv $state/names $state/old && mv $state/new $state/names
            kill -HUP 1
            echo yes > $state/www/ready
            ask --watch --output-watch-events --output=jsonpath="$event" |
                while read -r what namespace name address; do
                    [ "$what" = DELETED ] && address=
                    keep $state/names "$namespace" "$name" "$address"
                    kill -HUP 1
                done
        fi
        sleep 1
    done
}

follow &
exec dnsmasq --keep-in-foreground --pid-file= --user=root --log-facility=- --no-hosts --local-ttl=5 $upstream \
    --local="/$domain/" --addn-hosts=$state/names
"""
PEOPLE = "root:x:0:0:root:/:/busybox\n"


def version_in(name: str) -> str:
    """The version in the tag of an image; "" if it has none."""
    found = TAG.search(name)
    return found[1] if found else ""


def image(name: str, coredns: Path) -> Image:
    """As in the official image: only the program."""
    return Image(name=name, files={"/coredns": coredns, **build.libraries(coredns)}, entry=("/coredns",))


def obtain_stand_in(name: str, kubectl: Path, busybox: Path, cache: Path) -> Image:
    return stand_in(name, kubectl, busybox, unpack_whole(PACKAGE, cache))


def stand_in(name: str, kubectl: Path, busybox: Path, server: Package) -> Image:
    program = server.root / "usr/sbin" / SERVER
    return Image(
        name=name,
        files={
            SHELL: busybox,
            f"{PROGRAMS}/{ASKING}": kubectl,
            f"{PROGRAMS}/{SERVER}": program,
            **build.libraries(kubectl, program, roots=server.libraries),
        },
        texts={ENTRY: SCRIPT, "/etc/passwd": PEOPLE},
        entry=(ENTRY,),
    )
