"""What should be true of a machine, one file for each concern: its setup and facts in, tasks out. Pure.

`whole` is the list of all of them; `checks` says why a machine cannot be made what it should be.
"""
