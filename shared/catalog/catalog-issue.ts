import type { Location } from './yaml-source.ts';

/** An error in the file's data. `message` follows the path in a sentence: `models[0].id` + `is required`. */
export interface CatalogIssue {
  readonly location: Location;
  readonly message: string;
  /** Which part of the field is wrong: its value or its name. */
  readonly part?: 'value' | 'key';
}

/** Formats a location as `models[0].pricing.in_cost_per_million`. */
export function formatLocation(location: Location): string {
  if (location.length === 0) return 'the file';
  return location
    .map((part, i) => (typeof part === 'number' ? `[${part}]` : i === 0 ? part : `.${part}`))
    .join('');
}

/** Likely wrong names that are not typos of the right names, each with the right name. */
const otherNames: Record<string, string> = {
  date_of_use: 'since',
  sizes: 'size',
  max_tokens: 'max_output_tokens',
};

/** Returns `; did you mean "x"?`, or an empty string if no known name is close. */
export function suggestName(name: string, known: readonly string[]): string {
  const meant = otherNames[name];
  if (meant !== undefined && known.includes(meant)) return `; did you mean "${meant}"?`;
  const simplify = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  const candidates = known
    .map((candidate) => ({ candidate, distance: countEdits(simplify(name), simplify(candidate)) }))
    .sort((a, b) => a.distance - b.distance);
  const nearest = candidates[0];
  if (nearest === undefined || nearest.distance > Math.ceil(name.length / 3)) return '';
  return `; did you mean "${nearest.candidate}"?`;
}

/** Levenshtein distance. */
function countEdits(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[to.length]!;
}
