import type { ConditionName } from '../../../shared/contract/condition-names.ts';
import type { Condition, Fields } from '../conditions/conditions.ts';
import type { SentAlerts } from './sent-alerts.ts';

/** What an alert is about: a condition, or one of its problems. */
export interface Concern {
  /** The condition's name; for one problem, followed by a blank and the problem's key. */
  readonly id: string;
  readonly name: ConditionName;
  /** Null if unknown. */
  readonly isOn: boolean | null;
  /** When it began (ms); null unless it is on. */
  readonly sinceMs: number | null;
  /** Names of queues or upstreams; empty if it concerns the whole. */
  readonly subjects: readonly string[];
  /** The key of the problem; empty for a condition as a whole. */
  readonly key: string;
  /** Facts about the problem; empty for a condition as a whole, and once the problem has ended. */
  readonly fields: Fields;
}

/**
 * Conditions with a separate alert for each problem: callers may not notice one refused key, while the next one may have
 * been the last for a model.
 */
const byProblem: ReadonlySet<ConditionName> = new Set(['upstream_key_refused']);

/** Lists what the alerts of a condition are about: what is wrong now, and what operators still believe is wrong. */
export function listConcerns(condition: Condition, sent: SentAlerts): Concern[] {
  const { name, isOn, sinceMs, subjects, problems } = condition;
  if (!byProblem.has(name)) return [{ id: name, name, isOn, sinceMs, subjects, key: '', fields: {} }];
  const prefix = `${name} `;
  const told = [...sent].flatMap(([id, record]) =>
    record.isOn && id.startsWith(prefix) ? [id.slice(prefix.length)] : [],
  );
  return [...new Set([...problems.keys(), ...told])].map((key) => {
    const problem = problems.get(key);
    return {
      id: `${prefix}${key}`,
      name,
      isOn: isOn === null ? null : problem !== undefined,
      sinceMs: problem?.sinceMs ?? null,
      subjects: problem === undefined ? [] : [problem.subject],
      key,
      fields: problem?.fields ?? {},
    };
  });
}
