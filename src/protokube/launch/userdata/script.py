"""Write the launch script of a machine: POSIX sh that gets protokube's single file and runs `protokube nodeup`. Pure.

What is hard is that it runs where nothing is known: which shell `sh` is, whether there is a Python, whether a mirror or
the network answers yet. So it uses no more than POSIX says, tries again with growing pauses what may come right by
itself, and ends with one sentence otherwise. Clouds show it to every process of the machine: no secret is in it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from urllib.parse import urlsplit

from protokube.errors import InvalidRequest

SCHEMES = ("https", "http", "s3", "gs", "file")
FOLDER, CONSOLE = "/var/lib/protokube/launch", "/dev/console"
END = "END_OF_PROTOKUBE"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
VERSION = re.compile(r"[0-9A-Za-z.+-]*")
PASSWORD = re.compile(r"([a-z0-9]+://)?[^/@\s]+@")
"""Before the host of a proxy, which may be written without a scheme."""
SECRETS = re.compile(r"(?i)signature|token|password|secret|sig=")
"""What a URL with a secret in it says."""

SCRIPT = r"""#!/bin/sh
# Makes this machine what protokube planned. It may be killed and run again at any time.
# Exits as `protokube nodeup` does: 0 done, 4 or 2 a person has to act, 3 something did not answer.
set -u
umask 022
PATH="${PATH:-/usr/bin}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
export PATH%(environment)s
home=%(folder)s
console=%(console)s
began=$(date +%%s)

say() {
    printf 'protokube: %%s\n' "$*"
    if [ -w "$console" ]; then { printf 'protokube: %%s\n' "$*" >> "$console"; } 2> /dev/null || :; fi
}

saying() {
    while IFS= read -r line; do say "$line"; done
}

find_python() {
    for python in python3 python3.14 python3.13 python3.12 python3.11; do
        "$python" -c 'import sys, ssl, zipfile; sys.exit(sys.version_info < (3, 11))' 2> /dev/null && return 0
    done
    return 1
}

install_python() {
    if command -v apt-get > /dev/null 2>&1; then
        say "installing python3"
        apt-get -q -y update > "$home/python.log" 2>&1
        DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install python3 ca-certificates \
            >> "$home/python.log" 2>&1
    elif command -v dnf > /dev/null 2>&1; then
        say "installing python3.12 or python3.11"
        { dnf -q -y install python3.12 || dnf -q -y install python3.11; } > "$home/python.log" 2>&1
    else
        say "there is no Python 3.11 or newer, and neither apt-get nor dnf to install it"
        return 4
    fi || { say "no Python could be installed: $(tail -n 1 "$home/python.log")"; return 3; }
    find_python && return 0
    say "this distribution has no Python 3.11 or newer; install one, and run $0 again"
    return 4
}

put() {
    cat > "$home/.$1.new" && mv -f "$home/.$1.new" "$home/$1"
}

prepare() {
    mkdir -p "$home" && chmod 700 "$home" || return 4
    put fetch.py << '%(end)s' && put setup.json << '%(end)s'
%(fetcher)s
%(end)s
%(setup)s
%(end)s
}

launch() {
    prepare || { say "cannot write $home"; return 4; }
    find_python || install_python || return $?
    say "fetching protokube%(version)s"
    "$python" -I "$home/fetch.py" %(sha256)s "$home/protokube" %(sources)s > "$home/fetch.log" 2>&1
    code=$?
    saying < "$home/fetch.log"
    [ "$code" = 0 ] || { say "no source has the file of sha256 %(sha256)s"; return 3; }
    say "running nodeup"
    "$python" "$home/protokube" nodeup --setup "$home/setup.json"%(arguments)s
}

attempts=%(attempts)s
attempt=1
pause=%(pause)s
until launch; do
    code=$?
    case "$code" in 2 | 4) break ;; esac
    if [ "$attempt" = "$attempts" ]; then break; fi
    say "attempt $attempt failed with code $code; the next one is in $pause s"
    sleep "$pause"
    attempt=$((attempt + 1))
    pause=$((pause * 2 > %(longest)s ? %(longest)s : pause * 2))
    code=0
done
code=${code:-0}
if [ -e "$home/protokube" ] && [ -n "${python:-}" ]; then
    "$python" "$home/protokube" nodeup report 2>&1 | saying
fi
ended="after $(($(date +%%s) - began)) s, attempt $attempt"
if [ "$code" = 0 ]; then say "done $ended"; else say "failed with code $code $ended; run $0 again"; fi
exit "$code"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchScript:
    """What the script of one machine says."""

    sources: tuple[str, ...]
    """Where the single file is, in the order in which they are tried."""
    sha256: str
    """Of the single file; it is not run with another one."""
    setup: str = field(repr=False)
    """The document for `nodeup --setup`, which has no secret either."""
    version: str = ""
    arguments: tuple[str, ...] = ()
    """More of them for `nodeup`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables for everything that it runs, such as `https_proxy`."""
    attempts: int = 0
    """0: until it succeeds, or a person has to act."""
    pause: int = 5
    """Seconds after the first attempt; twice as long after each other one."""
    longest_pause: int = 300
    folder: str = FOLDER
    console: str = CONSOLE


def script(values: LaunchScript) -> str:
    """The text of the script. InvalidRequest if it could not work, or had a secret in it."""
    _check(values)
    variables = "".join(f"\nexport {name}={shlex.quote(text)}" for name, text in sorted(values.environment.items()))
    return SCRIPT % {
        "environment": variables,
        "folder": shlex.quote(values.folder),
        "console": shlex.quote(values.console),
        "end": END,
        "fetcher": fetcher(),
        "setup": values.setup.strip("\n"),
        "version": f" {values.version}" if values.version else "",
        "sha256": values.sha256,
        "sources": " ".join(map(shlex.quote, values.sources)),
        "arguments": "".join(f" {shlex.quote(each)}" for each in values.arguments),
        "pause": values.pause,
        "longest": values.longest_pause,
        "attempts": values.attempts,
    }


def fetcher() -> str:
    """The program that fetches the single file."""
    return resources.files("protokube.launch.userdata").joinpath("fetch.py").read_text("utf-8").strip("\n")


def _check(values: LaunchScript) -> None:
    if not re.fullmatch(r"[0-9a-f]{64}", values.sha256):
        raise InvalidRequest("the single file needs its digest", saw=values.sha256, want="64 hexadecimal digits")
    if not values.sources:
        raise InvalidRequest("the launch script has no source of the single file", want=f"{', '.join(SCHEMES)} URLs")
    if not VERSION.fullmatch(values.version):
        raise InvalidRequest(f"{values.version!r} is no version of protokube")
    for url in values.sources:
        parts = urlsplit(url)
        if any(letter < " " or letter == "\x7f" for letter in url):
            raise InvalidRequest(f"a launch script cannot fetch from {url!r}", want="a URL of one line")
        if parts.scheme not in SCHEMES or not parts.path.strip("/") or not (parts.netloc or parts.scheme == "file"):
            raise InvalidRequest(f"a launch script cannot fetch from {url}", want=f"{', '.join(SCHEMES)} URLs")
    for name, url in (*(("a source", each) for each in values.sources), *values.environment.items()):
        if "@" in urlsplit(url).netloc or PASSWORD.match(url) or SECRETS.search(urlsplit(url).query):
            hint = "a machine reads a private bucket by its role; a proxy has to let it pass by its address"
            raise InvalidRequest(f"{name} has a secret in it, which every process of the machine could read", hint=hint)
    if wrong := [name for name in values.environment if not NAME.fullmatch(name)]:
        raise InvalidRequest(f"{wrong[0]!r} is no name of a variable")
    if "\0" in values.setup or any(line == END for line in values.setup.splitlines()):
        raise InvalidRequest("the setup has a line that ends it in the launch script", saw=END)
