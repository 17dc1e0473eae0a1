// A recorded run: its changes in order of virtual time. Any moment of it can be shown, forwards and backwards.

import type { Change, Look } from "../lib/state";
import type { RunState, Story } from "./protocol";

const FRAME_EVERY = 64;

export interface Scene {
  // The place of the change that begins it, and of the last one before the next scene.
  first: number;
  last: number;
  at: number;
  story: Story;
}

export class Recording {
  readonly changes: Change[] = [];
  readonly scenes: Scene[] = [];
  run: RunState | null = null;
  // A look in front of every 64th change.
  private frames: Look[] = [];
  private look: Look = {};
  private place = -1;

  add(changes: Change[]): void {
    for (const change of changes) {
      const run = change.set.run as RunState | undefined;
      if (run) {
        this.run = run;
        if (Object.keys(change.set).length === 1) continue;
      }
      const story = change.set.story as Story | undefined;
      const index = this.changes.push(change) - 1;
      const before = this.scenes[this.scenes.length - 1];
      if (before) before.last = story ? index - 1 : index;
      if (story) this.scenes.push({ first: index, last: index, at: change.at, story });
    }
  }

  get end(): number {
    return this.changes[this.changes.length - 1]?.at ?? 0;
  }

  // The last change at or before a time; -1: none.
  indexAt(time: number): number {
    let [low, high] = [0, this.changes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.changes[middle]?.at ?? 0) <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  at(index: number): number {
    return this.changes[Math.max(0, index)]?.at ?? 0;
  }

  // How everything was after a change.
  lookAt(index: number): Look {
    if (index === this.place) return this.look;
    let next = this.place + 1;
    let look: Look;
    if (index < this.place) {
      const frame = Math.min(Math.floor((index + 1) / FRAME_EVERY), this.frames.length - 1);
      look = { ...this.frames[frame] };
      next = frame * FRAME_EVERY;
    } else {
      look = { ...this.look };
    }
    for (; next <= index; next += 1) {
      if (next % FRAME_EVERY === 0 && !this.frames[next / FRAME_EVERY]) this.frames[next / FRAME_EVERY] = { ...look };
      const change = this.changes[next];
      if (!change) break;
      Object.assign(look, change.set);
      for (const key of change.gone) delete look[key];
    }
    this.place = index;
    this.look = look;
    return look;
  }

  sceneAt(index: number): number {
    let found = -1;
    for (const [number, scene] of this.scenes.entries()) {
      if (scene.first > index) break;
      found = number;
    }
    return found;
  }
}
