// Python in a worker: loads Pyodide and tanist from this page's own folder, and plays what it is asked for.

import type { Change } from "../lib/state";
import type { FromWorker, Play, ToWorker } from "./protocol";

interface Python {
  unpackArchive(data: ArrayBuffer, format: string, options: { extractDir: string }): void;
  runPython(code: string): unknown;
  globals: { get(name: string): (...given: unknown[]) => unknown };
}

const folder = new URL("../python/", self.location.href);

function tell(message: FromWorker): void {
  self.postMessage(message);
}

async function load(): Promise<Python> {
  const began = performance.now();
  tell({ kind: "loading", what: "Python" });
  const modules = fetch(new URL("tanist.zip", folder)).then(async (response) => {
    if (!response.ok) throw new Error(`tanist.zip: ${response.status}`);
    return response.arrayBuffer();
  });
  const runtime = new URL("pyodide.mjs", folder).href;
  const { loadPyodide } = (await import(/* @vite-ignore */ runtime)) as {
    loadPyodide: (options: { indexURL: string }) => Promise<Python>;
  };
  const [python, archive] = await Promise.all([loadPyodide({ indexURL: folder.href }), modules]);
  tell({ kind: "loading", what: "tanist" });
  python.unpackArchive(archive, "zip", { extractDir: "/tanist" });
  python.runPython(`
import json, sys
sys.path.insert(0, "/tanist")
from tanist.web.simulated.recording import catalogue, play
plays = lambda: json.dumps(catalogue())
`);
  const plays = JSON.parse(String(python.globals.get("plays")())) as Play[];
  tell({ kind: "ready", plays, took_ms: performance.now() - began });
  return python;
}

const loaded = load();
loaded.catch((error: unknown) => tell({ kind: "failed", text: String(error) }));

self.onmessage = async ({ data }: MessageEvent<ToWorker>) => {
  const python = await loaded;
  const began = performance.now();
  const sink = (lines: string): void =>
    tell({ kind: "lines", play: data.play, changes: JSON.parse(lines) as Change[] });
  try {
    python.globals.get("play")(JSON.stringify(data.request), sink);
    tell({ kind: "ended", play: data.play, took_ms: performance.now() - began });
  } catch (error) {
    tell({ kind: "failed", text: String(error) });
  }
};
