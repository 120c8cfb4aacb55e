import { healKey } from '../../admission/heal-key.ts';
import { replaceKey } from '../../../shared/accounts/replace-key.ts';
import { unknownKey } from '../../../shared/accounts/unknown-key.ts';
import { operations } from '../../contract/operations.ts';
import type { NewApiKey } from '../../contract/users.ts';
import { redeemCode } from '../redeem-code.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import { parseBody } from '../../http/middleware/parse-body.ts';
import { presentProfile, presentRedeemed } from '../present-account.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { keyHolderOf } from '../../http/request/holder.ts';
import { inDatabaseTurn } from '../../http/request/in-database-turn.ts';
import { readerOf, readFromRedis } from '../../http/request/read-turns.ts';
import type { Services } from '../../services.ts';
import { generateKey } from '../generate-key.ts';
import { openAccount } from './open-account.ts';

export const getProfile = defineEndpoint(
  operations.getProfile,
  [authenticateAccount, limitCalls],
  (services) => async (context) => {
    // May wait for MongoDB, so it must not hold a turn at Redis.
    const account = await openAccount(services, context);
    context.body = await readFromRedis(services, readerOf(context), 'one', async () =>
      presentProfile(account, await services.hotAccounts.readRecentUse(account.id)),
    );
  },
);

export const redeem = defineEndpoint(
  operations.redeemCode,
  [authenticateAccount, limitCalls, parseBody],
  (services) => async (context) => {
    const { code } = context.state.body;
    context.body = await inDatabaseTurn(services, context, async () => {
      const { id } = await openAccount(services, context);
      const claim = await redeemCode(services, id, code);
      return presentRedeemed(await services.hotAccounts.get(id), claim);
    });
  },
);

export const regenerateApiKey = defineEndpoint(
  operations.regenerateApiKey,
  [authenticateAccount, limitCalls],
  (services) => async (context) => {
    const apiKey = await generateKey(() =>
      inDatabaseTurn(services, context, (timedOut) => regenerate(services, context, timedOut)),
    );
    context.body = { new_api_key: apiKey } satisfies NewApiKey;
  },
);

async function regenerate(services: Services, context: ApiContext, timedOut: AbortSignal): Promise<string> {
  const { id } = await openAccount(services, context);
  const holder = keyHolderOf(context);
  const apiKey = await replaceKey(services, id, { expectedKeyHash: holder.keyHash }, timedOut);
  if (apiKey !== null) return apiKey;
  // Another call replaced the key first, or after a crash Redis still has a key that MongoDB no longer has.
  await healKey(services, holder);
  throw unknownKey();
}
