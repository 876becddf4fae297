"""The command line: one file for each command; `main.py` wires the edges in."""
