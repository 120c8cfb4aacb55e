import { groupBy } from '../../lib/group-by.ts';
import { findFailures, type Failures, type ModelHour, type Pricing } from '../../lib/models.ts';
import type { AdminModel, AdminRoute } from './read-catalog.ts';

export type Breaker = AdminRoute['breaker'];

/** One of the names that a model has at an upstream. */
export interface RouteTarget {
  readonly name: string;
  readonly weight: number;
  /** What the vendor charges; null if the catalog does not say. */
  readonly cost: Pricing | null;
}

/** The routes of a model at an upstream: what is drained and reset together. */
export interface RouteView {
  readonly model: string;
  readonly upstream: string;
  readonly kind: string;
  /** Of its address; null if it is built in. */
  readonly host: string | null;
  /** Whether its upstream has a key, or needs none. */
  readonly isUsable: boolean;
  /** The model's names at the upstream. */
  readonly upstreamModels: readonly string[];
  readonly targets: readonly RouteTarget[];
  readonly isDrained: boolean;
  /** Whether the whole upstream is drained. */
  readonly isWholeDrained: boolean;
  /** That of the key that is worst off. */
  readonly breaker: Breaker;
  /** How long the longest pause of a breaker still is. */
  readonly pauseSeconds: number;
  /** Why it is not called, or not for all accounts; each reason once. */
  readonly reasons: readonly string[];
  readonly succeeded: number;
  readonly failed: number;
  readonly rateLimited: number;
  /** One row for each key. */
  readonly keys: readonly AdminRoute[];
}

const breakers: readonly Breaker[] = ['closed', 'half-open', 'open'];

export const worstBreaker = (rows: readonly { readonly breaker: Breaker }[]): Breaker =>
  breakers[Math.max(0, ...rows.map(({ breaker }) => breakers.indexOf(breaker)))]!;

/** Puts the rows of keys together, in their order. */
function groupRoutes(rows: readonly AdminRoute[]): RouteView[] {
  const groups = groupBy(rows, ({ model, upstream }) => JSON.stringify([model, upstream]));
  return [...groups.values()].map(viewOf);
}

function viewOf(keys: readonly AdminRoute[]): RouteView {
  const { model, upstream, kind, host, usable, upstream_drained: isWholeDrained } = keys[0]!;
  // Calls are counted by route, not by key.
  const routes = [...groupBy(keys, (row) => row.upstream_model).values()].map(([row]) => row!);
  const sum = (read: (row: AdminRoute) => number): number =>
    routes.reduce((total, row) => total + read(row), 0);
  return {
    model,
    upstream,
    kind,
    host,
    isUsable: usable,
    upstreamModels: routes.map(({ upstream_model: name }) => name),
    // The description of the API says that it is like the prices of `GET /v1/models`.
    targets: routes.map(({ upstream_model: name, weight, cost }) => ({
      name,
      weight,
      cost: cost as unknown as Pricing | null,
    })),
    isDrained: keys.every(({ drained }) => drained),
    isWholeDrained,
    breaker: worstBreaker(keys),
    pauseSeconds: Math.max(...keys.map(({ pause_seconds: seconds }) => seconds)),
    reasons: [...new Set(keys.flatMap(({ not_called: reason }) => reason ?? []))],
    succeeded: sum(({ succeeded }) => succeeded),
    failed: sum(({ failed }) => failed),
    rateLimited: sum(({ rate_limited: count }) => count),
    keys,
  };
}

export const modelStates = ['active', 'failing', 'disabled', 'drained', 'unserved'] as const;
/**
 * `failing`: requests are accepted, and none of its routes can be called, or most of them fail. `unserved`: the gateway has no route to it.
 */
export type ModelState = (typeof modelStates)[number];

/** @param failures if most of its requests fail */
function stateOf(model: AdminModel, failures: Failures | null): ModelState {
  if (model.disabled) return 'disabled';
  if (model.active) return model.not_served === null && failures === null ? 'active' : 'failing';
  return model.routes.length === 0 ? 'unserved' : 'drained';
}

/** A model with all that the page shows of it. */
export interface ModelView {
  readonly model: AdminModel;
  readonly state: ModelState;
  readonly routes: readonly RouteView[];
  /** Of the last hour, if most of its requests fail; null otherwise, and while that is unknown. */
  readonly failures: Failures | null;
}

/** @param histories the hours of each model, by id; undefined while they are unknown */
export function viewModels(
  models: readonly AdminModel[],
  rows: readonly AdminRoute[],
  histories: Readonly<Record<string, readonly ModelHour[]>> | undefined,
): ModelView[] {
  const byModel = groupBy(groupRoutes(rows), ({ model }) => model);
  return models.map((model) => {
    const failures = findFailures(histories?.[model.id] ?? []);
    const routes = byModel.get(model.id) ?? [];
    return { model, routes, failures, state: stateOf(model, failures) };
  });
}

export interface ModelFilter {
  readonly text: string;
  readonly type: AdminModel['type'] | null;
  /** `troubled`: something about it needs a look, be it only one of its routes. */
  readonly state: ModelState | 'troubled' | null;
  readonly upstream: string | null;
}

const isTroubled = ({ state, routes }: ModelView): boolean =>
  state !== 'active' ||
  routes.some(({ breaker, isDrained, reasons }) => breaker !== 'closed' || isDrained || reasons.length > 0);

export function filterModels(models: readonly ModelView[], filter: ModelFilter): ModelView[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  return models.filter((view) => {
    const { model, state, routes } = view;
    const text = [model.id, ...model.aliases, ...model.routes].join(' ').toLowerCase();
    return (
      words.every((word) => text.includes(word)) &&
      (filter.type === null || model.type === filter.type) &&
      (filter.state === null || (filter.state === 'troubled' ? isTroubled(view) : state === filter.state)) &&
      (filter.upstream === null || routes.some(({ upstream }) => upstream === filter.upstream))
    );
  });
}
