import { replaceKey } from '../../../shared/accounts/replace-key.ts';
import { maskApiKey } from '../../../shared/accounts/credentials.ts';
import { AppError, invalidField } from '../../../shared/contract/errors.ts';
import { operations } from '../../contract/operations.ts';
import type {
  RegeneratedApiKey,
  RevealedApiKey,
  SensitiveActionCodeRequest,
  SensitiveActionConfirm,
} from '../../contract/web-confirmations.ts';
import type { ConfirmedAction } from '../../../shared/account-area/mail.ts';
import { unlinkAccount } from '../../../shared/account-area/unlink-account.ts';
import type { WebLink } from '../../../shared/account-area/web-models.ts';
import { callerNetwork } from '../../http/callers/caller-network.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { limitChanges } from '../steps/limit-changes.ts';
import { parseBody } from '../../http/middleware/parse-body.ts';
import { inDatabaseTurn } from '../../http/request/in-database-turn.ts';
import type { Services } from '../../services.ts';
import { generateKey } from '../../endpoints/generate-key.ts';
import { languageOf } from '../../http/request/language-of.ts';
import { originOf } from './caller.ts';
import { enterCode } from './enter-code.ts';
import { readEmail, invalidMailedCode } from './fields.ts';
import { findUser } from './find-user.ts';
import { accountGone, noSuchLink } from '../session-errors.ts';
import { findLink, openLink, type LinkContext } from './linked-account.ts';
import { mailCode } from './mail-code.ts';
import { record, subjectOf } from './record.ts';
import { changeAsUser } from './steps.ts';

/** Names of completed actions in the audit log. */
const auditActionOf = {
  unlink: 'account-unlinked',
  reveal: 'key-revealed',
  regenerate: 'key-regenerated',
} as const;

/** The account that an action applies to. */
interface Target {
  readonly link: WebLink;
  /** Hash of the account's key; null if the action is not about the key. */
  readonly keyHash: string | null;
}

interface WithBody<B> {
  readonly state: { readonly body: B };
}

/** Checks the account before a code is mailed, and again before the action runs. */
type Check<T extends Target> = (services: Services, context: LinkContext) => Promise<T>;

/**
 * Binds a code to one user and account, and for actions on the key also to the current key. So once the key is
 * replaced, codes that an attacker requested earlier are useless.
 */
const subjectOfCode = ({ link: { userId, _id }, keyHash }: Target): string =>
  [userId, _id, ...(keyHash === null ? [] : [keyHash])].join(':');

const createRequestConfirmation = (action: ConfirmedAction, check: Check<Target>) => (services: Services) => {
  const { limits } = services.web;
  return async (context: LinkContext & WithBody<SensitiveActionCodeRequest>): Promise<void> => {
    const email = readEmail(context.state.body.email);
    await inDatabaseTurn(services, context, async () => {
      const target = await check(services, context);
      const user = await findUser(services, context);
      if (user.email !== email) {
        throw invalidField(['body', 'email'], 'must be the email address you are signed in with', {
          msgRu: 'укажите адрес, с которым вы вошли',
        });
      }
      await limits.take([
        // Limited per user. Otherwise anyone could block confirmations by requesting sign-in codes for this mailbox.
        { name: 'confirmation-codes-user', who: user._id },
        { name: 'mailed-codes-network', who: callerNetwork(context.ip) },
      ]);
      const language = languageOf(context);
      const codeRequest = { purpose: action, email, subject: subjectOfCode(target) };
      context.body = await mailCode(services, codeRequest, (code) => ({
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
};

/** Verifies the mailed code, then runs the action, records it and mails a notice. */
async function confirm<T extends Target, R>(
  services: Services,
  context: LinkContext & WithBody<SensitiveActionConfirm>,
  { action, check }: { readonly action: ConfirmedAction; readonly check: Check<T> },
  work: (target: T, timedOut: AbortSignal) => Promise<R>,
): Promise<R> {
  const { links } = services.web;
  const typed = context.state.body;
  return await inDatabaseTurn(services, context, async (timedOut) => {
    const target = await check(services, context);
    await enterCode(services, context, typed, { purposes: [action], subject: subjectOfCode(target) });
    const { link } = target;
    return await record(
      services,
      context,
      { action: auditActionOf[action], ...subjectOf(link) },
      async () => {
        // MongoDB may have been slow to store the event, and support may have unlinked the account in the meantime.
        if ((await links.find(link.userId, link._id)) === null) throw noSuchLink(link._id);
        return await work(target, timedOut);
      },
    );
  });
}

const findLinked: Check<Target> = async (services, context) => ({
  link: await findLink(services, context),
  keyHash: null,
});

/** A target with its account's current key. */
interface KeyTarget extends Target {
  readonly keyHash: string;
}

async function withKey({ accounts }: Services, link: WebLink): Promise<KeyTarget> {
  const account = await accounts.findById(link.accountId);
  if (account === null) throw accountGone();
  return { link, keyHash: account.keyHash };
}

export const requestUnlinkCode = defineEndpoint(
  operations.requestUnlinkCode,
  [...changeAsUser, limitChanges, parseBody],
  createRequestConfirmation('unlink', findLinked),
);

export const unlinkApiAccount = defineEndpoint(
  operations.unlinkApiAccount,
  [...changeAsUser, limitChanges, parseBody],
  (services) => async (context) => {
    await confirm(services, context, { action: 'unlink', check: findLinked }, async ({ link }) => {
      if (!(await unlinkAccount(services.web, link))) throw noSuchLink(link._id);
    });
    context.status = 204;
  },
);

/** Also runs before a code is mailed, because the code would be useless if there is no key to show. */
const findRevealable: Check<KeyTarget> = async (services, context) => {
  if (!services.config.revealsKeys) throw noKeyToShow();
  return await withKey(services, await findLink(services, context));
};

const noKeyToShow = (): AppError =>
  new AppError('not_found', {
    message:
      'This service does not store keys in a form that can be shown. Your key still works; if you have lost it, replace it.',
    messageRu:
      'Сервис не хранит ключи в виде, в котором их можно показать. Ключ продолжает работать; если вы его потеряли, замените его.',
  });

export const requestRevealCode = defineEndpoint(
  operations.requestRevealCode,
  [...changeAsUser, limitChanges, parseBody],
  createRequestConfirmation('reveal', findRevealable),
);

export const revealApiKey = defineEndpoint(
  operations.revealApiKey,
  [...changeAsUser, limitChanges, parseBody],
  (services) => async (context) => {
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
  },
);

const findUsable: Check<KeyTarget> = async (services, context) => {
  const link = await findLink(services, context);
  await openLink(services, link);
  return await withKey(services, link);
};

export const requestRegenerateCode = defineEndpoint(
  operations.requestRegenerateCode,
  [...changeAsUser, limitChanges, parseBody],
  createRequestConfirmation('regenerate', findUsable),
);

export const regenerateKeyOfApiAccount = defineEndpoint(
  operations.regenerateKeyOfApiAccount,
  [...changeAsUser, limitChanges, parseBody],
  (services) => async (context) => {
    const apiKey = await confirm(
      services,
      context,
      { action: 'regenerate', check: findUsable },
      (target, timedOut) => regenerate(services, target, timedOut),
    );
    context.body = { api_key: apiKey, key_masked: maskApiKey(apiKey) } satisfies RegeneratedApiKey;
  },
);

async function regenerate(
  services: Services,
  { link, keyHash }: KeyTarget,
  timedOut: AbortSignal,
): Promise<string> {
  const expected = { expectedKeyHash: keyHash };
  const apiKey = await generateKey(() => replaceKey(services, link.accountId, expected, timedOut));
  // Another call has already replaced the key. The key that it returned must stay valid.
  if (apiKey === null) throw invalidMailedCode();
  return apiKey;
}
