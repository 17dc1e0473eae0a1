// The lab's state: what is played, the worker that plays it, and the moment that is shown.

import type { Control, Price, Salvaged } from "../lib/control";
import { byDanger, differs, events } from "../lib/history";
import type { Change, Cluster, Look, MetadataEvent, Partition, Positions } from "../lib/state";
import { place } from "../lib/state";
import type { Finding, FromWorker, Play, Request, RunState, Story, ToWorker } from "./protocol";
import { Recording, type Scene } from "./recording";

export const SPEEDS = [0.02, 0.1, 0.5, 1, 2, 5, 20];
// A pause without a change is cut to this much virtual time.
const QUIET_MS = 150;
const MENDS = ["slow", "start", "heal"];

export type Phase = "loading" | "ready" | "failed";

export class Lab implements Control {
  phase = $state<Phase>("loading");
  // What is loaded at present, or why it failed.
  what = $state("");
  plays = $state.raw<Play[]>([]);
  request = $state.raw<Request>({ name: "last-replica-standing", settings: {}, seed: null, actions: [] });
  // Virtual milliseconds.
  time = $state(0);
  index = $state(-1);
  playing = $state(false);
  speed = $state(2);
  computing = $state(false);
  // How long the last run took, in real milliseconds.
  took = $state(0);
  loadTook = $state(0);
  end = $state(0);
  length = $state(0);
  run = $state.raw<RunState | null>(null);
  scenes = $state.raw<Scene[]>([]);
  scene = $state(-1);
  look = $state.raw<Look>({});
  partitions = $state.raw<Partition[]>([]);
  events = $state.raw<MetadataEvent[]>([]);

  private worker: Worker | null = null;
  private recording = new Recording();
  private number = 0;
  private asked: Request | null = null;
  // The moment that a new run shall show as soon as it has come there; null: its first scene with a partition.
  private target: number | null = null;
  private begins = false;
  private drawn = 0;

  get cluster(): Cluster | undefined {
    return this.look.cluster as Cluster | undefined;
  }

  get story(): Story | undefined {
    return this.look.story as Story | undefined;
  }

  // What has come of the present step until now.
  get found(): Finding[] {
    return (this.look.found as Finding[] | undefined) ?? [];
  }

  get play(): Play | undefined {
    return this.plays.find((each) => each.name === this.request.name);
  }

  // -- the worker

  start(): void {
    this.worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "tanist" });
    this.worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.heard(data);
    this.worker.onerror = (event) => {
      this.phase = "failed";
      this.what = event.message || "the worker could not be started";
    };
  }

  private heard(message: FromWorker): void {
    if (message.kind === "loading") {
      this.what = message.what;
    } else if (message.kind === "ready") {
      this.plays = message.plays;
      this.loadTook = message.took_ms;
      this.phase = "ready";
      if (this.asked) this.send();
    } else if (message.kind === "failed") {
      this.phase = "failed";
      this.what = message.text;
      this.computing = false;
    } else if (message.play === this.number) {
      if (message.kind === "lines") this.recorded(message.changes);
      else this.ended(message.took_ms);
    } else if (message.kind === "ended" && this.asked) {
      this.send();
    }
  }

  // Play this, and show the moment `at`.
  begin(request: Request, at: number | null, playing: boolean): void {
    this.request = request;
    this.asked = request;
    this.target = at;
    this.begins = true;
    this.playing = playing;
    // A run under way cannot be stopped; what it still tells is not for us.
    const busy = this.computing;
    this.number += 1;
    this.computing = true;
    if (this.phase === "ready" && !busy) this.send();
  }

  private send(): void {
    if (!this.asked) return;
    this.recording = new Recording();
    const message: ToWorker = { play: this.number, request: $state.snapshot(this.asked) };
    this.asked = null;
    this.worker?.postMessage(message);
  }

  private recorded(changes: Change[]): void {
    this.recording.add(changes);
    this.measure();
    if (this.begins) this.tryToBegin(false);
  }

  private ended(took: number): void {
    this.took = took;
    this.computing = false;
    this.run = this.recording.run;
    this.measure();
    if (this.begins) this.tryToBegin(true);
  }

  private measure(): void {
    this.end = this.recording.end;
    this.length = this.recording.changes.length;
    this.scenes = [...this.recording.scenes];
    this.run = this.recording.run;
  }

  // The first picture: where the link says, or where the first partition has its replicas.
  private tryToBegin(all: boolean): void {
    if (this.target !== null) {
      if (!all && this.recording.end <= this.target) return;
      this.begins = false;
      this.show(this.target);
      return;
    }
    const first = this.recording.changes.findIndex((change) => Object.keys(change.set).some((key) => key.startsWith("r/")));
    if (first < 0 && !all) return;
    this.begins = false;
    this.show(this.recording.at(Math.max(0, first)));
  }

  // -- the moment

  show(time: number): void {
    this.time = Math.max(0, Math.min(time, this.recording.end));
    this.draw();
  }

  private draw(): void {
    const index = this.recording.indexAt(this.time);
    const look = this.recording.lookAt(index);
    const before = this.look;
    if (look === before) return;
    this.index = index;
    this.scene = this.recording.sceneAt(index);
    this.look = look;
    if (differs(before, look, "p/")) this.partitions = byDanger(look);
    if (differs(before, look, "e/")) this.events = events(look);
  }

  // Once a frame.
  tick(now: number): void {
    const passed = Math.min(100, now - this.drawn);
    this.drawn = now;
    if (!this.playing || this.begins) return;
    let time = this.time + passed * this.speed;
    const next = this.recording.changes[this.recording.indexAt(this.time) + 1];
    if (next && next.at - time > QUIET_MS) time = next.at - QUIET_MS;
    if (time >= this.recording.end) {
      time = this.recording.end;
      if (!this.computing) this.playing = false;
    }
    if (time !== this.time) this.show(time);
  }

  toggle(): void {
    if (!this.playing && !this.computing && this.time >= this.recording.end) this.show(this.recording.at(0));
    this.playing = !this.playing;
  }

  // To the next instant in which something changes, or to the one before.
  step(by: 1 | -1): void {
    this.playing = false;
    const index = this.recording.indexAt(this.time);
    if (by > 0) {
      const next = this.recording.changes[index + 1];
      if (next) this.show(next.at);
    } else {
      const present = this.recording.at(index);
      const before = this.recording.changes[this.recording.indexAt(present - 0.0005)];
      if (before) this.show(before.at);
    }
  }

  // To what a scene has led to: the last moment before the next one.
  showScene(number: number): void {
    const scene = this.scenes[Math.max(0, Math.min(number, this.scenes.length - 1))];
    if (!scene) return;
    this.playing = false;
    this.show(this.recording.at(scene.last));
  }

  nextScene(by: 1 | -1): void {
    const scene = this.scenes[this.scene];
    const atItsEnd = scene !== undefined && this.index >= scene.last;
    this.showScene(by > 0 ? this.scene + (atItsEnd ? 1 : 0) : this.scene - 1);
  }

  // -- what the user does (`Control`)

  get refuses(): string | null {
    if (this.phase !== "ready") return "The cluster is not there yet.";
    return this.request.actions.length >= 200 ? "More than 200 faults are not played." : null;
  }

  async price(action: string, node: number): Promise<Price> {
    if (MENDS.includes(action)) return { lines: ["no record is lost; what waits for it gets slower"], destroys: 0 };
    const lines: string[] = [];
    let destroys = 0;
    for (const [key, value] of Object.entries(this.look)) {
      if (!key.startsWith("r/")) continue;
      const positions = value as Positions;
      const found = positions.if_dies.find((each) => each.broker === node);
      if (!found) continue;
      lines.push(`${positions.topic}-${positions.partition}: ${found.text}`);
      if (action !== "power-loss") continue;
      destroys += found.destroyed;
      if (found.destroyed) lines.push(`${found.destroyed} of them are not synced: a power loss destroys them`);
    }
    const voters = this.cluster?.nodes.filter((each) => each.roles.includes("controller")) ?? [];
    if (voters.some((each) => each.id === node)) {
      const left = voters.filter((each) => each.id !== node && ["running", "fenced", "starting"].includes(each.state));
      const holds = left.length * 2 > voters.length;
      lines.push(`${left.length} of ${voters.length} controllers left: ${holds ? "the quorum holds" : "no quorum, no elections"}`);
    }
    return { lines: lines.length ? lines : ["no partition has a replica there"], destroys };
  }

  // From this moment on it is another run: what was done later belongs to a future that does not come.
  async act(action: string, node: number | null): Promise<string> {
    const at = Math.round(this.time * 1000);
    const before = this.request.actions.filter((each) => Number.parseInt(each) <= at);
    const actions = [...before, node === null ? `${at}.${action}` : `${at}.${action}.${node}`];
    this.begin({ ...this.request, actions }, this.time, true);
    return `${action}${node === null ? "" : ` node ${node}`} at ${(this.time / 1000).toFixed(3)} s`;
  }

  async salvaged(topic: string, partition: number): Promise<Salvaged> {
    const found = this.look[`salvaged/${place(topic, partition)}`] as Salvaged | undefined;
    if (!found) throw new Error("its records were not read");
    return found;
  }
}

export const lab = new Lab();

// -- the address

const RESERVED = ["s", "seed", "a", "t", "p", "speed"];

export function toHash(request: Request, at: number | null, chosen: string): string {
  const hash = new URLSearchParams({ s: request.name });
  for (const [name, value] of Object.entries(request.settings)) hash.set(name, value);
  if (request.seed !== null) hash.set("seed", String(request.seed));
  if (request.actions.length) hash.set("a", request.actions.join(","));
  if (at !== null) hash.set("t", String(at));
  if (chosen) hash.set("p", chosen);
  return hash.toString();
}

export function fromHash(text: string): { request: Request | null; at: number | null; chosen: string } {
  const hash = new URLSearchParams(text.replace(/^#/, ""));
  const name = hash.get("s");
  const settings: Record<string, string> = {};
  for (const [key, value] of hash) if (!RESERVED.includes(key)) settings[key] = value;
  const seed = Number.parseInt(hash.get("seed") ?? "");
  const at = Number.parseFloat(hash.get("t") ?? "");
  const actions = (hash.get("a") ?? "").split(",").filter(Boolean);
  return {
    request: name === null ? null : { name, settings, seed: Number.isSafeInteger(seed) ? seed : null, actions },
    at: Number.isFinite(at) ? at : null,
    chosen: hash.get("p") ?? "",
  };
}
