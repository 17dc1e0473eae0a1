// What was seen so far: a beginning and the changes since. Any moment of it can be shown again.

import type { Change, Look, MetadataEvent, Partition } from "./state";
import { DANGERS, place } from "./state";

const CHANGES_MAX = 3600;
// The server keeps as much; a change is as long as its message.
const LENGTH_MAX = 8 << 20;

// A point on the time line. `change` is -1 for what only the metadata log tells, from before the looking began.
export interface Moment {
  at: number;
  change: number;
  event?: MetadataEvent;
}

function apply(look: Look, change: Change): void {
  Object.assign(look, change.set);
  for (const key of change.gone) delete look[key];
}

export class History {
  private base: Look;
  private baseAt: number;
  private changes: Change[];
  private dropped = 0;
  private lengths: number[];
  private length: number;

  constructor(at: number, state: Look, later: Change[], length = 0) {
    this.base = { ...state };
    this.baseAt = at;
    this.changes = [...later];
    this.length = later.length ? length : 0;
    this.lengths = later.map(() => this.length / later.length);
  }

  add(change: Change, length = 0): void {
    if (!this.baseAt) {
      this.base = { ...change.set };
      this.baseAt = change.at;
      return;
    }
    this.changes.push(change);
    this.lengths.push(length);
    this.length += length;
    while (this.changes.length > CHANGES_MAX || (this.length > LENGTH_MAX && this.changes.length > 1)) {
      this.length -= this.lengths.shift() ?? 0;
      const oldest = this.changes.shift();
      if (!oldest) break;
      this.baseAt = oldest.at;
      this.dropped += 1;
      apply(this.base, oldest);
    }
  }

  get began(): number {
    return this.baseAt;
  }

  last(): Look {
    return this.at(Number.POSITIVE_INFINITY);
  }

  // How things were at a time. From before the looking: only what the changes in the metadata log say.
  at(time: number): Look {
    if (time < this.baseAt) return this.fromEvents(time);
    const look = { ...this.base };
    for (const change of this.changes) {
      if (change.at > time) break;
      apply(look, change);
    }
    return look;
  }

  // The values of one key in a stretch of time, each with the time from which on it held.
  series(key: string, from: number, to: number): { at: number; value: unknown }[] {
    const found = [{ at: Math.max(from, this.baseAt), value: this.base[key] }];
    for (const change of this.changes) {
      if (change.at > to) break;
      const here = key in change.set;
      if (!here && !change.gone.includes(key)) continue;
      const point = { at: Math.max(from, change.at), value: here ? change.set[key] : undefined };
      if (change.at <= from) found[0] = point;
      else found.push(point);
    }
    return found;
  }

  moments(): Moment[] {
    const found: Moment[] = [];
    for (const value of events(this.base)) found.push({ at: value.at_ms, change: -1, event: value });
    const before = found.filter((each) => each.at < this.baseAt);
    before.push({ at: this.baseAt, change: 0 });
    this.changes.forEach((change, index) => {
      before.push({ at: change.at, change: this.dropped + index + 1, event: heaviest(change) });
    });
    return before;
  }

  private fromEvents(time: number): Look {
    const look: Look = {};
    if (this.base.cluster) look.cluster = { ...(this.base.cluster as object), faults: [], problem: undefined };
    for (const value of events(this.base)) {
      if (value.at_ms > time) break;
      look[`e/${value.offset}`] = value;
      if (value.after) look[`p/${place(value.after.topic, value.after.partition)}`] = value.after;
    }
    return look;
  }
}

function heaviest(change: Change): MetadataEvent | undefined {
  let found: MetadataEvent | undefined;
  for (const [key, value] of Object.entries(change.set)) {
    if (!key.startsWith("e/")) continue;
    const event = value as MetadataEvent;
    if (!found || event.weight >= found.weight) found = event;
  }
  return found;
}

export function events(look: Look): MetadataEvent[] {
  const found: MetadataEvent[] = [];
  for (const key in look) if (key.startsWith("e/")) found.push(look[key] as MetadataEvent);
  return found.sort((one, other) => one.offset - other.offset);
}

export function partitions(look: Look): Partition[] {
  const found: Partition[] = [];
  for (const key in look) if (key.startsWith("p/")) found.push(look[key] as Partition);
  return found;
}

// Whether any value behind the prefix is another one.
export function differs(before: Look, after: Look, prefix: string): boolean {
  let known = 0;
  for (const key in after) {
    if (!key.startsWith(prefix)) continue;
    if (before[key] !== after[key]) return true;
    known += 1;
  }
  for (const key in before) if (key.startsWith(prefix)) known -= 1;
  return known !== 0;
}

const DANGER_ORDER = new Map(DANGERS.map((danger, index) => [danger, index]));

// The most endangered first.
export function byDanger(look: Look): Partition[] {
  return partitions(look).sort(
    (one, other) =>
      (DANGER_ORDER.get(one.danger) ?? 9) - (DANGER_ORDER.get(other.danger) ?? 9) ||
      Number(one.internal) - Number(other.internal) ||
      one.topic.localeCompare(other.topic) ||
      one.partition - other.partition,
  );
}
