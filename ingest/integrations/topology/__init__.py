"""Containment and dependencies, as other systems export them, made into `topology` rows."""
