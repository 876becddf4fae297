"""Report the controller's work: log, metrics, Events, conditions, and `explain record`.

Not here: how it is shown in a terminal (`cli.render`). Nothing here changes a record.
"""
