import fc from 'fast-check';
import type { OperationId } from '../../../api/contract/operations.ts';
import {
  choice,
  day,
  flag,
  integer,
  meaningfulText,
  plainText,
  points,
  text,
  uuid,
  type BoundedField,
} from '../../support/bounded-values.ts';

/** `body.email`, `query.page`, `path.account_id` */
export type FieldName = `${'path' | 'query' | 'body'}.${string}`;

export interface Bounds {
  readonly fields: Readonly<Record<FieldName, BoundedField>>;
  /** A valid request; the account's id and the user's address are filled in. */
  readonly body?: Readonly<Record<string, unknown>>;
  /** The possible outcomes: `ok`, or error codes. */
  readonly outcomes: readonly string[];
}

/** Placeholder for the email address of the calling user. */
export const ownAddress = 'own@address';

const someUuid = '0f6d2c0a-51f4-4f0e-8a9b-2f3f5f0f6f11';

const local = fc.string({
  unit: fc.constantFrom('a', 'z', 'B', '0', '9', '_', '+', '-'),
  minLength: 1,
  maxLength: 64,
});
const mailDomains = [
  'b.co',
  'example.com',
  'EXAMPLE.com',
  'пример.рф',
  'ｅxample。com',
  `${'d'.repeat(63)}.com`,
];
const addresses = fc
  .tuple(local, fc.constantFrom(...mailDomains))
  .map(([name, domain]) => `${name}@${domain}`);
const zones = fc.constantFrom('UTC', 'Europe/Moscow', 'europe/moscow', ' Asia/Tokyo ');

const email = meaningfulText(3, 320, addresses, { isRequired: true });
const timezone = meaningfulText(1, 64, zones, { isRequired: true });
const label = (isRequired: boolean): BoundedField => plainText(1, 80, { isRequired });
const purpose = (isRequired: boolean): BoundedField => choice(['login', 'signup'], { isRequired });
const captchaText = (options: { isRequired?: boolean; isNullable?: boolean }): BoundedField =>
  text(20, 128, options);

const accountPath = { 'path.account_id': integer() } as const;
const confirmation: Bounds = {
  fields: {
    ...accountPath,
    'body.challenge_id': uuid({ isRequired: true }),
    'body.code': text(1, 32, { isRequired: true }),
  },
  body: { challenge_id: someUuid, code: '000000' },
  outcomes: ['invalid_code'],
};
const codeRequest: Bounds = {
  fields: { ...accountPath, 'body.email': email },
  body: { email: ownAddress },
  outcomes: ['ok', 'too_many_attempts'],
};

/** The bounds of every field of the account area, as specified. */
export const bounds = {
  getWebConfig: { fields: {}, outcomes: ['ok'] },
  createCaptcha: {
    fields: { 'body.purpose': purpose(true) },
    body: { purpose: 'login' },
    outcomes: ['ok'],
  },
  verifyCaptcha: {
    fields: {
      'body.challenge_id': captchaText({ isRequired: true }),
      'body.points': points({ min: 2, max: 5, limit: 10_000 }),
    },
    body: { challenge_id: 'c'.repeat(32), points: [1, 2, 3, 4].map((x) => ({ x, y: 0 })) },
    outcomes: ['ok'],
  },
  requestCode: {
    fields: {
      'body.email': email,
      'body.purpose': purpose(false),
      'body.captcha_token': captchaText({ isNullable: true }),
    },
    body: { email: ownAddress },
    outcomes: ['ok', 'too_many_attempts'],
  },
  verifyCode: {
    fields: {
      'body.challenge_id': uuid({ isRequired: true }),
      'body.code': text(1, 32, { isRequired: true }),
      'body.remember_me': flag(),
      'body.end_other_sessions': flag(),
      // Anything that is no name of a time zone is taken for UTC.
      'body.timezone': text(0, 1_024, { isNullable: true }),
    },
    body: { challenge_id: someUuid, code: '000000' },
    outcomes: ['invalid_code'],
  },
  getWebUser: { fields: {}, outcomes: ['ok'] },
  updateWebUser: {
    fields: { 'body.timezone': timezone },
    body: { timezone: 'UTC' },
    outcomes: ['ok'],
  },
  refreshSession: { fields: {}, outcomes: ['ok'] },
  logOut: { fields: {}, outcomes: ['ok'] },
  logOutEverywhere: { fields: {}, outcomes: ['ok'] },
  logOutOthers: { fields: {}, outcomes: ['ok'] },
  listSessions: { fields: {}, outcomes: ['ok'] },
  revokeSession: { fields: { 'path.session_id': uuid() }, outcomes: ['not_found'] },
  listApiAccounts: { fields: {}, outcomes: ['ok'] },
  linkApiAccount: {
    fields: { 'body.api_key': text(10, 512, { isRequired: true }), 'body.label': label(false) },
    body: { api_key: `mg-${'k'.repeat(43)}` },
    outcomes: ['invalid_api_key', 'too_many_attempts'],
  },
  createFirstApiAccount: {
    fields: { 'body.label': label(false) },
    body: { label: 'mine' },
    outcomes: ['account_exists'],
  },
  getApiAccount: { fields: accountPath, outcomes: ['ok'] },
  renameApiAccount: {
    fields: { ...accountPath, 'body.label': label(true) },
    body: { label: 'mine' },
    outcomes: ['ok'],
  },
  unlinkApiAccount: confirmation,
  requestUnlinkCode: codeRequest,
  requestRevealCode: codeRequest,
  revealApiKey: confirmation,
  redeemForApiAccount: {
    fields: { ...accountPath, 'body.code': text(1, 256, { isRequired: true }) },
    body: { code: '7KQM-9XFD-3TRW-M8PA-2VBH' },
    outcomes: ['invalid_code', 'account_banned'],
  },
  requestRegenerateCode: codeRequest,
  regenerateKeyOfApiAccount: confirmation,
  listRequestLogsOfApiAccount: {
    fields: { ...accountPath, 'query.page': integer({ min: 1 }) },
    outcomes: ['ok'],
  },
  listRefillLogsOfApiAccount: {
    fields: {
      ...accountPath,
      'query.page': integer({ min: 1 }),
      'query.page_size': integer({ min: 1, max: 100 }),
    },
    outcomes: ['ok'],
  },
  getStatsOfApiAccount: {
    fields: { ...accountPath, 'query.start_date': day(), 'query.end_date': day() },
    outcomes: ['ok'],
  },
} as const satisfies Partial<Record<OperationId, Bounds>>;
