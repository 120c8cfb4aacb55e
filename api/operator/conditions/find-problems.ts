import type { ConditionName } from '../../../shared/contract/condition-names.ts';
import { isLedgerBehind } from '../../../shared/operator/ledger-lag.ts';
import type { QueueName } from '../../../shared/work/queue/job-kinds.ts';
import type { Fields } from './conditions.ts';
import type { MemoryReading, SystemReading } from './system-reading.ts';

/** Conditions that follow from a reading. `no_workers` is measured by itself, with the callers it concerns. */
export type ReadCondition = Exclude<ConditionName, 'no_workers'>;

/** A problem that a reading shows. */
export interface Problem {
  /** Tells the problems of a condition apart; empty if there is only one. */
  readonly key: string;
  /** What it concerns; empty for the whole. */
  readonly subject: string;
  /** Which problem it is, for the log. */
  readonly labels: Fields;
  /** Facts about it, for the log. */
  readonly fields: Fields;
}

/** Redis uses memory beside its data, so it refuses commands before all of it is in use. */
const maxUsedShare = 0.9;

export const isMemoryFull = ({ usedShare, isRefusing }: MemoryReading): boolean =>
  isRefusing || (usedShare ?? 0) > maxUsedShare;

/**
 * Finds the problems that a reading shows, by condition. Pure.
 * @param isInUse whether requests for the queue can be admitted
 * @returns null for a condition on which the reading says nothing
 */
export function findProblems(
  reading: SystemReading,
  isInUse: (queue: QueueName) => boolean,
): Readonly<Record<ReadCondition, readonly Problem[] | null>> {
  const { memory, queues, ledger, refusedKeys } = reading;
  return {
    redis_unreachable: whenDown(reading.isRedisUp),
    mongodb_unreachable: whenDown(reading.isMongoUp),
    storage_unreachable: whenDown(reading.isStorageUp),
    redis_memory:
      memory &&
      problemIf(isMemoryFull(memory), {
        usedPercent: Math.round((memory.usedShare ?? 0) * 100),
        ...memory.used,
        refusesWrites: String(memory.isRefusing),
      }),
    redis_evicts:
      memory && problemIf(memory.evictionPolicy !== null, { policy: memory.evictionPolicy ?? 'noeviction' }),
    worker_faults:
      queues &&
      [...queues].flatMap(([queue, { faults }]) =>
        faults > 0 && isInUse(queue)
          ? [{ key: queue, subject: queue, labels: { queue }, fields: { faults } }]
          : [],
      ),
    // Workers write it. Without any, that is what is wrong.
    ledger_behind:
      ledger &&
      problemIf(isLedgerBehind(ledger) && hasWorkers(queues), {
        entries: ledger.entries,
        oldestSeconds: Math.round(ledger.oldestMs / 1_000),
      }),
    ledger_dead_entries: ledger && problemIf(ledger.deadEntries > 0, { entries: ledger.deadEntries }),
    upstream_key_refused:
      refusedKeys &&
      refusedKeys.map(({ upstream, fingerprint, reason, usableKeys, keys, deadModels }) => ({
        key: `${upstream} ${fingerprint}`,
        subject: upstream,
        labels: { upstream, key: fingerprint },
        fields: {
          reason,
          usableKeys,
          keys,
          ...(deadModels.length > 0 && { deadModels: deadModels.join(', ') }),
        },
      })),
  };
}

const hasWorkers = (queues: SystemReading['queues']): boolean =>
  queues === null || [...queues.values()].some(({ isServed }) => isServed);

const whenDown = (isUp: boolean): readonly Problem[] => problemIf(!isUp, {});

const problemIf = (isOn: boolean, fields: Fields): readonly Problem[] =>
  isOn ? [{ key: '', subject: '', labels: {}, fields }] : [];
