"""The user's spec: parsed and checked, with the file and line of every value; no defaults are set yet."""
