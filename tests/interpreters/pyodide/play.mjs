// Runs a Python program under Pyodide: node play.mjs FOLDER-OF-PACKAGES PROGRAM PATHS ARGUMENTS...
// PATHS are folders that the program can import from, separated by colons.
import { pathToFileURL } from "node:url";

const [packages, program, paths, ...args] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${packages}/pyodide/pyodide.mjs`).href);
const python = await loadPyodide({ stdout: (line) => console.log(line) });
const mounted = paths.split(":").map((folder, number) => {
  const place = `/mounted/${number}`;
  python.FS.mkdirTree(place);
  python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, place);
  return place;
});
python.globals.set("paths", python.toPy(mounted));
python.globals.set("arguments", python.toPy([program, ...args]));
await python.runPythonAsync(`
import runpy, sys
sys.dont_write_bytecode = True
sys.path[:0] = paths
sys.argv[:] = arguments
runpy.run_module(arguments[0], run_name="__main__")
`);
