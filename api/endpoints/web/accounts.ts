import { AppError } from '../../../shared/contract/errors.ts';
import type {
  CreatedApiAccount,
  FirstAccountRequest,
  LabelChange,
  LinkRequest,
  WebRedeemRequest,
} from '../../../shared/contract/web-accounts.ts';
import { hashSecret, isApiKey } from '../../../shared/accounts/credentials.ts';
import { redeemCode } from '../../../shared/accounts/redeem-code.ts';
import type { WebLink } from '../../../shared/web/web-models.ts';
import { callerNetwork } from '../../callers/caller-network.ts';
import { currentSession, sessionOf } from '../../middleware/authenticate-session.ts';
import type { ApiContext } from '../../middleware/request-context.ts';
import { presentApiAccount, presentRedeemedCode } from '../../present/web.ts';
import type { Services } from '../../services.ts';
import { createFirstAccount } from '../../web/first-account.ts';
import { inDatabaseTurn } from '../../middleware/in-database-turn.ts';
import { record, subjectOf } from './record.ts';
import { describeLinks, findLink, openLinkedAccount } from './linked-account.ts';
import { findUser } from './find-user.ts';

export function listApiAccounts(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { userId } = sessionOf(context);
    context.body = await inDatabaseTurn(services, context, async () => {
      const links = await services.web.links.list(userId);
      return (await describeLinks(services, userId, links)).map(presentApiAccount);
    });
  };
}

export function getApiAccount(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    context.body = await inDatabaseTurn(services, context, async () =>
      showLink(services, await findLink(services, context)),
    );
  };
}

async function showLink(services: Services, link: WebLink) {
  const [shown] = await describeLinks(services, link.userId, [link]);
  return presentApiAccount(shown!);
}

export function renameApiAccount(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { label } = context.state.body as LabelChange;
    context.body = await inDatabaseTurn(services, context, async () => {
      const link = await findLink(services, context);
      if (link.label === label) return await showLink(services, link);
      await record(services, context, { action: 'label-changed', ...subjectOf(link), label }, () =>
        services.web.links.setLabel(link.userId, link._id, label),
      );
      return await showLink(services, { ...link, label });
    });
  };
}

/** Makes an account the user's own: whoever has its key may do what it does. */
export function linkApiAccount(services: Services) {
  const { web } = services;
  return async (context: ApiContext): Promise<void> => {
    const { api_key: apiKey, label } = context.state.body as LinkRequest;
    context.body = await inDatabaseTurn(services, context, async () => {
      const { userId } = await currentSession(services, context);
      const guesses = [
        { name: 'wrong-keys-user', who: userId },
        { name: 'wrong-keys-network', who: callerNetwork(context.ip) },
      ] as const;
      await web.limits.check(guesses);
      const accountId = await findByKey(services, apiKey);
      if (accountId === null) {
        await web.limits.count(guesses);
        throw unknownKeyToLink();
      }
      const holder = await web.links.findByAccount(accountId);
      if (holder !== null) throw alreadyLinked(holder.userId === userId);
      const action = { action: 'account-linked', userId, accountId, label } as const;
      const link = await record(services, context, action, async () => {
        const made = await web.links.create({ userId, accountId, label });
        if ((await findByKey(services, apiKey)) === accountId) return made;
        // Its key was replaced meanwhile, perhaps to shut out whoever links it here.
        await web.links.delete(userId, made._id);
        throw unknownKeyToLink();
      });
      return await showLink(services, link);
    });
    context.status = 201;
  };
}

const findByKey = async ({ accounts }: Services, apiKey: string): Promise<string | null> =>
  isApiKey(apiKey) ? await accounts.findIdByKeyHash(hashSecret(apiKey)) : null;

const unknownKeyToLink = (): AppError =>
  new AppError('invalid_api_key', {
    message: 'No account has this API key. Check what you pasted: a key is "mg-" and 43 characters.',
    messageRu: 'Аккаунта с таким API-ключом нет. Проверьте, что вы вставили: ключ — это «mg-» и 43 символа.',
  });

const alreadyLinked = (isOwn: boolean): AppError =>
  new AppError(
    'already_linked',
    isOwn
      ? {
          message: 'You have already linked this account. GET /v1/web/api-accounts lists it.',
          messageRu: 'Вы уже привязали этот аккаунт. Он есть в списке: GET /v1/web/api-accounts.',
        }
      : {
          message:
            'Another user has linked this account. That user must unlink it first; if it is yours, ask support.',
          messageRu:
            'Этот аккаунт привязал другой пользователь. Сначала он должен его отвязать; если аккаунт ваш, обратитесь в поддержку.',
        },
  );

export function createFirstApiAccount(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { label } = context.state.body as FirstAccountRequest;
    context.body = await inDatabaseTurn(services, context, async () => {
      const user = await findUser(services, context);
      const { _id: userId, reservedAccountId: accountId } = user;
      if ((await services.web.links.findOldest(userId)) !== null) throw new AppError('account_exists');
      await services.web.limits.take([{ name: 'first-accounts-network', who: callerNetwork(context.ip) }]);
      const action = { action: 'account-created', userId, accountId, label } as const;
      const { link, apiKey } = await record(services, context, action, () =>
        createFirstAccount(services, user, label),
      );
      return { account: await showLink(services, link), api_key: apiKey } satisfies CreatedApiAccount;
    });
    context.status = 201;
  };
}

export function redeemForApiAccount(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { code } = context.state.body as WebRedeemRequest;
    context.body = await inDatabaseTurn(services, context, async () => {
      const { id } = await openLinkedAccount(services, context);
      const { userId } = sessionOf(context);
      const action = { action: 'code-redeemed', userId, accountId: id } as const;
      const claim = await record(services, context, action, () => redeemCode(services, id, code));
      return presentRedeemedCode(await services.hotAccounts.get(id), claim);
    });
  };
}
