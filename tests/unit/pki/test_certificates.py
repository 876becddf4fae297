"""What the complete configuration asks for can be issued, all of it."""

from __future__ import annotations

import pytest

from builders.config import completed
from protokube.errors import Refused
from protokube.manifests.certificate import CertificateWanted
from protokube.pki.issue import issue
from unit.pki.builders import NOW, a_wanted, authorities, parsed


def test_every_certificate_of_a_complete_configuration_is_read_and_issued() -> None:
    pki = completed(masters=3).cluster["pki"]
    signers = authorities(*pki["authorities"])

    for name, document in pki["certificates"].items():
        wanted = CertificateWanted.read(document)
        issued = parsed(issue(wanted, signers[wanted.authority], NOW).certificate)
        assert issued.issuer.rfc4514_string() == f"CN={document['authority']}", name
        assert f"CN={document['commonName']}" in issued.subject.rfc4514_string()


def test_a_name_too_long_for_a_subject_is_shortened_where_only_the_names_count() -> None:
    long = "etcd-events-a.internal." + "a-very-long-name-of-a-cluster" * 2 + ".example.com"
    wanted = a_wanted(long, names=(long, "localhost"))

    assert wanted.subject == long[:64]
    assert long in str(parsed(issue(wanted, authorities()["etcd-peer-ca"], NOW).certificate).extensions)


def test_a_client_whose_name_does_not_fit_is_refused_because_its_name_is_who_it_is() -> None:
    with pytest.raises(Refused, match="no certificate can name"):
        _ = a_wanted("system:node:" + "n" * 60, names=()).subject
