import { postJson } from '../../support/post-json.ts';
import type { Target } from './target.ts';

/** More than the maximum number of function arguments, and fewer than the maximum number of values in a body. */
const keys = 190_000;

/** Sends bodies with very many fields and one error. @returns the statuses of the responses */
export async function sendManyKeys({ url, apiKey }: Target): Promise<number[]> {
  const fields = Array.from({ length: keys }, (_, i) => `"k${i}":0`).join(',');
  const bodies = [
    `{"model":7,"messages":[{"role":"user","content":"Hi"}],${fields}}`,
    `{"model":"demo-echo","messages":7,"metadata":{${fields}}}`,
  ];
  const statuses: number[] = [];
  for (const body of bodies) {
    const response = await postJson(`${url}/v1/chat/completions`, apiKey, body);
    statuses.push(response.status);
    await response.text();
  }
  return statuses;
}
