"""Infrastructure, a folder for each kind of help; each folder's own page is the Protocol, each file in it a vendor."""
