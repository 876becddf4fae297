"""Commands about DNS records: the dns-controller with its wiring, and `explain record`.

Not here: the controller itself (`controllers.dns`).
"""
