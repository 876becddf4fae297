"""What is in a launch script, and what never is."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace

import pytest

from protokube.errors import InvalidRequest
from protokube.launch.userdata import fetch
from protokube.launch.userdata.script import END, LaunchScript, fetcher, script

VALUES = LaunchScript(sources=("https://mirror.example.com/a b/protokube",), sha256="0" * 64, setup="{}")


def test_an_at_sign_in_a_path_is_no_password() -> None:
    assert "s3://bucket/a:b@c/protokube" in script(replace(VALUES, sources=("s3://bucket/a:b@c/protokube",)))


def test_equal_values_give_equal_scripts() -> None:
    assert script(VALUES) == script(replace(VALUES))


def test_words_of_the_user_are_quoted() -> None:
    text = script(replace(VALUES, arguments=("--x", "a'b $(reboot)"), environment={"no_proxy": "a b"}))

    assert "'https://mirror.example.com/a b/protokube'" in text
    assert """--x 'a'"'"'b $(reboot)'""" in text
    assert "\nexport no_proxy='a b'\n" in text


def test_it_fits_into_user_data_with_room_for_a_setup() -> None:
    assert len(script(VALUES)) < 12_000


def test_the_program_in_it_needs_the_standard_library_alone() -> None:
    tree = ast.parse(fetcher())
    imported = {each.module if isinstance(each, ast.ImportFrom) else alias.name
                for each in ast.walk(tree) if isinstance(each, ast.Import | ast.ImportFrom)
                for alias in each.names}  # fmt: skip

    assert {str(each).split(".")[0] for each in imported} <= sys.stdlib_module_names
    assert fetch.__doc__ is not None
    assert fetcher() in script(VALUES)


@pytest.mark.parametrize(
    "url",
    [
        "https://user:secret@mirror.example.com/protokube",
        "https://bucket.s3.amazonaws.com/protokube?X-Amz-Signature=0123",
        "https://account.blob.example.com/protokube?sv=1&sig=abc",
        "https://mirror.example.com/protokube?token=abc",
    ],
)
def test_a_source_with_a_secret_in_it_is_refused_and_the_secret_is_not_told(url: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        script(replace(VALUES, sources=(url,)))

    assert str(raised.value).startswith("a source has a secret in it, which every process of the machine could read")
    assert url not in str(raised.value)


@pytest.mark.parametrize("url", ["http://user:secret@proxy:3128", "user:secret@proxy:3128", "user:secret@proxy"])
def test_a_proxy_with_a_password_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match="https_proxy has a secret in it"):
        script(replace(VALUES, environment={"https_proxy": url}))


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": "abc"}, {"sources": ()}, {"sources": ("ftp://host/file",)}, {"sources": ("https:///file",)},
        {"sources": ("s3://bucket",)}, {"setup": f"{{\n{END}\n}}"}, {"environment": {"a b": "c"}},
        {"version": "0.9.0; reboot"}, {"version": "$(reboot)"}, {"sources": ("https://mirror.example.com/a\nb",)},
    ],
)  # fmt: skip
def test_what_could_not_work_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        script(replace(VALUES, **change))  # type: ignore[arg-type]
