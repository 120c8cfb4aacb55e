import { randomBytes } from 'node:crypto';
import { postJson } from '../../support/post-json.ts';
import type { Target } from './target.ts';

export interface CaptchaFlood extends Pick<Target, 'url'> {
  readonly requests: number;
  /** The first half of an address of IPv6, behind a trusted proxy: the second half is another in each request. */
  readonly network?: string;
}

/**
 * Asks for captchas, all at once, from as many addresses of one network.
 * @returns how often each status came
 */
export async function floodCaptchas({
  url,
  requests,
  network = '2001:db8:0:1',
}: CaptchaFlood): Promise<ReadonlyMap<number, number>> {
  const statuses = new Map<number, number>();
  const ask = async (): Promise<void> => {
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
  await Promise.all(Array.from({ length: requests }, ask));
  return statuses;
}
