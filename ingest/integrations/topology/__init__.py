"""What contains what and what needs what, as other systems export it, made into `topology` rows."""
