import { changesSettings, type SettingsChange } from '../../../shared/accounts/account-settings.ts';
import { changeAccount } from '../../../shared/accounts/change-account.ts';
import { readOwnerSettings } from '../../../shared/accounts/read-account-settings.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { operations } from '../../contract/operations.ts';
import type { CreatedApiAccount } from '../../contract/web-accounts.ts';
import { redeemCode } from '../../endpoints/redeem-code.ts';
import type { WebLink } from '../../../shared/account-area/web-models.ts';
import { callerNetwork } from '../../http/callers/caller-network.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { currentSession } from '../steps/authenticate-session.ts';
import { limitChanges } from '../steps/limit-changes.ts';
import { parseBody } from '../../http/middleware/parse-body.ts';
import { presentGrant } from './present-signup-grant.ts';
import { presentApiAccount, presentNewAccount, presentRedeemedCode } from './present-user.ts';
import { inDatabaseTurn } from '../../http/request/in-database-turn.ts';
import { readFromDatabase } from '../../http/request/read-turns.ts';
import type { Services } from '../../services.ts';
import { createFirstAccount } from '../first-account.ts';
import { findByKey, linkByKey, unknownKeyToLink } from '../link-by-key.ts';
import { findUser } from './find-user.ts';
import { accountGone, noSuchLink } from '../session-errors.ts';
import { describeLinks, findLink, openLink, type LinkContext } from './linked-account.ts';
import { record, subjectOf } from './record.ts';
import { changeAsUser, readAsUser } from './steps.ts';

export const listApiAccounts = defineEndpoint(
  operations.listApiAccounts,
  readAsUser,
  (services) => async (context) => {
    context.body = await readFromDatabase(services, context, 'list', async () => {
      const { userId } = await currentSession(services, context);
      const links = await services.web.links.list(userId);
      return (await describeLinks(services, links, links[0])).map(presentApiAccount);
    });
  },
);

export const getApiAccount = defineEndpoint(
  operations.getApiAccount,
  readAsUser,
  (services) => async (context) => {
    context.body = await readFromDatabase(services, context, 'one', async () =>
      presentLink(services, await findLink(services, context)),
    );
  },
);

async function presentLink(services: Services, link: WebLink) {
  const primary = await services.web.links.findOldest(link.userId);
  const [account] = await describeLinks(services, [link], primary);
  if (account === undefined) throw accountGone();
  return presentApiAccount(account);
}

export const renameApiAccount = defineEndpoint(
  operations.renameApiAccount,
  [...changeAsUser, limitChanges, parseBody],
  (services) => async (context) => {
    const { label, ...settings } = context.state.body;
    const change = readOwnerSettings(settings, (name) => services.catalog.find(name)?.id ?? null);
    context.body = await inDatabaseTurn(services, context, async () => {
      const link = await findLink(services, context);
      const renamed = await rename(services, context, link, label ?? link.label);
      await changeSettings(services, context, renamed, change);
      return await presentLink(services, renamed);
    });
  },
);

async function rename(
  services: Services,
  context: LinkContext,
  link: WebLink,
  label: string,
): Promise<WebLink> {
  if (link.label === label) return link;
  const action = { action: 'label-changed', ...subjectOf(link), label } as const;
  return await record(services, context, action, async () => {
    const found = await services.web.links.setLabel(link.userId, link._id, label);
    if (found === null) throw noSuchLink(link._id);
    return found;
  });
}

async function changeSettings(
  services: Services,
  context: LinkContext,
  link: WebLink,
  change: SettingsChange,
): Promise<void> {
  if (!changesSettings(change)) return;
  const action = { action: 'settings-changed', ...subjectOf(link) } as const;
  await record(services, context, action, () => changeAccount(services, link.accountId, change));
}

/** Links an account to the user. The user proves ownership with its API key. */
export const linkApiAccount = defineEndpoint(
  operations.linkApiAccount,
  [...changeAsUser, limitChanges, parseBody],
  (services) => {
    const { web } = services;
    return async (context) => {
      const { api_key: apiKey, label } = context.state.body;
      context.body = await inDatabaseTurn(services, context, async () => {
        const { userId } = await currentSession(services, context);
        const wrongKeyLimits = [
          { name: 'wrong-keys-user', who: userId },
          { name: 'wrong-keys-network', who: callerNetwork(context.ip) },
        ] as const;
        await web.limits.check(wrongKeyLimits);
        const accountId = await findByKey(services, apiKey);
        if (accountId === null) {
          await web.limits.count(wrongKeyLimits);
          throw unknownKeyToLink();
        }
        // The link is created with the key, so what limits the key limits it, too.
        await services.keyAccess.check(accountId, context.ip);
        const action = { action: 'account-linked', userId, accountId, label } as const;
        await rejectIfLinked(services, action);
        const link = await record(services, context, action, () => linkByKey(services, action, apiKey)).catch(
          async (error: unknown) => {
            // A parallel call linked the account first. Check again, because the error depends on whether the link is
            // the user's own.
            if (error instanceof AppError && error.code === 'already_linked')
              await rejectIfLinked(services, action);
            throw error;
          },
        );
        return await presentLink(services, link);
      });
      context.status = 201;
    };
  },
);

async function rejectIfLinked(
  { web }: Services,
  { userId, accountId }: Pick<WebLink, 'userId' | 'accountId'>,
): Promise<void> {
  const holder = await web.links.findByAccount(accountId);
  if (holder !== null) throw alreadyLinked(holder.userId === userId);
}

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
            'This account is linked to another user, who must unlink it first. If the account is yours, contact support.',
          messageRu:
            'Этот аккаунт привязан к другому пользователю, и сначала тот должен его отвязать. Если это ваш аккаунт, обратитесь в поддержку.',
        },
  );

export const createFirstApiAccount = defineEndpoint(
  operations.createFirstApiAccount,
  [...changeAsUser, limitChanges, parseBody],
  (services) => async (context) => {
    const { label } = context.state.body;
    context.body = await inDatabaseTurn(services, context, async () => {
      const user = await findUser(services, context);
      const { _id: userId, reservedAccountId: accountId } = user;
      if ((await services.web.links.findOldest(userId)) !== null) throw new AppError('account_exists');
      const network = callerNetwork(context.ip);
      await services.web.limits.take([{ name: 'first-accounts-network', who: network }]);
      const action = { action: 'account-created', userId, accountId, label } as const;
      const { link, apiKey, grant } = await record(
        services,
        context,
        action,
        () => createFirstAccount(services, user, { label, network }),
        ({ grant: { denialReason } }) => ({ grant: denialReason ?? 'granted' }),
      );
      // The key is shown only once, so it must not be lost in an outage after the account was created.
      const account = await presentLink(services, link).catch((error: unknown) => {
        services.log.warn({ err: error }, 'new account not read');
        return presentNewAccount(link, apiKey);
      });
      return { account, api_key: apiKey, grant: presentGrant(grant) } satisfies CreatedApiAccount;
    });
    context.status = 201;
  },
);

export const redeemForApiAccount = defineEndpoint(
  operations.redeemForApiAccount,
  [...changeAsUser, limitChanges, parseBody],
  (services) => async (context) => {
    const { code } = context.state.body;
    context.body = await inDatabaseTurn(services, context, async () => {
      const link = await findLink(services, context);
      const { id } = await openLink(services, link);
      const action = { action: 'code-redeemed', ...subjectOf(link) } as const;
      const claim = await record(services, context, action, () => redeemCode(services, id, code));
      return presentRedeemedCode(await services.hotAccounts.get(id), claim);
    });
  },
);
