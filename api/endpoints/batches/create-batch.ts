import type { CreateBatchRequest } from '../../../shared/contract/batches.ts';
import { maxFileSeconds } from '../../../shared/contract/batch-terms.ts';
import { invalidField } from '../../../shared/contract/errors.ts';
import { parseRub } from '../../../shared/encoding/money.ts';
import type { BatchRecord } from '../../../shared/work/batches/batch-record.ts';
import { noSuchInput } from '../../../shared/work/batches/batches.ts';
import type { BatchOptions } from '../../../shared/work/batches/plan-batch.ts';
import type { WrittenFile } from '../../../shared/work/files/file-writer.ts';
import { presentBatch } from '../../../shared/work/batches/present-batch.ts';
import { modelTypes } from '../../../shared/contract/models.ts';
import { preAdmitBody } from '../../admission/pre-admit.ts';
import { createFromFile, createFromLines } from '../../batches/create-from-file.ts';
import { writeRequests } from '../../batches/write-requests.ts';
import { operations } from '../../contract/operations.ts';
import { checkWebhookUrl, webhookUrlHeader } from '../../contract/webhook-url.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import { parseBody } from '../../http/middleware/parse-body.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { holderOf } from '../../http/request/holder.ts';
import type { Services } from '../../services.ts';

export const createBatch = defineEndpoint(
  operations.createBatch,
  [authenticateAccount, limitCalls, parseBody],
  (services) => async (context) => {
    const { body } = context.state;
    const options = readOptions(services, context, body);
    // Before anything is stored. It has been done already for a large body.
    if (context.state.preAdmission === undefined) await preAdmitBody(services, context, modelTypes);
    const batch = await createFrom(services, context, body, options);
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
    retryOf: null,
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

/** @throws AppError `not_found`, `validation_failed` */
async function createFrom(
  services: Services,
  context: ApiContext,
  { input_file_id: id, requests, endpoint }: CreateBatchRequest,
  options: BatchOptions,
): Promise<BatchRecord> {
  const { accountId } = holderOf(context);
  const hasId = id !== null && id !== undefined;
  if (requests !== null && requests !== undefined) {
    if (hasId)
      throw invalidField(
        ['body', 'requests'],
        'cannot be sent together with input_file_id. Remove one of them',
      );
    const pieces = writeRequests(requests, endpoint, accountId);
    return await createFromLines(services, context, { name: 'requests.jsonl', pieces }, options);
  }
  if (!hasId)
    throw invalidField(['body', 'input_file_id'], 'is required, unless you send requests', {
      type: 'required',
    });
  return await createFromFile(services, context, await findInput(services, accountId, id), options);
}

async function findInput(services: Services, accountId: string, id: string): Promise<WrittenFile> {
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
