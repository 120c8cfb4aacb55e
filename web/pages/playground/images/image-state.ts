import type { components } from '../../../generated/api.d.ts';
import { openTabStore } from '../../../lib/tab-store.ts';
import type { Store } from '../../../lib/store.ts';
import type { Failure } from '../shared/failure.ts';
import type { Picture } from '../shared/pictures.ts';
import { addUsage, noUsage, readImageUsage, writeCost, type Usage, type UsageSum } from '../shared/usage.ts';

export type Job = components['schemas']['Job'];

/** Options as they were chosen; empty is the default. */
export interface ImageOptions {
  readonly size: string;
  readonly quality: string;
  readonly n: string;
  readonly negative_prompt: string;
  readonly style: string;
  readonly background: '' | 'transparent' | 'opaque';
  readonly output_format: '' | 'png' | 'jpeg' | 'webp';
}

/** Images that were ordered: a job of the API. */
export interface ImageTask {
  readonly id: string;
  /** Of the account that pays. */
  readonly account: number | null;
  readonly createdAt: string;
  readonly model: string;
  readonly prompt: string;
  /** How many were ordered. */
  readonly count: number;
  readonly status: Job['status'];
  readonly urls: readonly string[];
  /** Null while it is unknown. */
  readonly usage: Usage | null;
  readonly failure: Failure | null;
}

export interface ImageState {
  readonly prompt: string;
  readonly options: ImageOptions;
  readonly pictures: readonly Picture[];
  /** A data URI of a PNG with the dimensions of the first picture: what is transparent may be changed. */
  readonly mask: string | null;
  /** The newest first. */
  readonly tasks: readonly ImageTask[];
  readonly spentBefore: UsageSum;
}

const defaultImageOptions: ImageOptions = {
  size: '',
  quality: '',
  n: '',
  negative_prompt: '',
  style: '',
  background: '',
  output_format: '',
};

const initial: ImageState = {
  prompt: '',
  options: defaultImageOptions,
  pictures: [],
  mask: null,
  tasks: [],
  spentBefore: noUsage,
};

/** Returns the images of a user in this tab. */
export const openImages = (owner: string): Store<ImageState> =>
  openTabStore({
    name: 'playground-images-2',
    owner,
    initial,
    shrink: (state) => ({ ...state, pictures: [], mask: null }),
  });

export const hasEnded = ({ status }: Pick<Job, 'status'>): boolean =>
  status !== 'queued' && status !== 'active';

/** Returns what is kept of a job. */
export function readTask(task: ImageTask, job: Job): ImageTask {
  const { response, error, status, cost_request: cost, free_request: isFree } = job;
  const images = response !== null && !('object' in response) ? response : null;
  const urls = images?.data.flatMap(({ url }) => (url === null ? [] : [url])) ?? [];
  const usage =
    images !== null
      ? readImageUsage(images.usage)
      : cost === null
        ? null
        : { ...noTokens, cost: writeCost(cost), isFree: isFree === true };
  const failure =
    error === null || status === 'cancelled'
      ? null
      : {
          code: error.code,
          text: { en: error.message, ru: error.message },
          requestId: job.id,
          retryAfterSeconds: null,
        };
  return { ...task, status, urls, usage, failure };
}

const noTokens = { input: 0, cached: 0, output: 0, reasoning: 0, seconds: null };

export const sumImages = ({ tasks, spentBefore }: ImageState): UsageSum =>
  tasks.reduce((sum, { usage }) => addUsage(sum, usage), spentBefore);
