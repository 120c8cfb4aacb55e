import type { Doc } from '../bson/document.ts';
import { isObject } from '../bson/document.ts';
import { MongoError, unsupported } from '../errors.ts';
import type { PreparedQuery, Query } from '../query/find.ts';
import { prepareQuery } from '../query/find.ts';
import type { Command, CommandContext } from './command.ts';
import { checkFields, findCollection } from './command.ts';
import { parseFind, readCommands } from './reads.ts';

/** Reports which index a read uses and, after running it, how many keys and documents it examined. */
export const explain: Command = {
  fields: ['verbosity'],
  run(context) {
    const explained = context.body.explain;
    const [name] = isObject(explained) ? Object.keys(explained) : [];
    if (name === undefined) throw new MongoError('TypeMismatch', "'explain' must be a command");
    const body = explained as Doc;
    const query = parseExplained(context, name, body);
    const namespace = `${context.db}.${String(body[name])}`;
    const collection = findCollection({ ...context, name, body });
    if (collection === undefined) {
      const queryPlanner = { namespace, winningPlan: { stage: 'EOF' }, rejectedPlans: [] };
      return { queryPlanner, executionStats: describeStats(undefined), ok: 1 };
    }
    const prepared = prepareQuery(collection, query);
    const winningPlan = describePlan(prepared, query);
    const queryPlanner = { namespace, winningPlan, rejectedPlans: [] };
    if (context.body.verbosity === 'queryPlanner') return { queryPlanner, ok: 1 };
    for (const _ of prepared.run());
    return { queryPlanner, executionStats: describeStats(prepared), ok: 1 };
  },
};

function parseExplained(context: CommandContext, name: string, body: Doc): Query {
  if (name !== 'find') throw unsupported(`explain of ${name}`);
  checkFields(name, readCommands.find!, body, new Map());
  return parseFind(context, body);
}

function describePlan({ plan, mustSort }: PreparedQuery, { filter, sort, skip, limit }: Query): Doc {
  const hasFilter = Object.keys(filter ?? {}).length > 0;
  let stage: Doc =
    plan === undefined
      ? { stage: 'COLLSCAN', ...(hasFilter && { filter }), direction: 'forward' }
      : {
          stage: 'FETCH',
          ...(hasFilter && { filter }),
          inputStage: {
            stage: 'IXSCAN',
            indexName: plan.index.spec.name,
            keyPattern: plan.index.spec.key,
            isUnique: plan.index.isUnique,
            isPartial: plan.index.spec.partialFilterExpression !== undefined,
            direction: plan.isReverse ? 'backward' : 'forward',
          },
        };
  if (mustSort) stage = { stage: 'SORT', sortPattern: sort, inputStage: stage };
  if (skip) stage = { stage: 'SKIP', skipAmount: skip, inputStage: stage };
  if (limit) stage = { stage: 'LIMIT', limitAmount: limit, inputStage: stage };
  return stage;
}

function describeStats(prepared: PreparedQuery | undefined): Doc {
  const { returned, keysExamined, docsExamined } = prepared?.stats ?? {
    returned: 0,
    keysExamined: 0,
    docsExamined: 0,
  };
  return {
    executionSuccess: true,
    nReturned: returned,
    totalKeysExamined: keysExamined,
    totalDocsExamined: docsExamined,
  };
}
