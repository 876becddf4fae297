"""The account of Amazon that we use, and where its service is.

Keys in the environment, at Amazon's usual address, need no library. Everything else (roles of machines and pods,
profiles, single sign-on, other addresses) is left to botocore, loaded only then: it takes longer to import than
a controller takes to start, and more memory than its whole cache.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from protokube.errors import Refused, TryLater
from protokube.providers.clients.aws_signature import Keys

ACCESS, SECRET, EXPIRY = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_CREDENTIAL_EXPIRATION"
TOKENS = ("AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN")
UNUSUAL = ("AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_PROFILE")
FILES = {"AWS_CONFIG_FILE": "~/.aws/config", "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials"}
"""Variables and files that may change an address or whom to trust."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where requests of a service go."""

    url: str
    authorities: str
    """The file with the certificate authorities to trust."""


class Account:
    """The credentials that the environment leads to; temporary ones are renewed before they expire."""

    def __init__(self, service: str, region: str) -> None:
        self.service, self.region = service, region
        self._session: Any = None
        self._credentials: Any = None

    def keys(self) -> Keys:
        """Raises Refused if there are none, TryLater if they cannot be had now."""
        return _keys(os.environ) or self._from_botocore()

    def place(self, endpoint: str | None) -> Place:
        """`endpoint`, or else the service's own address."""
        url = endpoint or os.environ.get("AWS_ENDPOINT_URL") or os.environ.get(_variable(self.service))
        if _is_usual(os.environ):
            return Place(url or f"https://{self.service}.amazonaws.com", _authorities(os.environ))
        with botocore_errors():
            client = self._botocore().create_client(self.service, region_name=self.region, endpoint_url=url)
            bundle = self._botocore().get_config_variable("ca_bundle")
        return Place(client.meta.endpoint_url, str(bundle) if bundle else _authorities(os.environ))

    def _from_botocore(self) -> Keys:
        with botocore_errors():
            if self._credentials is None:
                self._credentials = self._botocore().get_credentials()
            if self._credentials is None:
                raise Refused("there is no account", saw="no credentials, neither in the environment nor elsewhere")
            found = self._credentials.get_frozen_credentials()
        return Keys(found.access_key, found.secret_key, found.token or "")

    def _botocore(self) -> Any:
        if self._session is None:
            import botocore.session

            self._session = botocore.session.get_session()
        return self._session


class botocore_errors:  # noqa: N801  # a context manager that imports nothing unless something fails
    """Turn errors of botocore into ours."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is None or isinstance(error, Refused):
            return
        from botocore import exceptions

        if isinstance(error, (exceptions.NoCredentialsError, exceptions.PartialCredentialsError)):
            raise Refused("there is no account", saw=str(error)) from error
        if isinstance(error, (exceptions.BotoCoreError, exceptions.ClientError)):
            raise TryLater("the credentials cannot be had", saw=str(error)) from error
        if isinstance(error, ValueError):
            raise Refused("the settings of the account cannot be used", saw=str(error)) from error


def _keys(environment: Mapping[str, str]) -> Keys | None:
    """Keys that never expire; None if botocore has to look further."""
    access, secret = environment.get(ACCESS, ""), environment.get(SECRET, "")
    if not access or not secret or environment.get(EXPIRY):
        return None
    return Keys(access, secret, next((environment[each] for each in TOKENS if environment.get(each)), ""))


def _is_usual(environment: Mapping[str, str]) -> bool:
    """Whether no file and no variable of Amazon's tools can name another address."""
    files = (Path(environment.get(variable) or usual).expanduser() for variable, usual in FILES.items())
    return not any(environment.get(each) for each in UNUSUAL) and not any(each.exists() for each in files)


def _variable(service: str) -> str:
    return f"AWS_ENDPOINT_URL_{'ROUTE_53' if service == 'route53' else service.upper()}"


def _authorities(environment: Mapping[str, str]) -> str:
    """As botocore chooses it: named by a variable, or of certifi, or its own."""
    if named := environment.get("AWS_CA_BUNDLE") or environment.get("REQUESTS_CA_BUNDLE"):
        return named
    for library in ("certifi", "botocore"):
        spec = find_spec(library)
        for folder in (spec.submodule_search_locations if spec else None) or ():
            if (file := Path(folder) / "cacert.pem").exists():
                return str(file)
    return ""
