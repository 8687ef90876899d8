"""Configuration of other systems as Dossier's: what can be translated, and a list of what cannot. Pure."""
