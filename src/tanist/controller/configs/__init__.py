"""Configurations: the catalogue of names, the values in force, their descriptions, and the validation of new ones."""
