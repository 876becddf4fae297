"""How to talk to each vendor: its wire, its signing, its paging; nothing here knows what a volume is for."""
