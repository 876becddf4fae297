"""The kubeconfig of the person who typed a command: a context is merged into it, and taken out again.

`values`, `document`, `merging`, `removing` and `person` decide, over values and text. `files` touches files, in a child
that has that person's rights; `user_kubeconfig` puts both together, and `record` remembers where we merged.
Not here: our own kubeconfig in the state folder (`local.bringup`), and what commands say (`cli.shared.contexts`).
"""
