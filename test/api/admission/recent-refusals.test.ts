import test from 'ava';
import { authenticate } from '../../../api/middleware/authenticate.ts';
import { noteRefusals } from '../../../api/middleware/note-refusals.ts';
import { RecentRefusals } from '../../../api/admission/recent-refusals.ts';
import type { ApiContext } from '../../../api/request/context.ts';
import { AppError } from '../../../shared/contract/errors.ts';

const holder = { accountId: 'account', keyHash: 'hash' };

test('marks an account as recently refused when its model request is rejected, but not when another call with its key is', async (t) => {
  const refusals = new RecentRefusals();
  const context = {
    state: {},
    set: () => undefined,
    get: () => `Bearer mg-${'A'.repeat(43)}`,
  } as unknown as ApiContext;
  const refuse = (): Promise<never> => Promise.reject(new AppError('rate_limit_exceeded'));
  const services = { apiKeys: { find: async () => holder }, refusals };
  await t.throwsAsync(async () => await authenticate(services as never)(context, refuse));
  t.false(refusals.has(holder.accountId));
  await t.throwsAsync(async () => await noteRefusals({ refusals })(context, refuse));
  t.true(refusals.has(holder.accountId));
});
