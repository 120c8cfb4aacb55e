import type { RequestLogPage } from '../../../shared/contract/users.ts';
import { postJson } from '../../support/post-json.ts';
import { waitFor } from '../../support/wait-for.ts';
import type { Target } from './target.ts';

/** Nothing of this is an address that a proxy names. */
const texts = ['<script>alert(1)</script>', `x${'9'.repeat(8_000)}`, '203.0.113.7, nobody', '0x7f.1', 'ÿ'];

/** Sends requests that say they come from anywhere. @returns the addresses that the request log tells of them */
export async function sendForwardedText({ url, apiKey }: Target): Promise<string[]> {
  const ids: string[] = [];
  for (const text of texts) {
    const body = { model: 'demo-echo', messages: [{ role: 'user', content: 'Hi' }] };
    const answer = await postJson(`${url}/v1/chat/completions`, apiKey, body, { 'x-forwarded-for': text });
    ids.push(answer.headers.get('x-request-id') ?? '');
    await answer.text();
  }
  return await waitFor('the rows of all requests', async () => {
    const answer = await fetch(`${url}/v1/users/request_logs`, {
      headers: { authorization: `Bearer ${apiKey}` },
    });
    const { items } = (await answer.json()) as RequestLogPage;
    const rows = items.filter((item) => ids.includes(item.request_id));
    return rows.length === texts.length && rows.map((row) => row.user_ip);
  });
}
