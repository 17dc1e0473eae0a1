"""Python imports this at its start where the folder is on its path: processes of nodes plant what a test wants."""

from tests.planting import install_from_environment

install_from_environment()
