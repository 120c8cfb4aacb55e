import { randomBytes } from 'node:crypto';
import { postJson } from '../../support/post-json.ts';
import type { Target } from './target.ts';

export interface CaptchaFlood extends Pick<Target, 'url'> {
  readonly requests: number;
  /** The first half of an IPv6 address, behind a trusted proxy; the second half is different in each request. */
  readonly network?: string;
}

/**
 * Requests captchas simultaneously, each from a different address in one network.
 * @returns the number of responses by status
 */
export async function floodCaptchas({
  url,
  requests,
  network = '2001:db8:0:1',
}: CaptchaFlood): Promise<ReadonlyMap<number, number>> {
  const statuses = new Map<number, number>();
  const requestCaptcha = async (): Promise<void> => {
    const host = randomBytes(8).toString('hex').match(/.{4}/g)!.join(':');
    const headers = { 'x-forwarded-for': `${network}:${host}` };
    const response = await postJson(
      `${url}/v1/web/auth/captcha/challenge`,
      null,
      { purpose: 'login' },
      headers,
    );
    await response.arrayBuffer();
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
  };
  await Promise.all(Array.from({ length: requests }, requestCaptcha));
  return statuses;
}
