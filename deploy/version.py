"""The version of Dossier, in one place."""

VERSION = "0.1.0"
