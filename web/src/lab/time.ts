// Virtual time in words.

export function virtual(ms: number): string {
  return `${(ms / 1000).toFixed(3)} s`;
}
