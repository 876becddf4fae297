"""How a command is told where the zones are: options, keys and addresses, and what is wrong with them."""

from __future__ import annotations

import subprocess
import sys

from protokube.errors import ExitCode


def test_without_its_library_route53_is_refused_once_and_at_the_start_with_what_helps() -> None:
    code = (
        "import sys; sys.modules['botocore'] = None; from protokube.cli.main import run; "
        "sys.exit(run(['dns-controller', '--dns', 'aws-route53', '--kubeconfig', 'nothing']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == ExitCode.REFUSED
    told = ["error: Route 53 needs botocore, which is not installed", "  hint: pip install 'protokube[route53]'"]
    assert done.stderr.splitlines() == told
