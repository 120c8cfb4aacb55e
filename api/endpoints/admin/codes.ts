import type { RefillCodeDocument } from '../../../shared/accounts/refill-code-store.ts';
import { addAccountNames } from '../../../shared/admin/account-names.ts';
import {
  createCodes,
  describeCode,
  listCodes,
  listCodesOfBatch,
  revokeCode,
  revokeCodesOfBatch as revokeInStores,
} from '../../../shared/admin/codes.ts';
import { dryRunRevokeCodes } from '../../../shared/admin/dry-run-access.ts';
import { AppError, invalidField } from '../../../shared/contract/errors.ts';
import { operations } from '../../contract/operations.ts';
import { readIdempotencyKey } from '../../http/request/idempotency-key.ts';
import { inDatabaseTurn } from '../../http/request/in-database-turn.ts';
import { readFromDatabase } from '../../http/request/read-turns.ts';
import type { Services } from '../../services.ts';
import { readAmount } from './accounts.ts';
import { defineAdminEndpoint, pageOf, presentPage, trailOf } from './define-admin-endpoint.ts';

const present = async (services: Services, codes: readonly RefillCodeDocument[]) =>
  await addAccountNames(
    services,
    codes.map((code) => ({ id: code._id, ...describeCode(code), batch: code.batch ?? null })),
    ({ redeemed_by: account }) => account,
  );

export const createRefillCodes = defineAdminEndpoint(
  operations.createRefillCodes,
  (services) => async (context) => {
    const { balance, free_requests: freeRequests, count, expires_at = null } = context.state.body;
    const balanceNano = readAmount(balance, 'balance');
    if (balanceNano === 0n && freeRequests === 0)
      throw invalidField(
        ['body', 'balance'],
        'and free_requests are both 0: the code would be worth nothing',
      );
    const expiresAt = expires_at === null ? null : new Date(expires_at);
    if (expiresAt !== null && expiresAt.getTime() < Date.now())
      throw invalidField(['body', 'expires_at'], 'must not be in the past');
    const key = readIdempotencyKey(context);
    const once = key === null ? null : { key, request: context.state.body };
    const code = { balanceNano, freeRequests, expiresAt };
    const { codes, ids, batch, isReplay } = await inDatabaseTurn(services, context, (timedOut) =>
      createCodes(services, trailOf(services, context), count, code, { once, timedOut }),
    );
    if (isReplay) context.set('idempotent-replayed', 'true');
    return { codes, ids, batch };
  },
);

export const listRefillCodes = defineAdminEndpoint(
  operations.listRefillCodes,
  (services) => async (context) => {
    const { status = null, batch = null } = context.state.query;
    return await readFromDatabase(services, context, 'list', async () => {
      const page = await listCodes(services, { status, batch }, pageOf(context.state.query));
      return presentPage({ ...page, rows: await present(services, page.rows) }, (row) => row);
    });
  },
);

export const revokeRefillCode = defineAdminEndpoint(
  operations.revokeRefillCode,
  (services) => (context) =>
    inDatabaseTurn(services, context, async () => {
      const code = await services.codes.findById(context.state.path.code_id);
      if (code === null || code.source !== undefined)
        throw new AppError('not_found', {
          message: 'There is no code with this id. GET /v1/admin/codes lists codes with their ids.',
        });
      if (context.state.query.dry_run) return dryRunRevokeCodes([code]);
      const [revoked] = await present(services, [
        await revokeCode(services, trailOf(services, context), code),
      ]);
      return revoked!;
    }),
);

export const revokeCodesOfBatch = defineAdminEndpoint(
  operations.revokeCodesOfBatch,
  (services) => (context) =>
    inDatabaseTurn(services, context, async () => {
      const { batch } = context.state.path;
      const found = await listCodesOfBatch(services, batch);
      if (found === null)
        throw new AppError('not_found', {
          message: 'No codes have this batch. GET /v1/admin/codes lists codes with their batches.',
        });
      if (context.state.query.dry_run) return dryRunRevokeCodes(found);
      return { batch, codes: await revokeInStores(services, trailOf(services, context), batch, found) };
    }),
);
