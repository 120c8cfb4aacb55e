import type { RequestLogPage } from '../../../api/contract/request-logs.ts';
import { postJson } from '../../support/post-json.ts';
import { waitFor } from '../../support/wait-for.ts';
import type { Target } from './target.ts';

/** None of these is a valid proxy address. */
const texts = ['<script>alert(1)</script>', `x${'9'.repeat(8_000)}`, '203.0.113.7, nobody', '0x7f.1', 'ÿ'];

/** Sends requests with made-up proxy addresses. @returns the addresses stored for them in the request log */
export async function sendForwardedText({ url, apiKey }: Target): Promise<string[]> {
  const ids: string[] = [];
  for (const text of texts) {
    const body = { model: 'demo-echo', messages: [{ role: 'user', content: 'Hi' }] };
    const response = await postJson(`${url}/v1/chat/completions`, apiKey, body, { 'x-forwarded-for': text });
    ids.push(response.headers.get('x-request-id') ?? '');
    await response.text();
  }
  return await waitFor('the rows of all requests', async () => {
    const response = await fetch(`${url}/v1/users/request_logs`, {
      headers: { authorization: `Bearer ${apiKey}` },
    });
    const { items } = (await response.json()) as RequestLogPage;
    const rows = items.filter((item) => ids.includes(item.request_id));
    return rows.length === texts.length && rows.map((row) => row.user_ip);
  });
}
