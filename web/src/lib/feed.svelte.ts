// The connection to the server, and what the page shows of it: now, or a moment of the past.

import type { Control, Price, Salvaged } from "./control";
import { History, type Moment, byDanger, differs, events } from "./history";
import type { Change, Cluster, Look, MetadataEvent, Partition } from "./state";

export type Connection = "connecting" | "live" | "lost";

export class Feed implements Control {
  connection = $state<Connection>("connecting");
  look = $state.raw<Look>({});
  partitions = $state.raw<Partition[]>([]);
  events = $state.raw<MetadataEvent[]>([]);
  moments = $state.raw<Moment[]>([]);
  // The moment that is shown; null: now.
  at = $state<number | null>(null);
  // The latest turning point, for screen readers.
  news = $state("");
  readonly token: string | null;

  private history: History | null = null;
  private now: Look = {};
  private page = "";
  private watched: [string, number][] = [];
  private drawing = 0;

  constructor() {
    this.token = new URLSearchParams(location.search).get("token");
  }

  get cluster(): Cluster | undefined {
    return this.look.cluster as Cluster | undefined;
  }

  connect(): void {
    const source = new EventSource("/api/events");
    source.addEventListener("begin", (message) => {
      const { data } = message as MessageEvent<string>;
      const begin = JSON.parse(data) as {
        page: string;
        at: number;
        state: Look;
        later: Change[];
      };
      this.page = begin.page;
      this.history = new History(begin.at, begin.state, begin.later, data.length);
      this.now = this.history.last();
      this.connection = "live";
      this.draw(true);
      void this.sendWatched();
    });
    source.addEventListener("change", (message) => {
      const { data } = message as MessageEvent<string>;
      const change = JSON.parse(data) as Change;
      this.history?.add(change, data.length);
      this.now = { ...this.now, ...change.set };
      for (const key of change.gone) delete this.now[key];
      for (const [key, value] of Object.entries(change.set)) {
        const event = value as MetadataEvent;
        if (key.startsWith("e/") && event.weight >= 2) this.news = event.text;
      }
      this.draw(false);
    });
    source.addEventListener("error", () => {
      this.connection = "lost"; // the browser tries again by itself, and the stream begins anew
    });
  }

  show(at: number | null): void {
    this.at = at;
    this.draw(true);
  }

  series(key: string, from: number, to: number): { at: number; value: unknown }[] {
    return this.history?.series(key, from, to) ?? [];
  }

  watch(wanted: [string, number][]): void {
    if (JSON.stringify(wanted) === JSON.stringify(this.watched)) return;
    this.watched = wanted;
    void this.sendWatched();
  }

  private async sendWatched(): Promise<void> {
    if (!this.page) return;
    await this.post("/api/watch", { page: this.page, partitions: this.watched }).catch(() => undefined);
  }

  get refuses(): string | null {
    return this.token ? null : "Reading only: the address that `tanist ui` prints has a token, which faults need.";
  }

  price(action: string, node: number): Promise<Price> {
    return this.get(`/api/price?action=${action}&node=${node}`);
  }

  async act(action: string, node: number | null): Promise<string> {
    return (await this.post("/api/act", { action, node })).done ?? "done";
  }

  salvaged(topic: string, partition: number): Promise<Salvaged> {
    return this.get(`/api/salvage?topic=${encodeURIComponent(topic)}&partition=${partition}`);
  }

  private async post(path: string, body: unknown): Promise<{ done?: string }> {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (this.token) headers["x-tanist-token"] = this.token;
    const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
    const text = await response.text();
    const found = text.startsWith("{") ? (JSON.parse(text) as { done?: string; error?: string }) : { error: text.trim() };
    if (!response.ok) throw new Error(found.error || `the server answers ${response.status}`);
    return found;
  }

  private async get<T>(path: string): Promise<T> {
    const response = await fetch(path);
    const found = (await response.json()) as T & { error?: string };
    if (!response.ok) throw new Error(found.error ?? `the server answers ${response.status}`);
    return found;
  }

  // Once a frame, however many changes come.
  private draw(all: boolean): void {
    if (all) {
      this.redraw();
      return;
    }
    if (this.drawing) return;
    this.drawing = requestAnimationFrame(() => this.redraw());
    if (document.hidden) {
      cancelAnimationFrame(this.drawing);
      this.redraw();
    }
  }

  private redraw(): void {
    this.drawing = 0;
    const history = this.history;
    if (!history) return;
    const before = this.look;
    const look = this.at === null ? this.now : history.at(this.at);
    this.look = look;
    this.moments = history.moments();
    if (differs(before, look, "p/")) this.partitions = byDanger(look);
    if (differs(before, look, "e/")) this.events = events(look);
  }
}

export const feed = new Feed();
