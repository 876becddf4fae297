"""What the manual pages of the Debian package say about exit codes."""

from __future__ import annotations

import re

import manpages

from protokube.errors import ExitCode


def test_every_exit_code_is_on_every_page() -> None:
    wanted = {str(int(code)) for code in ExitCode}
    for page in manpages.pages().values():
        (line,) = re.findall(r"^\.SH EXIT STATUS\n(.*)$", page, re.MULTILINE)
        assert set(re.findall(r"(\d+):", line)) == wanted
