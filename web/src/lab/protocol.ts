// What the page and its worker say to each other, and what can be played (`tanist.web.simulated.recording`).

import type { Change } from "../lib/state";

export interface Request {
  name: string;
  settings: Record<string, string>;
  seed: number | null;
  actions: string[];
}

export interface Play {
  name: string;
  title: string;
  about: string;
  seed: number;
  goes_on: boolean;
  settings: { name: string; choices: string[]; what: string }[];
}

export interface Story {
  number: number;
  title: string;
  text: string;
  yours?: boolean;
}

// What has come of a step, at its time.
export interface Finding {
  at: number;
  text: string;
}

export interface RunState {
  state: "ended" | "refused";
  text?: string;
  events?: number;
  digest?: string;
  lost?: number;
  acknowledged?: number;
  faults?: number;
  violation?: string;
}

export type ToWorker = { play: number; request: Request };

export type FromWorker =
  | { kind: "loading"; what: string }
  | { kind: "ready"; plays: Play[]; took_ms: number }
  | { kind: "lines"; play: number; changes: Change[] }
  | { kind: "ended"; play: number; took_ms: number }
  | { kind: "failed"; text: string };
