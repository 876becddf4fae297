"""Render views, plans and reports as text and as data. Pure: values in, strings out.

Not here: where the text goes (`cli.shared.screen`), and how a view is collected (`local.view`, `view`).
"""
