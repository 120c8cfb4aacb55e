import type { TextFormat, TextFormats } from '../../contract/describe-issue.ts';
import { formatRub, maxBalanceNano, parseRub } from '../../encoding/money.ts';
import { findRedisUrlProblem } from '../redis/redis-urls.ts';
import { isDecodable } from '../runtime/is-decodable.ts';
import { isColor } from './page-config.ts';
import { isMailAddress, readMailSender } from './mail-sender.ts';

function isUrl(value: string, schemes: readonly string[]): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, hostname } = new URL(value);
  return schemes.includes(protocol) && hostname !== '';
}

/** The URL is published to callers, and paths are appended to it. */
function isServerUrl(value: string): boolean {
  if (!isUrl(value, ['http:', 'https:'])) return false;
  const { username, password, search, hash } = new URL(value);
  return [username, password, search, hash].every((part) => part === '');
}

/** MongoDB separates hosts with commas, which `URL` does not accept. The driver checks everything after the hosts. */
function isMongoUrl(value: string): boolean {
  const [, hosts] = /^mongodb(?:\+srv)?:\/\/(?:[^/?#@]*@)?([^/?#@]+)(?:[/?].*)?$/.exec(value) ?? [];
  const isHost = (host: string): boolean => host.endsWith('.sock') || URL.canParse(`http://${host}`);
  return hosts?.split(',').every(isHost) ?? false;
}

/** The URL may contain a user name and a password. */
function isWebhookUrl(value: string): boolean {
  if (!isUrl(value, ['http:', 'https:'])) return false;
  const { username, password } = new URL(value);
  return [username, password].every(isDecodable);
}

/** Rejects a path or options because they would be ignored. */
function isSmtpUrl(value: string): boolean {
  if (!isUrl(value, ['smtp:', 'smtps:'])) return false;
  const { username, password, pathname, search, hash } = new URL(value);
  return (
    [username, password].every(isDecodable) && ['', '/'].includes(pathname) && search === '' && hash === ''
  );
}

function isRoubles(value: string): boolean {
  const nano = parseRub(value);
  return nano !== null && nano >= 0n && nano <= maxBalanceNano;
}

/** One line that has something to see. */
function isVisibleText(value: string): boolean {
  return value.trim() !== '' && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(value);
}

/** The description never includes the address: it may contain a password. */
function createFormat(example: string, isValid: (value: string) => boolean): TextFormat {
  const describe = (value: string): string => {
    const hint = value.includes('@')
      ? '. Characters such as #, / and @ in a password must be percent-encoded'
      : '';
    return `must be an address such as ${example}${hint}`;
  };
  return { isValid, describe };
}

/** Formats of addresses and other text in environment variables. */
export const addressFormats = {
  'http-url': createFormat('https://gateway.example', (value) => isUrl(value, ['http:', 'https:'])),
  'webhook-url': createFormat('https://hooks.example.com/gateway', isWebhookUrl),
  'server-url': {
    isValid: isServerUrl,
    describe: () =>
      'must be an address such as https://gateway.example, without a user name, a password, a query or a fragment: ' +
      'it is shown to callers',
  },
  'redis-urls': {
    isValid: (value) => findRedisUrlProblem(value) === null,
    describe: (value) => findRedisUrlProblem(value)!,
  },
  'smtp-url': createFormat('smtps://user:password@mail.example.com:465', isSmtpUrl),
  'mail-address': {
    isValid: isMailAddress,
    describe: () => 'must be a mail address such as support@example.com',
  },
  'mail-sender': {
    isValid: (value) => readMailSender(value) !== null,
    describe: () =>
      'must be one line with a name and an address, such as Model Gateway <no-reply@example.com>',
  },
  roubles: {
    isValid: isRoubles,
    describe: () => `must be an amount of roubles from 0 to ${formatRub(maxBalanceNano)}, such as 100.50`,
  },
  color: {
    isValid: isColor,
    describe: () => 'must be a colour such as #0c6b66',
  },
  'visible-text': {
    isValid: isVisibleText,
    describe: () => 'must be one line of visible text, without control characters',
  },
  'mongodb-url': createFormat('mongodb://user:password@10.0.0.1:27017/model_gateway', isMongoUrl),
} as const satisfies TextFormats;
