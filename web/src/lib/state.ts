// The form of a look: the same as `tanist.web.state`, which says what each field means. Absent: the source does not say.

export type Danger =
  | "offline"
  | "recovering"
  | "under-min-isr"
  | "at-min-isr"
  | "under-replicated"
  | "unclean"
  | "healthy";

export const DANGERS: Danger[] = [
  "offline",
  "recovering",
  "under-min-isr",
  "at-min-isr",
  "under-replicated",
  "unclean",
  "healthy",
];

export const DANGER_WORDS: Record<Danger, string> = {
  offline: "no leader",
  recovering: "recovering",
  "under-min-isr": "below min ISR",
  "at-min-isr": "at min ISR",
  "under-replicated": "under-replicated",
  unclean: "unclean election",
  healthy: "healthy",
};

export interface NodeState {
  id: number;
  roles: string[];
  state: string;
  why?: string;
  fenced?: boolean;
  since_ms?: number;
}

export interface Cluster {
  source: "cluster" | "bootstrap" | "simulator";
  cluster_id?: string;
  controller?: number;
  quorum_epoch?: number;
  nodes: NodeState[];
  faults: { kind: string; nodes: number[]; text: string }[];
  problem?: string;
  absent: string[];
  actions: string[];
  options: string;
}

export interface Partition {
  topic: string;
  partition: number;
  leader: number;
  leader_epoch: number;
  replicas: number[];
  isr: number[];
  danger: Danger;
  why: string;
  min_isr: number;
  elr?: number[];
  last_known_elr?: number[];
  partition_epoch?: number;
  recovering?: boolean;
  last_unclean_epoch: number;
  strategy?: string;
  internal: boolean;
}

export interface Replica {
  broker: number;
  role: string;
  alive: boolean;
  start?: number;
  end?: number;
  high_watermark?: number;
  synced?: number;
  epochs: [number, number][];
  note?: string;
  since_ms?: number;
}

export interface Stretch {
  start: number;
  end: number;
  copies: number;
  synced: number;
  live: number;
}

export interface IfDies {
  broker: number;
  leader: number;
  isr: number[];
  elr: number[];
  only_here: number;
  destroyed: number;
  only_dead: number;
  missing: number;
  text: string;
}

export interface Positions {
  topic: string;
  partition: number;
  replicas: Replica[];
  acknowledged?: number;
  stretches: Stretch[];
  if_dies: IfDies[];
}

export interface BrokerTraffic {
  broker: number;
  records_in: number;
  bytes_in: number;
  bytes_out: number;
  replication_in: number;
  replication_out: number;
}

export interface PartitionTraffic {
  topic: string;
  partition: number;
  records_in: number;
  bytes_in: number;
  records_out?: number;
}

export interface MetadataEvent {
  offset: number;
  at_ms: number;
  record: string;
  text: string;
  topic?: string;
  partition?: number;
  broker?: number;
  why?: string;
  weight: number;
  worse?: boolean;
  after?: Partition;
}

export interface Group {
  group: string;
  kind: string;
  state: string;
  lag?: number;
  partitions: { topic: string; partition: number; committed: number; end?: number }[];
}

export interface Salvage {
  id: string;
  topic: string;
  partition: number;
  broker: number;
  start: number;
  end: number;
  why: string;
  at_ms: number;
  leader_epoch: number;
  epochs: [number, number][];
}

export type Look = Record<string, unknown>;

export interface Change {
  at: number;
  set: Look;
  gone: string[];
}

export function place(topic: string, partition: number): string {
  return `${topic}/${partition}`;
}

const numbers = new Intl.NumberFormat("en-US");

// A name that is too long for a list keeps its beginning, and its end with the partition's number.
export function short(name: string): string {
  return name.length > 64 ? `${name.slice(0, 40)}…${name.slice(-20)}` : name;
}

export function count(value: number | undefined): string {
  return value === undefined ? "?" : numbers.format(value);
}

export function counted(value: number, one: string, many = one + "s"): string {
  return `${numbers.format(value)} ${value === 1 ? one : many}`;
}

// A rate in three digits: 0, 12.5, 3,400.
export function rate(value: number): string {
  return numbers.format(value >= 100 ? Math.round(value) : Number(value.toPrecision(2)));
}

const UNITS = ["B", "kB", "MB", "GB", "TB"];

export function bytes(value: number): string {
  let unit = 0;
  let left = value;
  while (left >= 1000 && unit < UNITS.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${left >= 100 ? Math.round(left) : Number(left.toPrecision(2))} ${UNITS[unit]}`;
}

let ofDay = (ms: number): string => wallClock(ms);

// For a source that has a time of its own.
export function useClock(form: (ms: number) => string): void {
  ofDay = form;
}

export function clock(ms: number): string {
  return ofDay(ms);
}

function wallClock(ms: number): string {
  const at = new Date(ms);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

export function ago(ms: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - ms) / 1000));
  if (seconds < 120) return `${seconds} s ago`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
  return `${Math.round(seconds / 3600)} h ago`;
}
