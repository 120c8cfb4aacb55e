import { Int32 } from 'bson';
import type { Doc } from '../bson/document.ts';
import { getField, isObject } from '../bson/document.ts';
import { addNumbers, isNumber, type BsonNumber } from '../bson/numbers.ts';
import { unsupported } from '../errors.ts';

/** Returns what a document adds to a sum. */
type Addend = (document: Doc) => unknown;

/** Sums of fields over all documents, as `$group` with a constant `_id` computes them. */
export class Sums {
  readonly #id: unknown;
  readonly #addends: readonly (readonly [name: string, addend: Addend])[];

  /** @param group of the stage `$group`; each field is `{ $sum: … }` of a number, a field, or a field with a default */
  constructor(group: Doc) {
    const { _id: id, ...fields } = group;
    if (id !== null && !isNumber(id)) throw notSupported();
    this.#id = id;
    this.#addends = Object.entries(fields).map(([name, sum]) => {
      if (!isObject(sum) || Object.keys(sum).join() !== '$sum') throw notSupported();
      return [name, parseAddend(sum.$sum)] as const;
    });
  }

  /** Returns one document with the sums, or none if there are no documents. What is not a number adds nothing. */
  compute(documents: Iterable<Doc>): Doc[] {
    const sums = new Map<string, BsonNumber>(this.#addends.map(([name]) => [name, new Int32(0)]));
    let isEmpty = true;
    for (const document of documents) {
      isEmpty = false;
      for (const [name, addend] of this.#addends) {
        const added = addend(document);
        if (isNumber(added)) sums.set(name, addNumbers(sums.get(name)!, added));
      }
    }
    return isEmpty ? [] : [{ _id: this.#id, ...Object.fromEntries(sums) }];
  }
}

function parseAddend(expression: unknown): Addend {
  if (isNumber(expression)) return () => expression;
  if (typeof expression === 'string' && /^\$\w+$/.test(expression)) {
    const name = expression.slice(1);
    return (document) => getField(document, name);
  }
  const operands =
    isObject(expression) && Object.keys(expression).join() === '$ifNull' ? expression.$ifNull : null;
  if (!Array.isArray(operands) || operands.length !== 2) throw notSupported();
  const [first, second] = (operands as unknown[]).map(parseAddend) as [Addend, Addend];
  return (document) => first(document) ?? second(document);
}

const notSupported = (): Error => unsupported('an aggregation other than sums', 'Location40324');
