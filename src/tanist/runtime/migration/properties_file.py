"""The properties file of a node that is to change: whether tanist starts from it, before anything is stopped."""

from __future__ import annotations

from pathlib import Path

from tanist.broker.config import ConfigError, PropertiesError
from tanist.log.properties import split_paths
from tanist.runtime.migration.nodes import Node
from tanist.runtime.migration.safety import Problem
from tanist.runtime.process.serve import load_config

FILE = "properties"


def file_problems(path: Path, node: Node) -> list[Problem]:
    """What is wrong with the file. It must be this node's, with the folders that the node has now."""
    try:
        config = load_config(str(path), {})
    except (ConfigError, PropertiesError, UnicodeDecodeError) as error:
        return [Problem(FILE, f"{path}: {error}")]
    except OSError as error:
        return [Problem(FILE, f"cannot read {path}: {error.strerror or error}")]
    found = []
    if config.node_id != node.node_id:
        found.append(Problem(FILE, f"{path} is of node {config.node_id}"))
    elif node.log_dirs and sorted(config.log_dirs) != sorted(split_paths(node.log_dirs)):
        folders = ",".join(config.log_dirs)
        found.append(Problem(FILE, f"{path} has log.dirs={folders}, and node {node.node_id} has {node.log_dirs}"))
    return found
