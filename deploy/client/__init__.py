"""`dossier`, the command line of an incident responder: a client of the HTTP API, in a distribution of its own.

Nothing of the server is imported here, and nothing but the standard library: `pyproject.toml` beside this file packs
the folder as `dossier_client`, which `pipx` installs on a laptop that has no Dossier.
"""

__version__ = "0.1.0"
