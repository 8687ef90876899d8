"""Dossier's Postgres backend as tests use it."""
