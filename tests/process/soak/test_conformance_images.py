"""The images of the conformance suite: which of them can be made, and what is in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.binaries.product import Release
from soak.conformance.certificate import self_signed
from soak.conformance.images import (
    MAKERS,
    Parts,
    base,
    can_be_made,
    of_busybox,
    of_nonewprivs,
    of_nonroot,
    short,
    with_tools,
)

AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    shell = tmp_path / "bash/bin/bash"  # as if the package had been unpacked before
    shell.parent.mkdir(parents=True)
    shell.write_text("#!/bin/sh\n")
    (tmp_path / ".bash.libraries").touch()
    suite = Release(version="1.36.4", folder=tmp_path, programs={"nnp": program})
    return Parts(suite=suite, etcd=program, busybox=program, applets=("busybox", "sh", "nc", "ip"), cache=tmp_path)


def test_an_image_can_be_made_by_its_short_name_under_any_tag() -> None:
    perl, private = "registry.k8s.io/e2e-test-images/perl:5.26", "gcr.io/k8s-authenticated-test/agnhost:2.6"
    assert can_be_made([AGNHOST, perl, private, AGNHOST, "registry.k8s.io/pause:3.10.2"]) == [
        AGNHOST,
        "registry.k8s.io/pause:3.10.2",
    ]
    assert short("registry.k8s.io/e2e-test-images/volume/nfs:1.6.0") == "nfs"
    assert "nfs" not in MAKERS


def test_small_tools_are_links_to_one_program_and_give_way_to_real_ones(parts: Parts) -> None:
    plain = base("x", parts)
    assert plain.links == {"/bin/sh": "/usr/bin/bash", "/bin/nc": "busybox", "/bin/ip": "busybox"}
    real = with_tools(plain, {"/usr/bin/nc": parts.busybox})
    assert real.links == {"/bin/sh": "/usr/bin/bash", "/bin/ip": "busybox"}
    assert set(real.files) == {"/bin/busybox", "/usr/bin/bash", "/usr/bin/nc"}


def test_the_shell_of_busybox_is_its_own_by_its_path_and_keeps_all_variables_by_its_name(parts: Parts) -> None:
    links = of_busybox("x", parts).links
    assert (links["/bin/sh"], links["/usr/bin/sh"]) == ("busybox", "bash")


def test_images_about_rights_have_their_user_and_their_mode(parts: Parts) -> None:
    assert of_nonroot("x", parts).user == "1234"
    assert of_nonewprivs("x", parts).modes == {"/usr/local/bin/nnp": 0o4755}


def test_the_certificate_of_a_test_server_is_always_the_same_one() -> None:
    certificate, key = self_signed("localhost", "127.0.0.1")
    assert (certificate, key) == self_signed("localhost", "127.0.0.1")
    assert certificate != self_signed("elsewhere", "127.0.0.1")[0]
    assert certificate.startswith("-----BEGIN CERTIFICATE-----")
    assert "PRIVATE KEY" in key
