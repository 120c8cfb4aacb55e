import type { CatalogModel } from '../../catalog/catalog-schema.ts';
import type { CatalogStore } from '../../catalog/catalog-store.ts';
import { batchOperations, type BatchEndpoint } from '../../contract/batch-terms.ts';
import { writeReason } from '../../contract/reason-texts.ts';
import type { Estimate } from '../../money/estimate.ts';
import type { BatchFault } from './batch-record.ts';
import type { BatchPrice } from './batch-store.ts';
import type { FileVerdict } from '../files/file-verdict.ts';
import { batchQueueOf } from '../jobs/job-line.ts';
import { queueOfModel, type QueueName } from '../queue/job-kinds.ts';
import { estimateFile, type FileEstimate } from '../files/estimate-file.ts';
import type { WrittenFile } from '../files/file-writer.ts';
import type { BatchWork } from './batches.ts';

/** Lines that a worker takes at a time: enough embeddings for a full call, and chats that run next to each other. */
const linesPerSlice: Readonly<Record<QueueName, number>> = { chat: 64, image: 16, embedding: 2_048 };
/** A slice is in the memory of its worker. */
const maxSliceBytes = 4_000_000;

/** Models with their current prices. */
export type PlanCatalog = Pick<CatalogStore, 'current' | 'find' | 'isActive'>;

export interface BatchOptions {
  readonly endpoint: BatchEndpoint;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly maxCostNano: bigint | null;
  readonly resultLifetimeSeconds: number;
  readonly webhookUrl: string | null;
  readonly publicUrl: string;
  /** The batch whose failed lines it has; null if they are new. */
  readonly retryOf: string | null;
}

/** A batch that can be created, and what its admission reserves to see whether the balance can pay for it. */
export interface PlannedBatch {
  readonly work: BatchWork;
  readonly estimate: Estimate;
}

/** Plans a batch at the current prices. */
export function planBatch(
  catalog: PlanCatalog,
  { file, segment }: WrittenFile,
  { endpoint, maxCostNano, ...options }: BatchOptions,
): PlannedBatch {
  const { verdict } = file;
  const queue = queueOfModel(batchOperations[endpoint].modelTypes[0]);
  const faults = listFaults(verdict, endpoint);
  const estimate = faults.length > 0 ? null : estimateFile(verdict, endpoint, catalog);
  const main = findMainModel(catalog, queue, estimate);
  const lineBytes = segment.byteLength / Math.max(1, verdict.lines);
  return {
    work: {
      ...options,
      endpoint,
      maxCostNano,
      queue: batchQueueOf(queue),
      model: main?.id ?? verdict.groups[0]?.model ?? '',
      turnModel: main?.id ?? findAnyModel(catalog, queue),
      inputFileId: file.id,
      inputKey: segment.key,
      inputBytes: segment.byteLength,
      lines: verdict.lines,
      sliceBytes: Math.max(1, Math.min(maxSliceBytes, Math.ceil(lineBytes * linesPerSlice[queue]))),
      prices: faults.length > 0 ? {} : listPrices(catalog, queue),
      faults,
    },
    estimate: toEstimate(estimate, maxCostNano),
  };
}

/** The faults with which the batch fails. */
function listFaults({ faults, urls }: FileVerdict, endpoint: BatchEndpoint): BatchFault[] {
  const mismatches = urls
    .filter(({ url }) => url !== endpoint)
    .map(({ url, line }) => ({
      code: 'url_mismatch',
      line,
      message: writeReason('urlMismatch', { url: JSON.stringify(url), endpoint: JSON.stringify(endpoint) })
        .en,
      param: 'url',
    }));
  return [...faults, ...mismatches].sort((one, other) => (one.line ?? 0) - (other.line ?? 0));
}

/** The model that most lines name, of those that exist. */
function findMainModel(
  catalog: Pick<PlanCatalog, 'find'>,
  queue: QueueName,
  estimate: FileEstimate | null,
): CatalogModel | undefined {
  let most = 0;
  let main: CatalogModel | undefined;
  for (const { model: name, lines, error } of estimate?.models ?? []) {
    const model = name === null || error !== null ? undefined : catalog.find(name);
    if (model === undefined || queueOfModel(model.type) !== queue || lines <= most) continue;
    [most, main] = [lines, model];
  }
  return main;
}

/** If no line names a model that exists, the lines get their errors in the turns of any model of this kind. */
const findAnyModel = ({ current }: Pick<PlanCatalog, 'current'>, queue: QueueName): string =>
  current.models.find(({ type }) => queueOfModel(type) === queue)?.id ?? '';

/** The prices of all models that lines may name, because a file may name more of them than its check keeps. */
function listPrices({ current }: Pick<PlanCatalog, 'current'>, queue: QueueName): Record<string, BatchPrice> {
  const models = current.models.filter(({ type }) => queueOfModel(type) === queue);
  return Object.fromEntries(
    models.map(({ id, priceVersion, pricing }) => [id, { version: priceVersion, pricing }]),
  );
}

/** A batch takes one request per minute, and is never free. */
function toEstimate(estimate: FileEstimate | null, maxCostNano: bigint | null): Estimate {
  const costNano = estimate?.costNano ?? 0n;
  // With a maximum, the batch goes as far as the balance does, so there must only be some.
  const fixedNano = maxCostNano === null || costNano === 0n ? costNano : 1n;
  return {
    model: batchModel,
    promptTokens: estimate?.inputTokens ?? 0,
    fixedNano,
    nanoPerUnit: 0n,
    requestedUnits: 0,
    minUnits: 0,
    sharePermille: 1_000,
    user: null,
    isBatch: true,
  };
}

const batchModel: Estimate['model'] = {
  id: 'batch',
  rpmCoefficient: 1,
  priceVersion: 'batch',
  pricing: { date_of_use: '2026-01-01', type: 'request', cost_per_request: 0, free_requests: false },
};
