import { healKey } from '../../shared/accounts/heal-key.ts';
import { redeemCode } from '../../shared/accounts/redeem-code.ts';
import { replaceKey } from '../../shared/accounts/replace-key.ts';
import { unknownKey } from '../../shared/accounts/unknown-key.ts';
import type { NewApiKey, RedeemRequest } from '../../shared/contract/users.ts';
import { holderOf } from '../middleware/authenticate.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { presentProfile, presentRedeemed } from '../present/accounts.ts';
import type { Services } from '../services.ts';
import { inDatabaseTurn } from '../middleware/in-database-turn.ts';
import { generateKey } from './generate-key.ts';
import { openAccount } from './open-account.ts';

export function getProfile(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const account = await openAccount(services, context);
    const recent = await services.hotAccounts.readRecentUse(account.id);
    context.body = presentProfile(account, recent);
  };
}

export function redeem(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { code } = context.state.body as RedeemRequest;
    context.body = await inDatabaseTurn(services, context, async () => {
      const { id } = await openAccount(services, context);
      const claim = await redeemCode(services, id, code);
      return presentRedeemed(await services.hotAccounts.get(id), claim);
    });
  };
}

export function regenerateApiKey(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const apiKey = await generateKey(() =>
      inDatabaseTurn(services, context, (late) => regenerate(services, context, late)),
    );
    context.body = { new_api_key: apiKey } satisfies NewApiKey;
  };
}

async function regenerate(services: Services, context: ApiContext, late: AbortSignal): Promise<string> {
  const { id } = await openAccount(services, context);
  const holder = holderOf(context);
  const apiKey = await replaceKey(services, id, { expectedKeyHash: holder.keyHash }, late);
  if (apiKey !== null) return apiKey;
  // Another call replaced the key first, or a crash left Redis with one that MongoDB no longer has.
  await healKey(services, holder);
  throw unknownKey();
}
