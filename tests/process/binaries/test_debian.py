"""The build from Debian's source: where sources are, what the build is told, and what is kept of it.

The package manager and the compiler are stand-ins on the PATH; everything of ours is real.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.daemon import until
from protokube.binaries.debian import NEEDED, build_from_debian, build_settings, write_sources
from protokube.binaries.debian_sources import one_line_sources, stanza_sources, upstream_version
from protokube.binaries.kubernetes import KUBERNETES, PROGRAMS, find
from protokube.binaries.obtain import copy_folder
from protokube.binaries.progress import Silent
from protokube.errors import InvalidRequest, Refused, TryLater

APT = """#!/bin/sh
echo "apt-get $*" >> "$CALLS"
case "$*" in
  *" source kubernetes")
    mkdir -p kubernetes-9/debian
    echo "kubernetes (1.20.5+really1.20.2-1.1+deb12u1) bookworm; urgency=medium" > kubernetes-9/debian/changelog
    mkdir -p kubernetes-9/$CARRIED
    echo "package reflect2" > kubernetes-9/$CARRIED/go_below_19.go;;
  *" download "*)
    if [ "$BROKEN" = download ]; then echo "no such package"; exit 100; fi
    echo > reflect2.deb;;
esac
"""
DPKG_DEB = """#!/bin/sh
mkdir -p "$3/usr/share/gocode/src/github.com/modern-go/reflect2"
echo "package reflect2" > "$3/usr/share/gocode/src/github.com/modern-go/reflect2/go_above_118.go"
"""
MAKE = """#!/bin/sh
echo "make $*" >> "$CALLS"
name=${2#WHAT=cmd/}
ls "$CARRIED" >> "$CALLS.carried"
if [ "$BROKEN" = all ]; then sleep 300 & echo $! > "$CALLS.pid"; wait; fi
if [ "$name" = "$BROKEN" ]; then echo "cannot compile $name"; exit 2; fi
mkdir -p _output/local/go/bin
printf '#!/bin/sh\\necho Kubernetes %s\\n' "$KUBE_GIT_VERSION" > "_output/local/go/bin/$name"
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a package manager and a compiler of ours; what they were asked is in this file."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("apt-get", "dpkg", "dpkg-deb", *(program for program, _ in NEEDED)):
        (tools / name).write_text({"apt-get": APT, "make": MAKE, "dpkg-deb": DPKG_DEB}.get(name, "#!/bin/sh\n"))
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("CARRIED", "vendor/github.com/modern-go/reflect2")
    monkeypatch.setenv("BROKEN", "")
    return tmp_path / "calls"


def test_a_build_ends_in_the_cache_and_leaves_nothing_beside_it(tmp_path: Path, calls: Path) -> None:
    got = build_from_debian(tmp_path / "cache", Silent(), room=0)

    assert got.version == "1.20.2"
    assert set(got.programs) == set(PROGRAMS)
    assert find("1.20.2", tmp_path / "cache") == got
    assert sorted(each.name for each in got.folder.parent.iterdir()) == [".lock", "1.20.2", "build.log"]
    made = [line for line in calls.read_text().splitlines() if line.startswith("make")]
    assert made == [f"make all WHAT=cmd/{name}" for name in PROGRAMS]


def test_the_machines_own_list_of_packages_is_not_used_for_sources(tmp_path: Path, calls: Path) -> None:
    build_from_debian(tmp_path / "cache", Silent(), room=0)

    asked = [line for line in calls.read_text().splitlines() if line.endswith((" update", " source kubernetes"))]
    assert len(asked) == 2
    assert all("--option=Dir::Etc::sourcelist=/dev/null" in line for line in asked)
    assert all(f"--option=Dir::State::lists={tmp_path}/cache" in line for line in asked)


def test_everything_is_built_with_the_code_that_fits(tmp_path: Path, calls: Path) -> None:
    build_from_debian(tmp_path / "cache", Silent(), room=0)

    assert calls.with_suffix(".carried").read_text().split() == ["go_above_118.go"] * len(PROGRAMS)


def test_without_the_code_that_fits_nothing_is_built(
    tmp_path: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKEN", "download")

    with pytest.raises(TryLater, match="would be unsafe") as failed:
        build_from_debian(tmp_path / "cache", Silent(), room=0)

    assert failed.value.saw == "no such package"
    assert "build.log" in failed.value.hint
    assert "make" not in calls.read_text().split()
    assert find(None, tmp_path / "cache") is None


def test_what_is_built_already_is_not_built_again(tmp_path: Path, calls: Path) -> None:
    first = build_from_debian(tmp_path / "cache", Silent(), room=0)
    calls.unlink()

    assert build_from_debian(tmp_path / "cache", Silent(), "1.20.2", room=0) == first
    assert not calls.exists()
    assert build_from_debian(tmp_path / "cache", Silent(), room=0) == first
    assert "make" not in calls.read_text().split()


def test_a_build_is_not_spared_because_another_version_is_here(tmp_path: Path, calls: Path) -> None:
    newer = tmp_path / "usb"
    newer.mkdir()
    for name in PROGRAMS:
        (newer / name).write_text("#!/bin/sh\necho Kubernetes v1.34.1\n")
        (newer / name).chmod(0o755)
    copy_folder(KUBERNETES, newer, tmp_path / "cache", Silent(), None)

    assert build_from_debian(tmp_path / "cache", Silent(), room=0).version == "1.20.2"


def test_a_build_that_fails_tells_its_last_words_and_keeps_all_of_them(
    tmp_path: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKEN", "kubelet")

    with pytest.raises(TryLater, match="WHAT=cmd/kubelet` failed") as failed:
        build_from_debian(tmp_path / "cache", Silent(), room=0)

    assert failed.value.saw == "cannot compile kubelet"
    assert "cannot compile kubelet" in (tmp_path / "cache" / "kubernetes" / "build.log").read_text()
    assert find(None, tmp_path / "cache") is None
    assert not (tmp_path / "cache" / "kubernetes" / ".build").exists()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_build_that_is_ended_leaves_no_compiler_behind(
    tmp_path: Path, calls: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    monkeypatch.setenv("BROKEN", "all")
    script = (
        "from pathlib import Path; import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell has those in the background ignore it
        "from protokube.signals import ending_like_ctrl_c\n"
        "from protokube.binaries.debian import build_from_debian; from protokube.binaries.progress import Silent\n"
        "with ending_like_ctrl_c(): build_from_debian(Path(sys.argv[1]), Silent(), room=0)"
    )
    building = subprocess.Popen([sys.executable, "-c", script, tmp_path / "cache"], stderr=subprocess.DEVNULL)
    compiler = int(until(lambda: calls.with_suffix(".pid").exists() and calls.with_suffix(".pid").read_text()))

    building.send_signal(how)

    assert building.wait(60) != 0
    until(lambda: not running(compiler))
    assert not (tmp_path / "cache" / "kubernetes" / ".build").exists()


def running(process: int) -> bool:
    """Alive, and not only waiting to be buried by whoever inherited it."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_version_that_debian_does_not_have_is_told_before_anything_is_built(tmp_path: Path, calls: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"Debian's source package is Kubernetes 1\.20\.2"):
        build_from_debian(tmp_path / "cache", Silent(), "1.34.1", room=0)
    assert "make" not in calls.read_text().split()


def test_a_disk_without_room_is_told_before_anything_is_fetched(tmp_path: Path, calls: Path) -> None:
    with pytest.raises(Refused, match="too little room"):
        build_from_debian(tmp_path / "cache", Silent(), room=1 << 60)
    assert not calls.exists()


def test_a_machine_without_debians_tools_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(Refused, match="on Debian only"):
        build_from_debian(tmp_path / "cache", Silent(), room=0)


# --- what is decided without touching anything


def test_the_build_hears_nothing_of_a_make_around_it_and_needs_no_network(tmp_path: Path) -> None:
    around = {
        "MAKEFLAGS": "-j4 --jobserver-auth=3,4",
        "MAKELEVEL": "1",
        "GOPATH": "/x",
        "PATH": "/bin",
        "GOCACHE": "/c",
    }

    settings = build_settings("1.20.2", tmp_path, around)

    assert not {"MAKEFLAGS", "MAKELEVEL", "GOPATH"} & set(settings)
    assert (settings["PATH"], settings["HOME"], settings["GOPROXY"]) == ("/bin", str(tmp_path), "off")
    assert settings["GOCACHE"] == str(tmp_path / "go-cache")
    assert settings["KUBE_GIT_VERSION"] == "v1.20.2"


def test_lines_of_packages_become_lines_of_sources_at_the_same_places() -> None:
    text = """
# deb http://commented.example bookworm main
deb http://mirror.example/debian bookworm main contrib
deb-src http://mirror.example/debian bookworm main contrib
  deb [signed-by=/k.gpg arch=amd64] http://other.example/d bookworm main
debug is no entry
"""
    assert one_line_sources(text).splitlines() == [
        "deb-src http://mirror.example/debian bookworm main contrib",
        "deb-src [signed-by=/k.gpg arch=amd64] http://other.example/d bookworm main",
    ]


def test_stanzas_of_packages_become_stanzas_of_sources_at_the_same_places() -> None:
    text = """# the main archive
Types: deb
# a note
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /k.gpg

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm

Types: deb
 deb-src
URIs: http://security.example/debian
Suites: bookworm-security
"""
    assert (
        stanza_sources(text)
        == """Types: deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /k.gpg

Types: deb-src
URIs: http://security.example/debian
Suites: bookworm-security
"""
    )


words = st.text(alphabet=st.characters(codec="ascii", exclude_categories=["C", "Z"]), min_size=1, max_size=8)


@given(st.lists(words.map(lambda word: f"http://{word}/")))
def test_every_place_is_kept_once_and_in_order(places: list[str]) -> None:
    sources = one_line_sources("\n".join(f"deb {place} stable main" for place in places))

    assert sources.splitlines() == [f"deb-src {place} stable main" for place in dict.fromkeys(places)]
    assert one_line_sources(sources) == sources


def test_apt_reads_our_lists_in_the_order_of_its_own(tmp_path: Path) -> None:
    """It refuses a place whose keyring it knows if a later list does not name it; the other way round is fine."""
    apt, parts = tmp_path / "apt", tmp_path / "parts"
    (apt / "sources.list.d").mkdir(parents=True)
    parts.mkdir()
    (apt / "sources.list").write_text("deb http://debian.example stable main\n")
    keyring = "Types: deb\nURIs: http://debian.example\nSuites: stable\nComponents: main\nSigned-By: /keyring.gpg\n"
    (apt / "sources.list.d" / "debian.sources").write_text(keyring)
    (apt / "sources.list.d" / "another.list").write_text("deb http://another.example stable main\n")
    (apt / "sources.list.d" / "notes").write_text("nothing of ours\n")

    write_sources(apt, parts)

    in_order = [path.name.partition("-")[2] for path in sorted(parts.iterdir())]
    assert in_order == ["sources.list", "another.list", "debian.sources"]


def test_a_list_without_entries_has_no_sources() -> None:
    assert one_line_sources("# nothing\n") == ""
    assert stanza_sources("\n# nothing\n\n") == ""


@pytest.mark.parametrize(
    ("debian", "upstream"),
    [
        ("1.20.5+really1.20.2-1.1+deb12u1", "1.20.2"),
        ("1.33.4+ds-1", "1.33.4"),
        ("1.20.2-1", "1.20.2"),
        ("2:1.20.2~1-1~bpo", "1.20.2"),
        ("1.20.2", "1.20.2"),
    ],
)
def test_the_version_within_debians_version_is_known(debian: str, upstream: str) -> None:
    assert upstream_version(debian) == upstream
