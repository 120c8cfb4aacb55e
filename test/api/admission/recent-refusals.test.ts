import test from 'ava';
import { authenticate } from '../../../api/http/middleware/authenticate.ts';
import { noteRefusals } from '../../../api/http/middleware/note-refusals.ts';
import { RecentRefusals } from '../../../api/admission/recent-refusals.ts';
import type { ApiContext } from '../../../api/http/request/context.ts';
import { AppError } from '../../../shared/contract/errors.ts';

const holder = { accountId: 'account', keyHash: 'hash' };

test('an account is marked as recently refused if its model request is rejected, but not if another kind of call is rejected', async (t) => {
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
