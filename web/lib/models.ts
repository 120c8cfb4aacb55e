import { useQuery } from '@tanstack/preact-query';
import type { components } from '../generated/api.d.ts';
import { api, call } from './api.ts';

type Schemas = components['schemas'];
export type Model = Schemas['Model'];
export type ModelType = Model['type'];
/** In the order in which they are listed. */
export const modelTypes = ['chat', 'vision', 'image', 'embedding'] as const satisfies readonly ModelType[];
export type Pricing = Schemas['Pricing'];
export type ModelStatus = Schemas['ModelStatus'];
export type ModelHour = Schemas['ModelHour'];

export const takesPictures = ({ input_modalities: inputs }: Model): boolean =>
  inputs?.includes('image') === true;

/** How often pages read the public stats again while they are visible. */
export const statsRefreshMs = 60_000;

const publicStats = { refetchInterval: statsRefreshMs, staleTime: 30_000 };

/** The models of the service, in the operator's order. */
export const useModels = () =>
  useQuery({
    queryKey: ['models'],
    queryFn: async ({ signal }) => (await call(api.GET('/v1/models', { signal }))).data ?? [],
    staleTime: statsRefreshMs,
  });

/** @param id an alternative id, too */
export const useModel = (id: string) =>
  useQuery({
    queryKey: ['models', id],
    queryFn: ({ signal }) =>
      call(api.GET('/v1/models/{model_id}', { params: { path: { model_id: id } }, signal })),
    staleTime: statsRefreshMs,
  });

/** How each model performed in the last half hour, by id. */
export const useModelStatuses = () =>
  useQuery({
    queryKey: ['models-status'],
    queryFn: ({ signal }) => call(api.GET('/v1/models/status', { signal })),
    ...publicStats,
  });

/** How many models fail now, most of the time or always. Null until it is known. */
export function useFailingCount(): number | null {
  const statuses = useModelStatuses().data;
  if (statuses === undefined) return null;
  return Object.values(statuses).filter(({ message }) => message === 'Bad' || message === 'Dead').length;
}

/** The last 24 hours of each model, by id. */
export const useModelHistories = () =>
  useQuery({
    queryKey: ['models-history'],
    queryFn: ({ signal }) => call(api.GET('/v1/models/history', { signal })),
    ...publicStats,
  });

export interface DaySummary {
  readonly requests: number;
  /** 0 to 1. Null without requests. */
  readonly successShare: number | null;
  /** Tokens per second: the average of the hours, weighted by their requests. Null if unknown. */
  readonly speed: number | null;
  /** Of a successful request, in the same way. */
  readonly seconds: number | null;
}

export const summarizeHours = (hours: readonly ModelHour[]): DaySummary => {
  const share = averageOf(hours, ({ success_rate: rate }) => rate);
  return {
    requests: hours.reduce((sum, { requests }) => sum + requests, 0),
    successShare: share === null ? null : share / 100,
    speed: averageOf(hours, ({ tps }) => tps),
    seconds: averageOf(hours, ({ art }) => art),
  };
};

function averageOf(hours: readonly ModelHour[], read: (hour: ModelHour) => number | null): number | null {
  let [sum, weight] = [0, 0];
  for (const hour of hours) {
    const value = read(hour);
    if (value === null) continue;
    sum += value * hour.requests;
    weight += hour.requests;
  }
  return weight === 0 ? null : sum / weight;
}

export const modelName = ({ name, id }: Pick<Model, 'name' | 'id'>): string => name ?? id;

/** Ids may contain slashes, which stay as they are. */
export const modelHref = (id: string): string => `/models/${encodeURIComponent(id).replaceAll('%2F', '/')}`;

/** What a model can do that others cannot. */
export const capabilities = ['reasoning', 'search', 'images', 'audio', 'files', 'free'] as const;
export type Capability = (typeof capabilities)[number];

export function listCapabilities(model: Model): Capability[] {
  const accepts = (modality: string): boolean => model.input_modalities?.includes(modality) === true;
  const has: Readonly<Record<Capability, boolean>> = {
    reasoning: model.reasoning === true,
    search: model.web_search === true,
    images: accepts('image'),
    audio: accepts('audio'),
    files: accepts('file') || (model.supported_file_types ?? []).length > 0,
    free: model.pricing.free_requests,
  };
  return capabilities.filter((name) => has[name]);
}

/** How many requests of a model failed lately. */
export interface Failures {
  readonly failed: number;
  readonly requests: number;
}

/** Fewer may be chance. */
const minFailures = 3;

/**
 * Finds out whether a model mostly fails: in the newest of its hours, and in the one before while that has few requests.
 * @param hours oldest first
 * @returns null if it does not
 */
export function findFailures(hours: readonly ModelHour[]): Failures | null {
  let [failed, requests] = [0, 0];
  for (const { requests: more, success_rate: rate } of hours.slice(-2).toReversed()) {
    if (requests >= minFailures) break;
    requests += more;
    failed += Math.round(more * (1 - (rate ?? 100) / 100));
  }
  return failed >= minFailures && failed * 2 > requests ? { failed, requests } : null;
}
