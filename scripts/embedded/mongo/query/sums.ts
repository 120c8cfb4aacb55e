import { Int32 } from 'bson';
import { encodeDocument, type Doc } from '../bson/document.ts';
import { getField, isObject } from '../bson/document.ts';
import { addNumbers, isNumber, type BsonNumber } from '../bson/numbers.ts';
import { unsupported } from '../errors.ts';

/** Returns what a document adds to a sum. */
type Addend = (document: Doc) => unknown;

/** Returns the `_id` of a document's group. */
type GroupId = (document: Doc) => unknown;

interface Group {
  readonly id: unknown;
  readonly sums: Map<string, BsonNumber>;
}

/** Sums of fields over documents, as `$group` computes them: of all, with a constant `_id`, or by the values of some fields. */
export class Sums {
  readonly #idOf: GroupId;
  readonly #addends: readonly (readonly [name: string, addend: Addend])[];

  /** @param group of the stage `$group`, whose `_id` may be an object of fields; each other field is `{ $sum: … }` of a number, a field, or a field with a default */
  constructor(group: Doc) {
    const { _id: id, ...fields } = group;
    this.#idOf = parseId(id);
    this.#addends = Object.entries(fields).map(([name, sum]) => {
      if (!isObject(sum) || Object.keys(sum).join() !== '$sum') throw notSupported();
      return [name, parseAddend(sum.$sum)] as const;
    });
  }

  /** Returns one document with the sums of each group. What is not a number adds nothing. */
  compute(documents: Iterable<Doc>): Doc[] {
    const groups = new Map<string, Group>();
    for (const document of documents) {
      const { sums } = this.#groupOf(document, groups);
      for (const [name, addend] of this.#addends) {
        const added = addend(document);
        if (isNumber(added)) sums.set(name, addNumbers(sums.get(name)!, added));
      }
    }
    return Array.from(groups.values(), ({ id, sums }) => ({ _id: id, ...Object.fromEntries(sums) }));
  }

  #groupOf(document: Doc, groups: Map<string, Group>): Group {
    const id = this.#idOf(document);
    const key = encodeDocument({ id }).toString('latin1');
    const known = groups.get(key);
    if (known !== undefined) return known;
    const group = {
      id,
      sums: new Map<string, BsonNumber>(this.#addends.map(([name]) => [name, new Int32(0)])),
    };
    groups.set(key, group);
    return group;
  }
}

function parseId(id: unknown): GroupId {
  if (id === null || isNumber(id)) return () => id;
  if (!isObject(id)) throw notSupported();
  const fields = Object.entries(id).map(([name, path]): readonly [string, string] => {
    if (typeof path !== 'string' || !/^\$\w+$/.test(path)) throw notSupported();
    return [name, path.slice(1)];
  });
  return (document) => {
    const values: Doc = {};
    for (const [name, field] of fields) {
      const value = getField(document, field);
      // Numbers of different types may be equal, which their encodings are not.
      if (value !== undefined && typeof value !== 'string') throw notSupported();
      if (value !== undefined) values[name] = value;
    }
    return values;
  };
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
