import type { ConditionName } from '../../../../shared/contract/condition-names.ts';
import type { Overview } from '../../../contract/admin/overview.ts';
import { describeConcern } from '../../../operator/alerts/alert.ts';
import { listConcerns, type Concern } from '../../../operator/alerts/concerns.ts';
import type { Condition } from '../../../operator/conditions/conditions.ts';

type Described = Overview['conditions'][number];
type Kind = Described['about'][number]['kind'];

const kinds: Readonly<Record<ConditionName, Kind>> = {
  redis_unreachable: 'redis',
  redis_memory: 'redis',
  redis_evicts: 'redis',
  no_workers: 'queue',
  worker_faults: 'queue',
  ledger_behind: 'ledger',
  ledger_dead_entries: 'ledger',
  mongodb_unreachable: 'mongodb',
  storage_unreachable: 'storage',
  upstream_key_refused: 'upstream',
};

/** Describes what is wrong, in the order of the conditions. Pure. */
export const describeConditions = (conditions: readonly Condition[]): Described[] =>
  conditions
    .flatMap((condition) => listConcerns(condition, new Map()))
    .flatMap((concern) =>
      concern.isOn === true && concern.sinceMs !== null ? describe(concern, concern.sinceMs) : [],
    );

function describe(concern: Concern, sinceMs: number): Described {
  const { title, advice } = describeConcern(concern);
  return {
    name: concern.name,
    since: new Date(sinceMs).toISOString(),
    title,
    text: advice,
    about: listCauses(concern),
  };
}

function listCauses({ name, subjects, fields }: Concern): Described['about'] {
  const kind = kinds[name];
  const { deadModels } = fields;
  const models = typeof deadModels === 'string' ? deadModels.split(', ') : [];
  return [
    ...(subjects.length === 0 ? [{ kind, id: null }] : subjects.map((id) => ({ kind, id }))),
    ...models.map((id) => ({ kind: 'model' as const, id })),
  ];
}
