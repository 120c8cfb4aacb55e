import { setTimeout as delay } from 'node:timers/promises';
import type { CreateBatchRequest } from '../../../shared/contract/batches.ts';
import { maxFileSeconds } from '../../../shared/contract/batch-terms.ts';
import { AppError, invalidField, toAppError } from '../../../shared/contract/errors.ts';
import { parseRub } from '../../../shared/encoding/money.ts';
import type { BatchRecord } from '../../../shared/work/batches/batch-record.ts';
import { presentBatch } from '../../../shared/work/batches/present-batch.ts';
import { modelTypes } from '../../../shared/contract/models.ts';
import { admit } from '../../admission/admit.ts';
import { preAdmitBody } from '../../admission/pre-admit.ts';
import { noSuchInput, toBatchId } from '../../batches/batches.ts';
import { planBatch, type BatchOptions } from '../../batches/plan-batch.ts';
import { storeRequests } from '../../batches/store-requests.ts';
import type { WrittenFile } from '../../files/file-writer.ts';
import { operations } from '../../contract/operations.ts';
import { checkWebhookUrl, webhookUrlHeader } from '../../contract/webhook-url.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticate } from '../../http/middleware/authenticate.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import { parseBody } from '../../http/middleware/parse-body.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { keyHolderOf } from '../../http/request/holder.ts';
import type { Services } from '../../services.ts';

export const createBatch = defineEndpoint(
  operations.createBatch,
  [authenticate, limitCalls, parseBody],
  (services) => async (context) => {
    const { body } = context.state;
    const options = readOptions(services, context, body);
    // Before anything is stored. It has been done already for a large body.
    if (context.state.preAdmission === undefined) await preAdmitBody(services, context, modelTypes);
    const { requests } = body;
    const batch =
      requests === null || requests === undefined
        ? await createFrom(services, context, await findInput(services, context, body), options)
        : await createFromStored(
            services,
            context,
            await storeInput(services, context, body, requests),
            options,
          );
    context.body = presentBatch(batch, Date.now());
  },
);

function readOptions(services: Services, context: ApiContext, body: CreateBatchRequest): BatchOptions {
  const url = context.get(webhookUrlHeader);
  return {
    endpoint: body.endpoint,
    metadata: readMetadata(body.metadata ?? null),
    maxCostNano: readMaxCost(body.max_cost ?? null),
    resultLifetimeSeconds: body.output_expires_after?.seconds ?? maxFileSeconds,
    webhookUrl: url === '' ? null : checkWebhookUrl(url),
    publicUrl: services.publicUrl,
  };
}

const maxMetadataName = 64;

function readMetadata(metadata: Readonly<Record<string, string>> | null) {
  const tooLong = Object.keys(metadata ?? {}).find((name) => name.length > maxMetadataName);
  if (tooLong === undefined) return metadata;
  throw invalidField(['body', 'metadata'], `has a name that is longer than ${maxMetadataName} characters`);
}

function readMaxCost(value: number | null): bigint | null {
  if (value === null) return null;
  const nano = parseRub(value);
  if (nano === null) throw invalidField(['body', 'max_cost'], 'has more than nine decimal places');
  return nano;
}

/** @throws AppError `validation_failed`, and like an upload */
async function storeInput(
  services: Services,
  context: ApiContext,
  { input_file_id: id, endpoint }: CreateBatchRequest,
  requests: NonNullable<CreateBatchRequest['requests']>,
): Promise<WrittenFile> {
  if (id !== null && id !== undefined)
    throw invalidField(
      ['body', 'requests'],
      'cannot be sent together with input_file_id. Remove one of them',
    );
  return await storeRequests(services, context, requests, endpoint);
}

/** @throws AppError `not_found`, `validation_failed` */
async function findInput(
  services: Services,
  context: ApiContext,
  { input_file_id: id }: CreateBatchRequest,
): Promise<WrittenFile> {
  const { accountId } = keyHolderOf(context);
  if (id === null || id === undefined)
    throw invalidField(['body', 'input_file_id'], 'is required, unless you send requests', {
      type: 'required',
    });
  const found = await services.files.findContent(accountId, id);
  if (found === null) throw noSuchInput();
  const { file, segments } = found;
  const { verdict } = file;
  if (verdict === null || segments[0] === undefined)
    throw invalidField(
      ['body', 'input_file_id'],
      'is a file with results. Upload a file with the purpose "batch"',
    );
  return { file: { ...file, verdict }, segment: segments[0] };
}

/** Admits and creates a batch, or finds the one that the same request created before. */
export async function createFrom(
  services: Services,
  context: ApiContext,
  input: WrittenFile,
  options: BatchOptions,
): Promise<BatchRecord> {
  const { work, estimate } = planBatch(services.catalog, input, options);
  const admitted = await admit(services, context, estimate);
  if (admitted.outcome === 'attached')
    return await findOnceCreated(services, admitted.accountId, admitted.requestId);
  return await services.batches.create(admitted.request, work);
}

/** As `createFrom`, for an input that was stored for this request. If the batch does not have it, it is deleted again. */
export async function createFromStored(
  services: Services,
  context: ApiContext,
  input: WrittenFile,
  options: BatchOptions,
): Promise<BatchRecord> {
  const { id } = input.file;
  try {
    const batch = await createFrom(services, context, input, options);
    if (batch.inputFileId !== id) await deleteInput(services, context, id);
    return batch;
  } catch (error) {
    // If a store did not reply, the batch may have been created.
    if (toAppError(error).status < 500) await deleteInput(services, context, id);
    throw error;
  }
}

async function deleteInput({ files, log }: Services, context: ApiContext, id: string): Promise<void> {
  const { accountId } = keyHolderOf(context);
  await files.delete(accountId, id).catch((error: unknown) => {
    log.warn(
      { accountId, fileId: id, err: error },
      'the input of a batch that was not created was not deleted',
    );
  });
}

const creationPolls = 50;
const creationPollMs = 100;

/** The first request with this Idempotency-Key may be about to create its batch. */
async function findOnceCreated(
  services: Services,
  accountId: string,
  requestId: string,
): Promise<BatchRecord> {
  for (let i = 0; i < creationPolls; i++) {
    const batch = await services.batches.find(accountId, toBatchId(requestId));
    if (batch !== null) return batch;
    await delay(creationPollMs);
  }
  throw new AppError('service_unavailable', { message: 'the batch of an earlier request was not created' });
}
