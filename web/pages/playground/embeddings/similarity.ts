/** Returns the cosine of the angle between two vectors: 1 for the same direction, 0 for unrelated ones. */
function cosine(a: readonly number[], b: readonly number[]): number {
  let [dot, squareA, squareB] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    dot += a[i]! * (b[i] ?? 0);
    squareA += a[i]! ** 2;
    squareB += (b[i] ?? 0) ** 2;
  }
  return squareA === 0 || squareB === 0 ? 0 : dot / Math.sqrt(squareA * squareB);
}

/** Compares each vector with each. */
export const compareAll = (vectors: readonly (readonly number[])[]): number[][] =>
  vectors.map((vector) => vectors.map((other) => cosine(vector, other)));
