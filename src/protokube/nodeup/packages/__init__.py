"""The distribution's packages: what dpkg's database says, what apt and dnf are told, and what their answers mean.

Only `apt` and `services` touch the machine; the rest decides and is pure. Their caller is `tasks.packages`.
"""
