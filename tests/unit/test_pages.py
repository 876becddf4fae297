"""What the pages promise: links lead somewhere, each page is on the site, and each command that they show exists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
import yaml

from protokube.cli.get.command import Get, _other_command
from protokube.cli.main import COMMANDS, cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)
PROMPT = re.compile(r"^(?:\$ )?(?:sudo )?(protokube(?: .*)?)$")


def slug(heading: str) -> str:
    """The anchor of a heading, as forges make it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")


def anchors(page: Path) -> set[str]:
    return {slug(found) for found in HEADING.findall(FENCE.sub("", page.read_text()))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading_that_exist(page: Path) -> None:
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_on_the_site() -> None:
    document = yaml.safe_load(re.sub(r"!!python\S+", "", (ROOT / "mkdocs.yml").read_text()))
    listed = set(_leaves(document["nav"]))
    apart = {page for page in PAGES if page.parent.name == "decisions" and page.name != "README.md"}
    assert {str(page.relative_to(ROOT)) for page in PAGES if page not in apart} == listed


def test_every_decision_is_in_the_list_of_decisions() -> None:
    folder = ROOT / "docs/decisions"
    linked = set(LINK.findall((folder / "README.md").read_text()))
    assert linked == {page.name for page in folder.glob("0*.md")}


def _leaves(nav: object) -> Iterator[str]:
    match nav:
        case str():
            yield nav
        case list():
            for each in nav:
                yield from _leaves(each)
        case dict():
            for each in nav.values():
                yield from _leaves(each)


@dataclass(frozen=True, slots=True)
class Shown:
    """A command line in a page."""

    page: str
    line: str


def shown() -> list[Shown]:
    # Changes and decisions tell what was.
    pages = [page for page in PAGES if page.name != "CHANGELOG.md" and page.parent.name != "decisions"]
    lines = [(page, line) for page in pages for block in FENCE.findall(page.read_text()) for line in block.splitlines()]
    return [Shown(str(page.relative_to(ROOT)), found[1]) for page, line in lines if (found := PROMPT.match(line))]


def words(line: str) -> list[str]:
    """Up to a comment, a pipe or a redirection."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    first = []
    for word in lexer:
        if word in {"|", ">", ">>", "&&", ";", "<"}:
            break
        first.append(word)
    return first


def parse(arguments: list[str]) -> None:
    """UsageError for a command, an option or a choice that does not exist; nothing is carried out."""
    context: click.Context = click.Context(cli, info_name="protokube")
    command: click.Command = cli
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        name, found, arguments = command.resolve_command(context, arguments)
        assert found is not None
        command, context = found, click.Context(found, info_name=name, parent=context)
    if isinstance(command, Get) and arguments and (other := _other_command(arguments[0])):
        command, arguments = other, arguments[1:]
    ours = arguments[: arguments.index("--")] if "--" in arguments else list(arguments)  # the rest is another program's
    values, rest, _ = command.make_parser(context).parse_args(ours)
    if rest and not context.allow_extra_args:
        raise click.UsageError(f"unexpected: {rest}", context)
    for parameter in command.get_params(context):
        value = values.get(parameter.name or "")
        if isinstance(parameter.type, click.Choice) and isinstance(value, str):
            parameter.type.convert(value, parameter, context)


@pytest.mark.parametrize("each", shown(), ids=lambda each: f"{each.page}: {each.line}"[:90])
def test_every_command_in_a_page_exists_with_its_options(each: Shown) -> None:
    parse(words(each.line)[1:])


def test_a_command_that_does_not_exist_would_be_found() -> None:
    for line in ("protokube upp", "protokube up --no-such-option", "protokube drill kill-mister", "protokube list x y"):
        with pytest.raises(click.ClickException):
            parse(words(line)[1:])


def test_the_pages_show_most_commands() -> None:
    named = {words(each.line)[1] for each in shown() if len(words(each.line)) > 1}
    assert len(named & set(COMMANDS)) > len(COMMANDS) // 2
