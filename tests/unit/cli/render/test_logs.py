"""How log lines are shown."""

from __future__ import annotations

import json

from protokube.cli.render.logs import Prefixes, Shown, as_json, as_text, render_list

LINE = Shown(1795068181.5, "h1", "agent", "round 1")


def test_lines_of_several_hosts_begin_with_the_host_in_one_column() -> None:
    prefixes = Prefixes(sources=False, coloured=False)
    prefixes.expect([("h1", "agent"), ("long-host", "agent")])

    assert prefixes.of(LINE) == "h1        | "
    assert prefixes.of(LINE._replace(host="long-host")) == "long-host | "


def test_lines_of_different_logs_name_the_log_as_well_and_those_of_the_cloud_nothing_else() -> None:
    prefixes = Prefixes(sources=True, coloured=False)

    assert prefixes.of(LINE) == "h1/agent | "
    assert prefixes.of(LINE._replace(host="", source="cloud")) == "cloud    | "


def test_each_host_has_a_colour_that_stays() -> None:
    prefixes = Prefixes(sources=False, coloured=True)
    first, second, again = (prefixes.of(LINE._replace(host=host)) for host in ("h1", "h2", "h1"))

    assert first == again == "\x1b[36mh1 | \x1b[0m"
    assert second.startswith("\x1b[33m")


def test_what_a_program_logs_does_not_command_a_terminal() -> None:
    line = LINE._replace(text="\x1b]0;title\x07\tred\x9b31m")

    assert as_text(line, "", terminal=True) == "\ufffd]0;title\ufffd\tred\ufffd31m"
    assert as_text(line, "", terminal=False) == line.text


def test_as_data_each_line_is_one_object_with_its_time() -> None:
    assert json.loads(as_json(LINE)) == {
        "time": "2026-11-19T06:03:01.500000+00:00", "host": "h1", "log": "agent", "line": "round 1",
    }  # fmt: skip
    assert json.loads(as_json(LINE._replace(at=None, host=""))) | {"line": ""} == {
        "time": None, "host": None, "log": "agent", "line": "",
    }  # fmt: skip
    assert "\n" not in as_json(LINE._replace(text="a\u2028b\nc"))


def test_the_list_says_where_each_log_is_and_how_old_its_last_line_is() -> None:
    tree = {
        "cluster": "dev",
        "logs": [
            {"name": "agent", "hosts": ["h1", "h2"], "lastWrite": 100.0},
            {"name": "main/a", "hosts": ["h1"], "lastWrite": None},
        ],
        "hosts": ["h1", "h2"],
    }

    assert [line.split() for line in render_list(tree, 112.0)[:3]] == [
        ["LOG", "HOST", "LAST", "LINE"],
        ["agent", "2", "hosts", "12", "s", "ago"],
        ["main/a", "h1", "-"],
    ]
