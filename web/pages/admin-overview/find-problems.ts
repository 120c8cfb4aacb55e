import { groupBy } from '../../lib/group-by.ts';
import type { Overview, Part } from './use-overview.ts';

type Condition = Overview['conditions'][number];
type Upstream = NonNullable<Overview['upstreams']>[number];
type RefusingModel = NonNullable<Overview['refusing_models']>[number];
type ModelTraffic = NonNullable<Overview['traffic']>['hour']['most_failed'][number];

/** What is wrong, the worst first. */
export type Problem =
  | { readonly kind: 'condition'; readonly condition: Condition }
  | { readonly kind: 'unread'; readonly parts: readonly Part[] }
  | {
      readonly kind: 'refusing';
      readonly models: readonly string[];
      readonly causes: RefusingModel['causes'];
    }
  | { readonly kind: 'ledger'; readonly lagSeconds: number }
  | { readonly kind: 'dead'; readonly entries: number }
  | { readonly kind: 'failures'; readonly failed: number; readonly requests: number; readonly since: string }
  | { readonly kind: 'model'; readonly traffic: ModelTraffic; readonly since: string }
  | { readonly kind: 'breaker'; readonly upstream: Upstream }
  | { readonly kind: 'keys'; readonly upstream: Upstream }
  | { readonly kind: 'builds'; readonly builds: readonly string[] };

/** What is no fault but worth knowing: what operators did, and limits that are reached. */
export type Note =
  | {
      readonly kind: 'refusal';
      readonly upstream: Upstream;
      readonly refusal: NonNullable<Upstream['last_refusal']>;
    }
  | { readonly kind: 'drained'; readonly upstream: Upstream }
  | { readonly kind: 'full'; readonly upstream: Upstream; readonly waiting: number };

/** Fewer failures may be chance. */
const minFailures = 3;
/** As in the alerts for Prometheus. */
const maxFailedShare = 0.05;
const maxFailedShareOfModel = 0.25;

const isAbout = (condition: Condition, kind: string, id: string | null): boolean =>
  condition.about.some((about) => about.kind === kind && (id === null || about.id === id));

const failsOften = ({ failed, requests }: { failed: number; requests: number }, maxShare: number): boolean =>
  failed >= minFailures && failed > requests * maxShare;

/** Lists the builds that processes run, without repetition. */
export const listBuilds = ({ apis, workers }: NonNullable<Overview['processes']>): string[] => [
  ...new Set([...apis.builds, ...workers.builds].map(({ build }) => build)),
];

/** Finds what is wrong. Pure. */
export function findProblems(overview: Overview): Problem[] {
  const { conditions, unavailable, traffic, upstreams, processes, ledger } = overview;
  const hour = traffic?.hour;
  const builds = processes === null ? [] : listBuilds(processes);
  const isBehind = conditions.some(({ name }) => name === 'ledger_behind');
  const dead = ledger?.dead ?? 0;
  return [
    ...conditions
      // Their number, below, says more.
      .filter(({ name }) => dead === 0 || name !== 'ledger_dead_entries')
      .map((condition): Problem => ({ kind: 'condition', condition })),
    ...groupRefusing(findRefusing(overview)),
    ...(unavailable.length > 0 ? [{ kind: 'unread' as const, parts: unavailable }] : []),
    ...(ledger?.is_behind === true && !isBehind
      ? [{ kind: 'ledger' as const, lagSeconds: ledger.lag_seconds }]
      : []),
    ...(dead > 0 ? [{ kind: 'dead' as const, entries: dead }] : []),
    ...(hour !== undefined && failsOften(hour.all, maxFailedShare)
      ? [{ kind: 'failures' as const, ...pickFailures(hour.all), since: hour.since }]
      : []),
    ...(hour?.most_failed ?? [])
      .filter((one) => failsOften(one, maxFailedShareOfModel))
      .map((one): Problem => ({ kind: 'model', traffic: one, since: hour!.since })),
    ...(upstreams ?? [])
      .filter(({ open_breakers: open }) => open > 0)
      .map((upstream): Problem => ({ kind: 'breaker', upstream })),
    ...(upstreams ?? [])
      .filter(({ refused_keys: refused }) => (refused ?? 0) > 0)
      .filter(({ name }) => !conditions.some((condition) => isAbout(condition, 'upstream', name)))
      .map((upstream): Problem => ({ kind: 'keys', upstream })),
    ...(builds.length > 1 ? [{ kind: 'builds' as const, builds }] : []),
  ];
}

/** A condition that names a model says more. */
const findRefusing = ({ refusing_models: models, conditions }: Overview): RefusingModel[] =>
  (models ?? []).filter(({ model }) => !conditions.some((condition) => isAbout(condition, 'model', model)));

/** Several models may have the same causes, such as an upstream that was drained. */
const groupRefusing = (refusing: readonly RefusingModel[]): Problem[] =>
  [...groupBy(refusing, ({ causes }) => JSON.stringify(causes)).values()].map((group) => ({
    kind: 'refusing',
    models: group.map(({ model }) => model),
    causes: group[0]!.causes,
  }));

const pickFailures = ({ failed, requests }: { failed: number; requests: number }) => ({ failed, requests });

/** Finds what is worth knowing beside that. Pure. */
export function findNotes(overview: Overview): Note[] {
  const { upstreams, queues } = overview;
  const refusing = new Set(findRefusing(overview).map(({ model }) => model));
  const waiting = Object.values(queues ?? {}).reduce((sum, queue) => sum + queue.waiting_for_slot, 0);
  return (upstreams ?? []).flatMap((upstream): Note[] => {
    const { drained, drained_models: models, slots, slots_used: used } = upstream;
    const { last_refusal: refusal, refused_keys: refused } = upstream;
    // Of models that serve nobody, a problem says it.
    const isSaid = models.length > 0 && models.every((model) => refusing.has(model));
    return [
      ...(refusal !== null && (refused ?? 0) === 0 ? [{ kind: 'refusal' as const, upstream, refusal }] : []),
      ...((drained || models.length > 0) && !isSaid ? [{ kind: 'drained' as const, upstream }] : []),
      ...(used >= slots && waiting > 0 ? [{ kind: 'full' as const, upstream, waiting }] : []),
    ];
  });
}
