// One scale of offsets for all replicas of a partition: exact where they differ, shortened where they do not.

export interface Scale {
  x: (offset: number) => number;
  breaks: number[];
  from: number;
  to: number;
}

const BREAK_FACTOR = 12;

// `points` are offsets at which something begins or ends; between two of them nothing differs.
export function scaleOf(points: number[], width: number): Scale {
  const sorted = [...new Set(points)].sort((one, other) => one - other);
  const from = sorted[0] ?? 0;
  const last = sorted[sorted.length - 1] ?? 0;
  if (sorted.length < 2) return { x: () => 0, breaks: [], from, to: last };
  const lengths = sorted.slice(1).map((point, index) => point - (sorted[index] ?? 0));
  const weights = lengths.map((length) => 1.5 + Math.log2(1 + length));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const edges = [0];
  for (const weight of weights) edges.push((edges[edges.length - 1] ?? 0) + (weight / total) * width);
  const densities = lengths.map((length, index) => length / (weights[index] ?? 1));
  const least = Math.min(...densities);
  const breaks: number[] = [];
  densities.forEach((density, index) => {
    if (density > least * BREAK_FACTOR) breaks.push(((edges[index] ?? 0) + (edges[index + 1] ?? 0)) / 2);
  });
  const x = (offset: number): number => {
    if (offset <= from) return 0;
    if (offset >= last) return width;
    let index = 0;
    while (index + 1 < sorted.length && (sorted[index + 1] ?? 0) <= offset) index += 1;
    const start = sorted[index] ?? 0;
    const share = (offset - start) / (lengths[index] ?? 1);
    return (edges[index] ?? 0) + share * ((edges[index + 1] ?? 0) - (edges[index] ?? 0));
  };
  return { x, breaks, from, to: last };
}
