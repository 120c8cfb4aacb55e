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
import { readEmail, refuseMailedCode } from './fields.ts';
import { accountGone, findLink, noSuchLink, openLink } from './linked-account.ts';
import { mailCode } from './mail-code.ts';
import { findUser } from './find-user.ts';

/** What the audit log calls them once they are done. */
const auditActionOf = {
  unlink: 'account-unlinked',
  reveal: 'key-revealed',
  regenerate: 'key-regenerated',
} as const;

/** What an action is about. */
interface Target {
  readonly link: WebLink;
  /** Of the account's key; null where the action is not about the key. */
  readonly keyHash: string | null;
}

/** What must hold of the account before a code is mailed, and again before the action is done. */
type Check<T extends Target> = (services: Services, context: ApiContext) => Promise<T>;

/**
 * A code is good for one action of one user on one account, and where it is about the key, on the key of the moment: a code
 * that a thief had mailed is good for nothing once the key is replaced.
 */
const subjectOfCode = ({ link: { userId, _id }, keyHash }: Target): string =>
  [userId, _id, ...(keyHash === null ? [] : [keyHash])].join(':');

function requestConfirmation(services: Services, action: ConfirmedAction, check: Check<Target>) {
  const { limits } = services.web;
  return async (context: ApiContext): Promise<void> => {
    const email = readEmail((context.state.body as SensitiveActionCodeRequest).email);
    await inDatabaseTurn(services, context, async () => {
      const target = await check(services, context);
      const user = await findUser(services, context);
      if (user.email !== email) {
        throw invalidField(['body', 'email'], 'must be the email address you are signed in with', {
          msgRu: 'должен быть адрес, с которым вы вошли',
        });
      }
      await limits.take([
        // Counted by user, so that a stranger who requests sign-in codes for this mailbox cannot block confirmations.
        { name: 'confirmation-codes-user', who: user._id },
        { name: 'mailed-codes-network', who: callerNetwork(context.ip) },
      ]);
      const language = languageOf(context);
      const what = { purpose: action, email, subject: subjectOfCode(target) };
      context.body = await mailCode(services, what, (code) => ({
        kind: 'confirmation-code',
        email,
        action,
        accountLabel: target.link.label,
        language,
        ...originOf(context),
        ...code,
      }));
    });
    context.status = 201;
  };
}

/** Does an action once the mailed code says that it is the user who wants it, writes it down and mails a notice. */
async function confirm<T extends Target, R>(
  services: Services,
  context: ApiContext,
  { action, check }: { readonly action: ConfirmedAction; readonly check: Check<T> },
  work: (target: T, late: AbortSignal) => Promise<R>,
): Promise<R> {
  const { links } = services.web;
  const typed = context.state.body as SensitiveActionConfirm;
  return await inDatabaseTurn(services, context, async (late) => {
    const target = await check(services, context);
    await enterCode(services, context, typed, { purposes: [action], subject: subjectOfCode(target) });
    const { link } = target;
    return await record(
      services,
      context,
      { action: auditActionOf[action], ...subjectOf(link) },
      async () => {
        // MongoDB may have been slow to take the event, and support have taken the account from its user meanwhile.
        if ((await links.find(link.userId, link._id)) === null) throw noSuchLink(link._id);
        return await work(target, late);
      },
    );
  });
}

const findOwn: Check<Target> = async (services, context) => ({
  link: await findLink(services, context),
  keyHash: null,
});

/** A target with the key that its account has now. */
interface KeyTarget extends Target {
  readonly keyHash: string;
}

async function withKey({ accounts }: Services, link: WebLink): Promise<KeyTarget> {
  const account = await accounts.findById(link.accountId);
  if (account === null) throw accountGone();
  return { link, keyHash: account.keyHash };
}

export const requestUnlinkCode = (services: Services) => requestConfirmation(services, 'unlink', findOwn);

export function unlinkApiAccount(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    await confirm(services, context, { action: 'unlink', check: findOwn }, async ({ link }) => {
      if (!(await unlinkAccount(services.web, link))) throw noSuchLink(link._id);
    });
    context.status = 204;
  };
}

/** Told before a code is mailed as well: it would be good for nothing. */
const findRevealable: Check<KeyTarget> = async (services, context) => {
  if (!services.config.revealsKeys) throw noKeyToShow();
  return await withKey(services, await findLink(services, context));
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
      async ({ link: { accountId }, keyHash }) => {
        const key = await services.accounts.revealKey(accountId, { expectedKeyHash: keyHash });
        if (key === null) throw noKeyToShow();
        return key;
      },
    );
    context.body = { api_key: apiKey } satisfies RevealedApiKey;
  };
}

const findUsable: Check<KeyTarget> = async (services, context) => {
  const link = await findLink(services, context);
  await openLink(services, link);
  return await withKey(services, link);
};

export const requestRegenerateCode = (services: Services) =>
  requestConfirmation(services, 'regenerate', findUsable);

export function regenerateKeyOfApiAccount(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const apiKey = await confirm(
      services,
      context,
      { action: 'regenerate', check: findUsable },
      (target, late) => regenerate(services, target, late),
    );
    context.body = { api_key: apiKey, key_masked: maskApiKey(apiKey) } satisfies RegeneratedApiKey;
  };
}

async function regenerate(
  services: Services,
  { link, keyHash }: KeyTarget,
  late: AbortSignal,
): Promise<string> {
  const expected = { expectedKeyHash: keyHash };
  const apiKey = await generateKey(() => replaceKey(services, link.accountId, expected, late));
  // Another call has replaced the key meanwhile, and its caller was given a key that must not die at once.
  if (apiKey === null) throw refuseMailedCode();
  return apiKey;
}
