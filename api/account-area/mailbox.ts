// decision 0069
interface MailboxRules {
  /** The domain under which all domains of the provider are counted. */
  readonly domain: string;
  /** Characters in front of the `@` that make no difference, and what to write instead of them. */
  readonly folds?: { readonly signs: RegExp; readonly to: string };
  /** What separates an alias from the name, in addition to `+`. */
  readonly separator?: string;
}

const gmail: MailboxRules = { domain: 'gmail.com', folds: { signs: /\./g, to: '' } };
const yandex: MailboxRules = { domain: 'yandex.ru', folds: { signs: /\./g, to: '-' } };
const proton: MailboxRules = { domain: 'proton.me', folds: { signs: /[._-]/g, to: '' } };
const icloud: MailboxRules = { domain: 'icloud.com' };
const yahoo: MailboxRules = { domain: 'yahoo.com', separator: '-' };

/** Providers that deliver several addresses to one mailbox, by domain. */
const providers: Readonly<Record<string, MailboxRules>> = {
  'gmail.com': gmail,
  'googlemail.com': gmail,
  'ya.ru': yandex,
  'yandex.ru': yandex,
  'yandex.com': yandex,
  'yandex.by': yandex,
  'yandex.kz': yandex,
  'yandex.ua': yandex,
  'proton.me': proton,
  'protonmail.com': proton,
  'pm.me': proton,
  'icloud.com': icloud,
  'me.com': icloud,
  'mac.com': icloud,
  'yahoo.com': yahoo,
};

/**
 * Returns the mailbox behind an address: addresses with the same result reach the same person. Used only to count
 * grants, because it is a guess where a provider is not listed: `+` separates an alias with nearly all of them.
 * @param email normalised
 */
export function findMailbox(email: string): string {
  const at = email.lastIndexOf('@');
  const address = email.slice(0, at);
  const domain = email.slice(at + 1);
  const rules = Object.hasOwn(providers, domain) ? providers[domain] : undefined;
  const name = cutAt(cutAt(address, '+'), rules?.separator);
  const plain = rules?.folds === undefined ? name : name.replace(rules.folds.signs, rules.folds.to);
  return `${plain === '' ? address : plain}@${rules?.domain ?? domain}`;
}

/** Removes an alias. A separator at the beginning is part of the name. */
function cutAt(text: string, separator: string | undefined): string {
  const index = separator === undefined ? -1 : text.indexOf(separator, 1);
  return index < 0 ? text : text.slice(0, index);
}
