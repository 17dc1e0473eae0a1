"""Puts Python and tanist beside the page of the lab in the browser: `make weblab`.

    python tools/weblab.py build/weblab web/node_modules/pyodide

tanist's part is one archive: the modules that the simulator's view imports, found by importing it, and what stands in
for extension modules, compiled for Pyodide's Python. Its bytes depend on its sources only.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
STAND_INS = ROOT / "web" / "stand_ins"
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
ENTRY = "tanist.web.simulated.recording"

WHOLE = ("wire", "client", "log", "replica", "quorum", "controller", "coordinator", "security", "broker", "sim")
"""Packages of which modules are imported only when they are needed: the nodes, and the simulator."""

_LIST = f"""
import sys
import {ENTRY}
for module in sorted(sys.modules.values(), key=lambda each: each.__name__):
    if module.__name__.split(".")[0] == "tanist":
        print(module.__file__)
"""


def modules() -> list[Path]:
    """The files of the nodes and the simulator, and what else of tanist the view imports."""
    env = {"PYTHONPATH": f"{STAND_INS}:{SOURCE}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", _LIST], env=env, capture_output=True, text=True, check=True)
    found = {Path(line) for line in done.stdout.splitlines()}
    found.update(path for name in WHOLE for path in (SOURCE / "tanist" / name).rglob("*.py"))
    return sorted(found)


def write_archive(target: Path) -> None:
    with zipfile.ZipFile(target, "w") as archive:
        named = [(str(path.relative_to(SOURCE)), path) for path in modules()]
        named += [(path.name, path) for path in sorted(STAND_INS.glob("*.py"))]
        for name, path in sorted(named):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)


def main(folder: Path, pyodide: Path) -> None:
    (folder / "lab.html").replace(folder / "index.html")
    python = folder / "python"
    python.mkdir(exist_ok=True)
    for name in RUNTIME:
        shutil.copyfile(pyodide / name, python / name)
    write_archive(python / "tanist.zip")
    subprocess.run(["node", str(ROOT / "web" / "precompile.mjs"), str(python)], check=True)
    total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    modules_bytes = (python / "tanist.zip").stat().st_size
    print(f"{folder}: {total / 1e6:.1f} MB, {modules_bytes / 1e6:.2f} MB of it tanist's modules")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
