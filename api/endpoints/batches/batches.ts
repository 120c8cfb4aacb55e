import type { BatchList, BatchPath } from '../../../shared/contract/batches.ts';
import { AppError, invalidField } from '../../../shared/contract/errors.ts';
import type { BatchRecord } from '../../../shared/work/batches/batch-record.ts';
import { presentBatch } from '../../../shared/work/batches/present-batch.ts';
import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { holderOf } from '../../http/request/holder.ts';
import { readerOf, readFromRedis } from '../../http/request/read-turns.ts';
import type { Services } from '../../services.ts';

const batchId = /^batch_[0-9a-f]{32}$/;

/** Context of a request with a batch's id in its path. */
export type BatchContext = ApiContext & { readonly state: { readonly path: BatchPath } };

/** Finds the batch in the path. @throws AppError `not_found`, even if another account has such a batch */
export async function findBatch(services: Services, context: BatchContext): Promise<BatchRecord> {
  const { accountId } = holderOf(context);
  const id = readBatchId(context);
  const find = () => services.batches.find(accountId, id);
  const batch = await readFromRedis(services, readerOf(context), 'one', find);
  if (batch === null) throw noSuchBatch();
  return batch;
}

/** Throws immediately for malformed ids, so that they are not looked up. */
function readBatchId({ state }: BatchContext): string {
  const { batch_id: id } = state.path;
  if (!batchId.test(id)) throw noSuchBatch();
  return id;
}

const noSuchBatch = (): AppError =>
  new AppError('not_found', {
    message:
      'This account has no such batch. Batches are kept for 31 days after they end; GET /v1/batches lists them.',
    messageRu:
      'В этом аккаунте нет такого пакета. Пакеты хранятся 31 день после завершения. Список: GET /v1/batches.',
  });

export const listBatches = defineEndpoint(
  operations.listBatches,
  [authenticateAccount, limitCalls],
  (services) => async (context) => {
    const { limit, after = null } = context.state.query;
    if (after !== null && !batchId.test(after))
      throw invalidField(
        ['query', 'after'],
        'is not the id of a batch: send the last_id of the previous page',
      );
    const { accountId } = holderOf(context);
    // One more shows whether there is another page.
    const find = () => services.batches.list(accountId, after, limit + 1);
    const found = await readFromRedis(services, readerOf(context), 'list', find);
    const page = found.slice(0, limit);
    const nowMs = Date.now();
    context.body = {
      object: 'list',
      data: page.map((batch) => presentBatch(batch, nowMs)),
      first_id: page[0]?.id ?? null,
      last_id: page.at(-1)?.id ?? null,
      has_more: found.length > limit,
    } satisfies Page;
  },
);

type Page = typeof BatchList extends { static: infer T } ? T : object;

export const getBatch = defineEndpoint(
  operations.getBatch,
  [authenticateAccount, limitCalls],
  (services) => async (context) => {
    context.body = presentBatch(await findBatch(services, context), Date.now());
  },
);

export const cancelBatch = defineEndpoint(
  operations.cancelBatch,
  [authenticateAccount, limitCalls],
  (services) => async (context) => {
    const id = readBatchId(context);
    // Not in a turn of reads: the batch costs money until it is cancelled.
    if (!(await services.batches.cancel(holderOf(context).accountId, id))) throw noSuchBatch();
    context.body = presentBatch(await findBatch(services, context), Date.now());
  },
);
