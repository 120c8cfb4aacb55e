import { randomInt, randomUUID } from 'node:crypto';
import type { ExecutionContext } from 'ava';
import {
  EmailCodeStore,
  type CodePurpose,
  type IssuedCode,
} from '../../api/account-area/email-code-store.ts';
import { Limits, type WebLimitName } from '../../api/account-area/limits.ts';
import { readErrorCode } from './read-error.ts';
import type { TestStack } from './stack.ts';
import type { WebClient } from './web-client.ts';

/** An email address that no other test uses. */
export const createEmail = (): string => `user-${randomUUID()}@example.com`;

/** A random client address, as limits are per address. For stacks with TRUST_PROXY=on. */
export const createAddress = (): string => `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}`;

export const from = (address: string): Record<string, string> => ({ 'x-forwarded-for': address });

/** Issues a code as the api does, without its mail. */
export async function issueCode(
  { redis, config }: TestStack,
  email: string,
  purpose: CodePurpose = 'signup',
  subject = '',
): Promise<IssuedCode> {
  return await new EmailCodeStore(redis, config.masterKey).create({ purpose, email, subject });
}

export interface VerifyOptions {
  readonly rememberMe?: boolean;
  readonly timezone?: string;
  readonly endOtherSessions?: boolean;
}

export async function verifyCode(
  client: WebClient,
  { challengeId, code }: Pick<IssuedCode, 'challengeId' | 'code'>,
  { rememberMe, timezone, endOtherSessions }: VerifyOptions = {},
): Promise<Response> {
  return await client.request('POST', '/auth/verify-code', {
    challenge_id: challengeId,
    code,
    ...(rememberMe === undefined ? {} : { remember_me: rememberMe }),
    ...(timezone === undefined ? {} : { timezone }),
    ...(endOtherSessions === undefined ? {} : { end_other_sessions: endOtherSessions }),
  });
}

/** Signs a browser in through the api, for tests that need no mail. Creates the user if necessary. */
export async function signIn(
  stack: TestStack,
  client: WebClient,
  email: string,
  options: VerifyOptions = {},
): Promise<Response> {
  const response = await verifyCode(client, await issueCode(stack, email), options);
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  await client.keepResult(response.clone());
  return response;
}

/** Records this many attempts against a limit, without making them. */
export async function countAttempts(
  { redis, config }: TestStack,
  name: WebLimitName,
  who: string,
  count: number,
): Promise<void> {
  const limits = new Limits(redis, config.masterKey);
  await Promise.all(Array.from({ length: count }, () => limits.count([{ name, who }])));
}

/** Asserts that a response is a rate-limit error with a valid retry-after. */
export async function checkLimited(
  t: ExecutionContext,
  response: Response,
  withinSeconds = 3_600,
): Promise<void> {
  t.is(await readErrorCode(response, 429), 'too_many_attempts');
  const seconds = Number(response.headers.get('retry-after'));
  t.true(Number.isInteger(seconds) && seconds >= 1 && seconds <= withinSeconds, `${seconds}`);
}
