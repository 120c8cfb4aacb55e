import { Int32 } from 'bson';
import type { Accumulator } from './accumulators.ts';
import { accumulators } from './accumulators.ts';
import { encodeKey } from '../bson/compare.ts';
import type { Doc } from '../bson/document.ts';
import { getId, isObject, isOperatorObject, setField } from '../bson/document.ts';
import { MongoError, refuse } from '../errors.ts';
import type { Expression } from './expressions.ts';
import { compileExpression } from './expressions.ts';
import type { Query } from '../query/find.ts';
import { compileFilter } from '../query/match.ts';
import { isNumber, narrowestInteger, toNumber } from '../bson/numbers.ts';
import { getAt } from '../bson/paths.ts';
import { compileInclusion } from '../query/projection.ts';
import { parseSort, sortDocuments } from '../query/sort.ts';

export type Stage = (documents: Iterable<Doc>) => Iterable<Doc>;

/** What a pipeline reads from the collection by a query, and what is left to do with the documents. */
export type Pipeline = {
  query: Query;
  stages: Stage[];
  /** Set where all that is left is to count, as in a driver's `countDocuments`: the group's id and its one field. */
  count: { id: unknown; field: string } | undefined;
};

export function compilePipeline(pipeline: unknown): Pipeline {
  if (!Array.isArray(pipeline)) throw new MongoError('TypeMismatch', "'pipeline' must be an array");
  const named = pipeline.map((stage: unknown) => {
    const [name, ...others] = isObject(stage) ? Object.keys(stage) : [];
    if (name === undefined || others.length > 0) {
      throw new MongoError(
        'Location40323',
        'A pipeline stage specification object must contain exactly one field.',
      );
    }
    return { name, spec: (stage as Doc)[name] };
  });
  // Compiled before anything runs, so that an unknown stage is an error on an empty collection too.
  const stages = named.map(({ name, spec }) => {
    const compile = Object.hasOwn(stageCompilers, name) ? stageCompilers[name] : undefined;
    if (compile !== undefined) return compile(spec);
    throw refuse(
      `the aggregation stage '${name}'`,
      name === '$changeStream' ? 'Location40573' : 'Location40324',
    );
  });
  const query: Query = {};
  let taken = 0;
  const take = (name: string) => (named[taken]?.name === name ? named[taken++]!.spec : undefined);
  query.filter = take('$match') as Doc | undefined;
  query.sort = take('$sort') as Doc | undefined;
  query.skip = toNumber(take('$skip') ?? 0);
  query.limit = toNumber(take('$limit') ?? 0);
  const rest = named.slice(taken);
  const count =
    rest.length === 1 && rest[0]!.name === '$group' ? parseCount(rest[0]!.spec as Doc) : undefined;
  return { query, stages: stages.slice(taken), count };
}

function parseCount(group: Doc): Pipeline['count'] {
  const { _id: id, ...fields } = group;
  const [[field, sum] = [], ...others] = Object.entries(fields);
  const isOne = isObject(sum) && sum.$sum instanceof Int32 && sum.$sum.value === 1;
  const isConstant = id === null || isNumber(id);
  return isConstant && isOne && field !== undefined && others.length === 0 ? { id, field } : undefined;
}

const stageCompilers: Record<string, (spec: unknown) => Stage> = {
  $match: (spec) => {
    const matches = compileFilter(requireObject('$match', spec));
    return function* match(documents) {
      for (const document of documents) if (matches(document)) yield document;
    };
  },
  $sort: (spec) => {
    const fields = parseSort(requireObject('$sort', spec));
    if (fields.length === 0)
      throw new MongoError('Location15976', '$sort stage must have at least one sort key');
    return (documents) => sortDocuments(documents, fields, (document) => document);
  },
  $skip: (spec) => {
    const count = requireCount('$skip', spec, 0);
    return function* skip(documents) {
      let seen = 0;
      for (const document of documents) if ((seen += 1) > count) yield document;
    };
  },
  $limit: (spec) => {
    const count = requireCount('$limit', spec, 1);
    return function* limit(documents) {
      let seen = 0;
      for (const document of documents) {
        yield document;
        if ((seen += 1) === count) return;
      }
    };
  },
  $project: (spec) => compileProject(requireObject('$project', spec)),
  $addFields: (spec) => compileAddFields('$addFields', requireObject('$addFields', spec)),
  $unset: (spec) => {
    const names = Array.isArray(spec) ? spec : [spec];
    if (names.length === 0 || !names.every((name) => typeof name === 'string')) {
      throw new MongoError('Location31002', '$unset specification must be a string or an array of strings');
    }
    return mapEach(compileInclusion(new Map(names.map((name: string) => [name, false]))));
  },
  $count: (spec) => {
    if (typeof spec !== 'string' || spec === '' || /[$.\0]/.test(spec)) {
      throw new MongoError('Location40156', 'the count field must be a non-empty string without $ and .');
    }
    return function* count(documents) {
      let total = 0n;
      for (const _ of documents) total += 1n;
      if (total > 0n) yield { [spec]: narrowestInteger(total) };
    };
  },
  $unwind: compileUnwind,
  $group: (spec) => compileGroup(requireObject('$group', spec)),
};

function compileProject(spec: Doc): Stage {
  const flags = new Map<string, boolean>();
  const computed: Doc = {};
  for (const [name, value] of Object.entries(spec)) {
    if (typeof value === 'boolean') flags.set(name, value);
    else if (isNumber(value)) flags.set(name, toNumber(value) !== 0);
    else computed[name] = value;
  }
  const addComputed = compileAddFields('$project', computed);
  if (Object.keys(computed).length === 0) {
    if (flags.size === 0)
      throw new MongoError('Location51272', 'Invalid $project: it must have at least one field');
    return mapEach(compileInclusion(flags));
  }
  if ([...flags].some(([name, isOn]) => name !== '_id' && !isOn)) {
    throw new MongoError('Location31252', 'Cannot use an expression in an exclusion projection');
  }
  // A computed field makes it an inclusion, where nothing else is named too. No document has a field of this name.
  const include = compileInclusion(
    flags.size > (flags.has('_id') ? 1 : 0) ? flags : new Map([...flags, ['\0', true]]),
  );
  return function* project(documents) {
    for (const document of documents) {
      const [added] = addComputed([document]);
      const result = include(document);
      for (const name of Object.keys(computed)) {
        if (Object.hasOwn(added!, name)) setField(result, name, added![name]);
        else delete result[name];
      }
      yield result;
    }
  };
}

function compileAddFields(stage: string, spec: Doc): Stage {
  const fields = Object.entries(spec).map(([name, value]) => {
    if (name.includes('.') || (isObject(value) && !isOperatorObject(value))) {
      throw refuse(`a nested field (${name}) in ${stage}`);
    }
    return { name, expression: compileExpression(value) };
  });
  return mapEach((document) => {
    const result = { ...document };
    for (const { name, expression } of fields) {
      const value = expression(document);
      if (value === undefined) delete result[name];
      else setField(result, name, value);
    }
    return result;
  });
}

function compileUnwind(spec: unknown): Stage {
  const { path, preserveNullAndEmptyArrays, ...others } = isObject(spec) ? spec : { path: spec };
  if (Object.keys(others).length > 0) throw refuse(`${Object.keys(others).join()} in $unwind`);
  if (typeof path !== 'string' || !path.startsWith('$')) {
    throw new MongoError('Location28818', "path option to $unwind stage should be prefixed with a '$'");
  }
  const name = path.slice(1);
  if (name.includes('.')) throw refuse('$unwind of a nested path');
  return function* unwind(documents) {
    for (const document of documents) {
      const value = getAt(document, name);
      const isEmpty = value === undefined || value === null || (Array.isArray(value) && value.length === 0);
      if (isEmpty && preserveNullAndEmptyArrays !== true) continue;
      if (!Array.isArray(value)) yield document;
      else if (isEmpty) yield compileInclusion(new Map([[name, false]]))(document);
      else for (const item of value) yield { ...document, [name]: item as unknown };
    }
  };
}

function compileGroup(spec: Doc): Stage {
  if (!Object.hasOwn(spec, '_id')) {
    throw new MongoError('Location15955', 'a group specification must include an _id');
  }
  const groupBy = compileExpression(getId(spec));
  const fields = Object.entries(spec)
    .filter(([name]) => name !== '_id')
    .map(([name, value]) => compileGroupField(name, value));
  return function* group(documents) {
    const groups = new Map<string, { id: unknown; values: Accumulator[] }>();
    for (const document of documents) {
      const id = groupBy(document) ?? null;
      const key = encodeKey(id).toString('latin1');
      let found = groups.get(key);
      if (found === undefined) {
        found = { id, values: fields.map(({ create }) => create()) };
        groups.set(key, found);
      }
      for (const [i, { expression }] of fields.entries()) found.values[i]!.add(expression(document));
    }
    for (const { id, values } of groups.values()) {
      const result: Doc = { _id: id };
      for (const [i, { name }] of fields.entries()) setField(result, name, values[i]!.result());
      yield result;
    }
  };
}

function compileGroupField(
  name: string,
  spec: unknown,
): { name: string; create: () => Accumulator; expression: Expression } {
  const [operator, ...others] = isObject(spec) ? Object.keys(spec) : [];
  if (operator === undefined || others.length > 0) {
    throw new MongoError('Location40234', `The field '${name}' must be an accumulator object`);
  }
  const create = Object.hasOwn(accumulators, operator) ? accumulators[operator] : undefined;
  if (create === undefined) throw refuse(`unknown group operator '${operator}', which`, 'Location15952');
  if (name.includes('.'))
    throw new MongoError('Location40235', `The field name '${name}' cannot contain '.'`);
  return { name, create, expression: compileExpression((spec as Doc)[operator]) };
}

function mapEach(change: (document: Doc) => Doc): Stage {
  return function* mapped(documents) {
    for (const document of documents) yield change(document);
  };
}

function requireObject(stage: string, spec: unknown): Doc {
  if (isObject(spec)) return spec;
  throw new MongoError('Location15959', `the ${stage} specification must be an object`);
}

function requireCount(stage: string, spec: unknown, least: number): number {
  const count = toNumber(spec);
  if (Number.isInteger(count) && count >= least) return count;
  throw new MongoError('Location15957', `the ${stage} specification must be a whole number from ${least}`);
}
