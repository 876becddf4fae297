"""The code of the killable child process of a disk job; it starts in about 30 ms.

It imports only cheap modules of the standard library, and none of ours outside this folder: dataclasses and subprocess
alone would double the start time. `run.py` is the program; `protokube.host.jobs` starts it and decodes its result.
"""
