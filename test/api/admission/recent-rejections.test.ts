import test from 'ava';
import { authenticate } from '../../../api/http/middleware/authenticate.ts';
import { noteRejections } from '../../../api/http/middleware/note-rejections.ts';
import { RecentRejections } from '../../../api/admission/recent-rejections.ts';
import type { ApiContext } from '../../../api/http/request/context.ts';
import { AppError } from '../../../shared/contract/errors.ts';

const holder = { accountId: 'account', keyHash: 'hash' };

test('an account is marked as recently refused if its model request is rejected, but not if another kind of call is rejected', async (t) => {
  const recentRejections = new RecentRejections();
  const context = {
    state: {},
    set: () => undefined,
    get: () => `Bearer mg-${'A'.repeat(43)}`,
  } as unknown as ApiContext;
  const refuse = (): Promise<never> => Promise.reject(new AppError('rate_limit_exceeded'));
  const services = { apiKeys: { find: async () => holder }, recentRejections };
  await t.throwsAsync(async () => await authenticate(services as never)(context, refuse));
  t.false(recentRejections.has(holder.accountId));
  await t.throwsAsync(async () => await noteRejections({ recentRejections })(context, refuse));
  t.true(recentRejections.has(holder.accountId));
});
