"""systemd units: their files and links below a root, and the jobs that systemd carries out for us over D-Bus.

`state` looks and applies; tasks.unit and tasks.mount are its callers. `install` and `names` are pure.
"""
