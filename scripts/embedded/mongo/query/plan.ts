import { getTypeOrder, typeOrder } from '../bson/bson-types.ts';
import type { KeyRange } from '../storage/collection.ts';
import { areEqual, compareValues, encodeKey } from '../bson/compare.ts';
import type { Doc } from '../bson/document.ts';
import { isOperatorObject } from '../bson/document.ts';
import { toNumber } from '../bson/numbers.ts';
import type { Index } from '../storage/indexes.ts';
import type { SortField } from './sort.ts';

/**
 * How to find the candidate documents of a query. Unless the ranges are exact, the filter is applied to each candidate.
 */
export type Plan = {
  index: Index;
  ranges: KeyRange[];
  isSorted: boolean;
  isReverse: boolean;
  /** Whether the ranges contain exactly the documents that the filter selects. */
  isExact: boolean;
};

type Bound = { value: unknown; inclusive: boolean };

/** What a filter requires of one path, in a form that an index can use. */
type Constraint = { equal?: unknown[]; low?: Bound; high?: Bound };

const maxRanges = 20_000;

/** Returns the best plan that an index offers, or `undefined` if all documents must be read. */
export function choosePlan(indexes: Index[], filter: Doc, sort: SortField[]): Plan | undefined {
  const constraints = collectConstraints(filter);
  let best: { plan: Plan; score: number } | undefined;
  for (const index of indexes) {
    if (!index.isReady || !containsAllMatches(index, filter)) continue;
    const candidate = planWith(index, filter, constraints, sort);
    if (candidate.score > (best?.score ?? 0)) best = candidate;
  }
  return best?.plan;
}

/** Returns the plan that uses the index, and its score. */
function planWith(
  index: Index,
  filter: Doc,
  constraints: Map<string, Constraint>,
  sort: SortField[],
): { plan: Plan; score: number } {
  let prefixes = [Buffer.alloc(0)];
  let depth = 0;
  for (const { path } of index.fields) {
    const equal = constraints.get(path)?.equal;
    if (equal === undefined || prefixes.length * equal.length > maxRanges) break;
    prefixes = prefixes.flatMap((prefix) =>
      encodeDistinct(index, depth, equal).map((key) => Buffer.concat([prefix, key])),
    );
    depth += 1;
  }
  let score = depth * 10;
  const next = index.fields[depth];
  const bounds = next && constraints.get(next.path);
  const range = bounds && rangeOf(index, depth, bounds);
  if (range !== undefined) score += bounds?.low && bounds.high ? 6 : 4;
  const { start, end } = range ?? { start: Buffer.alloc(0), end: Buffer.from([0xff]) };
  const ranges = prefixes.map((prefix) => ({
    start: Buffer.concat([index.prefix(), prefix, start]),
    end: Buffer.concat([index.prefix(), prefix, end]),
  }));
  const order = ranges.length === 1 ? compareOrder(index, constraints, sort) : 0;
  if (order !== 0) score += 5;
  if (depth === index.fields.length && index.isUnique) score += 50;
  const rangedPath = range === undefined ? undefined : next?.path;
  const isExact = isFilterCovered(index, filter, depth, rangedPath);
  return { plan: { index, ranges, isSorted: order !== 0, isReverse: order < 0, isExact }, score };
}

/** Returns whether the ranges cover every clause of the filter: equality on the first fields, bounds on the next. */
function isFilterCovered(index: Index, filter: Doc, depth: number, rangedPath: string | undefined): boolean {
  const equalPaths = new Set(index.fields.slice(0, depth).map(({ path }) => path));
  return Object.entries(filter).every(([path, condition]) => {
    const operators = isOperatorObject(condition) ? Object.keys(condition) : ['$eq'];
    if (equalPaths.has(path)) return operators.length === 1 && /^\$(eq|in)$/.test(operators[0]!);
    if (path !== rangedPath || !/^\$(gte?(,\$lte?)?|lte?(,\$gte?)?)$/.test(operators.join())) return false;
    const bounds = Object.values(condition as Doc);
    // Bounds of two types contradict each other.
    if (!bounds.every((bound) => getTypeOrder(bound) === getTypeOrder(bounds[0]))) return false;
    switch (getTypeOrder(bounds[0])) {
      case typeOrder.date:
      case typeOrder.string:
        return true;
      case typeOrder.number:
        // In an index, NaN sorts below all numbers, but it is not less than any.
        return operators.some((name) => name.startsWith('$g')) && !bounds.some(isNotANumber);
      default:
        return false;
    }
  });
}

function encodeDistinct(index: Index, depth: number, values: unknown[]): Buffer[] {
  const keys = new Map<string, Buffer>();
  for (const value of values) {
    const key = encodeField(index, depth, value);
    keys.set(key.toString('latin1'), key);
  }
  return [...keys.values()].sort((a, b) => Buffer.compare(a, b));
}

function encodeField(index: Index, depth: number, value: unknown): Buffer {
  return applyDirection(index, depth, encodeKey(value));
}

function applyDirection(index: Index, depth: number, key: Buffer): Buffer {
  if (index.fields[depth]!.direction > 0) return key;
  return key.map((byte) => ~byte & 0xff) as Buffer;
}

/**
 * Returns the range of bytes for a field's values. A comparison selects only values of the same type as its operand, so
 * a side without a bound ends where that type ends in the index.
 */
function rangeOf(index: Index, depth: number, { low, high }: Constraint): KeyRange | undefined {
  const bound = low ?? high;
  if (bound === undefined) return undefined;
  const type = getTypeOrder(bound.value);
  const hasBothBounds = low !== undefined && high !== undefined && getTypeOrder(high.value) === type;
  const upper = low === undefined || hasBothBounds ? high : undefined;
  const isAscending = index.fields[depth]!.direction > 0;
  const first = isAscending ? low : upper;
  const last = isAscending ? upper : low;
  const typeByte = isAscending ? type : ~type & 0xff;
  return {
    start: first ? edgeOf(encodeField(index, depth, first.value), !first.inclusive) : Buffer.from([typeByte]),
    end: last ? edgeOf(encodeField(index, depth, last.value), last.inclusive) : Buffer.from([typeByte + 1]),
  };
}

/** Returns a position just before or just after all entries of a key. No entry has 0xff after its key. */
function edgeOf(key: Buffer, isAfter: boolean): Buffer {
  return isAfter ? Buffer.concat([key, Buffer.from([0xff])]) : key;
}

/** Returns 1 or -1 if the index has the sort order forwards or backwards, otherwise 0. */
function compareOrder(index: Index, constraints: Map<string, Constraint>, sort: SortField[]): -1 | 0 | 1 {
  const sortFields = sort.filter(({ path }) => constraints.get(path)?.equal?.length !== 1);
  if (sort.length === 0) return 0;
  // Fields fixed by equality do not affect the order, in the sort or in the index.
  const indexFields = index.fields.filter(({ path }) => constraints.get(path)?.equal?.length !== 1);
  let order: -1 | 0 | 1 = sortFields.length === 0 ? 1 : 0;
  for (const [i, { path, direction }] of sortFields.entries()) {
    if (indexFields[i]?.path !== path) return 0;
    const fieldOrder = indexFields[i].direction === direction ? 1 : -1;
    if (order !== 0 && order !== fieldOrder) return 0;
    order = fieldOrder;
  }
  return order;
}

/** Returns whether the index contains all matching documents. A partial index may lack some of them. */
function containsAllMatches({ spec }: Index, filter: Doc): boolean {
  return Object.entries(spec.partialFilterExpression ?? {}).every(
    ([path, value]) => Object.hasOwn(filter, path) && areEqual(filter[path], value),
  );
}

const isNotANumber = (bound: unknown): boolean => Number.isNaN(toNumber(bound));

function collectConstraints(filter: Doc, found = new Map<string, Constraint>()): Map<string, Constraint> {
  for (const [name, condition] of Object.entries(filter)) {
    if (name === '$and') for (const branch of condition as Doc[]) collectConstraints(branch, found);
    if (name.startsWith('$')) continue;
    const operators = isOperatorObject(condition) ? condition : { $eq: condition };
    const constraint = found.get(name) ?? {};
    for (const [operator, operand] of Object.entries(operators)) constrain(constraint, operator, operand);
    if (Object.keys(constraint).length > 0) found.set(name, constraint);
  }
  return found;
}

function constrain(constraint: Constraint, operator: string, operand: unknown): void {
  const equal = operator === '$eq' ? [operand] : operator === '$in' ? (operand as unknown[]) : undefined;
  if (equal?.every(isIndexable) === true) {
    if (constraint.equal === undefined || equal.length < constraint.equal.length) constraint.equal = equal;
  }
  if (!/^\$[gl]te?$/.test(operator) || !isIndexable(operand) || getTypeOrder(operand) === typeOrder.null)
    return;
  const bound = { value: operand, inclusive: operator.endsWith('e') };
  const side = operator.startsWith('$g') ? 'low' : 'high';
  const present = constraint[side];
  const order = present === undefined ? 0 : compareValues(bound.value, present.value);
  if (present === undefined || (side === 'low' ? order > 0 : order < 0)) constraint[side] = bound;
}

/** Arrays are not indexed, so an index cannot be used to find them. */
const isIndexable = (value: unknown) => !Array.isArray(value);
