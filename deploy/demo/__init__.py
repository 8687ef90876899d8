"""The demo: a region's world sent through the public endpoint, and a look at what Dossier makes of it."""
