"""The demo: a region's world sent through the public door, and a look at what Dossier makes of it."""
