import test from 'ava';
import { authenticateAccount } from '../../../api/account-area/steps/authenticate-account.ts';
import { operations } from '../../../api/contract/operations.ts';
import { noteRejections } from '../../../api/http/middleware/note-rejections.ts';
import { RecentRejections } from '../../../api/admission/recent-rejections.ts';
import type { ApiContext } from '../../../api/http/request/context.ts';
import { AppError } from '../../../shared/contract/errors.ts';

const holder = { accountId: 'account', keyHash: 'hash' };

test('an account is marked as recently refused if its model request is rejected, but not if another kind of call is rejected', async (t) => {
  const recentRejections = new RecentRejections();
  const authorization = `Bearer mg-${'A'.repeat(43)}`;
  const context = {
    state: {},
    req: { headers: { authorization } },
    set: () => undefined,
    get: () => authorization,
  } as unknown as ApiContext;
  const refuse = (): Promise<never> => Promise.reject(new AppError('rate_limit_exceeded'));
  const services = { apiKeys: { find: async () => holder }, recentRejections };
  const authenticate = authenticateAccount(services as never, operations.createChatCompletion);
  await t.throwsAsync(async () => await authenticate(context, refuse));
  t.false(recentRejections.has(holder.accountId));
  await t.throwsAsync(async () => await noteRejections({ recentRejections })(context, refuse));
  t.true(recentRejections.has(holder.accountId));
});
