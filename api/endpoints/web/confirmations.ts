import { AppError, invalidField } from '../../../shared/contract/errors.ts';
import type {
  RegeneratedApiKey,
  RevealedApiKey,
  SensitiveActionCodeRequest,
  SensitiveActionConfirm,
} from '../../../shared/contract/web-confirmations.ts';
import { maskApiKey } from '../../../shared/accounts/credentials.ts';
import { replaceKey } from '../../../shared/accounts/replace-key.ts';
import type { ConfirmedAction } from '../../../shared/web/mail.ts';
import { unlinkAccount } from '../../../shared/web/unlink-account.ts';
import type { WebLink } from '../../../shared/web/web-models.ts';
import { callerNetwork } from '../../callers/caller-network.ts';
import type { ApiContext } from '../../middleware/request-context.ts';
import type { Services } from '../../services.ts';
import { inDatabaseTurn } from '../../middleware/in-database-turn.ts';
import { generateKey } from '../generate-key.ts';
import { record, subjectOf } from './record.ts';
import { languageOf, originOf } from './caller.ts';
import { enterCode } from './enter-code.ts';
import { readEmail } from './fields.ts';
import { findLink, noSuchLink, openLink } from './linked-account.ts';
import { mailCode } from './mail-code.ts';
import { findUser } from './find-user.ts';

/** What the audit log calls them once they are done. */
const auditActionOf = {
  unlink: 'account-unlinked',
  reveal: 'key-revealed',
  regenerate: 'key-regenerated',
} as const;

/** What must hold of the account before a code is mailed, and again before the action is done. */
type Check = (services: Services, context: ApiContext) => Promise<WebLink>;

/** A code is good for one action of one user on one account. */
const subjectOfCode = ({ userId, _id }: WebLink): string => `${userId}:${_id}`;

function requestConfirmation(services: Services, action: ConfirmedAction, check: Check) {
  const { limits } = services.web;
  return async (context: ApiContext): Promise<void> => {
    const email = readEmail((context.state.body as SensitiveActionCodeRequest).email);
    await inDatabaseTurn(services, context, async () => {
      const link = await check(services, context);
      const user = await findUser(services, context);
      if (user.email !== email) {
        throw invalidField(['body', 'email'], 'must be the email address you are signed in with');
      }
      await limits.take([
        // Counted by user, so that a stranger who requests sign-in codes for this mailbox cannot block confirmations.
        { name: 'confirmation-codes-user', who: user._id },
        { name: 'mailed-codes-network', who: callerNetwork(context.ip) },
      ]);
      const language = languageOf(context);
      const what = { purpose: action, email, subject: subjectOfCode(link) };
      context.body = await mailCode(services, what, (code) => ({
        kind: 'confirmation-code',
        email,
        action,
        accountLabel: link.label,
        language,
        ...originOf(context),
        ...code,
      }));
    });
    context.status = 201;
  };
}

/** Does an action once the mailed code says that it is the user who wants it, writes it down and mails a notice. */
async function confirm<T>(
  services: Services,
  context: ApiContext,
  { action, check }: { readonly action: ConfirmedAction; readonly check: Check },
  work: (link: WebLink) => Promise<T>,
): Promise<T> {
  const typed = context.state.body as SensitiveActionConfirm;
  return await inDatabaseTurn(services, context, async () => {
    const link = await check(services, context);
    await enterCode(services, context, typed, { purposes: [action], subject: subjectOfCode(link) });
    return await record(services, context, { action: auditActionOf[action], ...subjectOf(link) }, () =>
      work(link),
    );
  });
}

export const requestUnlinkCode = (services: Services) => requestConfirmation(services, 'unlink', findLink);

export function unlinkApiAccount(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    await confirm(services, context, { action: 'unlink', check: findLink }, async (link) => {
      if (!(await unlinkAccount(services.web, link))) throw noSuchLink(link._id);
    });
    context.status = 204;
  };
}

/** Told before a code is mailed as well: it would be good for nothing. */
const findRevealable: Check = async (services, context) => {
  if (!services.config.revealsKeys) throw noKeyToShow();
  return await findLink(services, context);
};

const noKeyToShow = (): AppError =>
  new AppError('not_found', {
    message:
      'This service keeps no copy of the key that could be shown. The key still works; if it is lost, replace it.',
    messageRu:
      'Сервис не хранит копию ключа, которую можно показать. Ключ продолжает работать; если он потерян, замените его.',
  });

export const requestRevealCode = (services: Services) =>
  requestConfirmation(services, 'reveal', findRevealable);

export function revealApiKey(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const apiKey = await confirm(
      services,
      context,
      { action: 'reveal', check: findRevealable },
      async ({ accountId }) => {
        const key = await services.accounts.revealKey(accountId);
        if (key === null) throw noKeyToShow();
        return key;
      },
    );
    context.body = { api_key: apiKey } satisfies RevealedApiKey;
  };
}

const findUsable: Check = async (services, context) => {
  const link = await findLink(services, context);
  await openLink(services, link);
  return link;
};

export const requestRegenerateCode = (services: Services) =>
  requestConfirmation(services, 'regenerate', findUsable);

export function regenerateKeyOfApiAccount(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const apiKey = await confirm(
      services,
      context,
      { action: 'regenerate', check: findUsable },
      ({ accountId }) => regenerate(services, accountId),
    );
    context.body = { api_key: apiKey, key_masked: maskApiKey(apiKey) } satisfies RegeneratedApiKey;
  };
}

async function regenerate(services: Services, accountId: string): Promise<string> {
  const apiKey = await generateKey(() => replaceKey(services, accountId));
  if (apiKey === null)
    throw new AppError('not_found', {
      message: 'This account does not exist any more.',
      messageRu: 'Этого аккаунта больше нет.',
    });
  return apiKey;
}
