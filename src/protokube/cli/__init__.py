"""The command line: one file for each command; `main.py` loads and runs them."""
