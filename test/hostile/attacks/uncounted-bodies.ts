import { randomBytes } from 'node:crypto';
import { postJson } from '../../support/post-json.ts';
import type { Target } from './target.ts';

export interface UncountedBodiesOptions extends Target {
  /** A chat model with a context large enough for the text. */
  readonly model: string;
  readonly requests: number;
  readonly concurrency: number;
}

/** Just below the size from which the account is checked before the body is read. */
const textBytes = 60_000;

/**
 * Sends bodies just small enough to be read without checking the account, full of the text that is slowest to tokenize:
 * random characters.
 * @returns the number of responses by status
 */
export async function sendUncountedBodies({
  url,
  apiKey,
  model,
  requests,
  concurrency,
}: UncountedBodiesOptions): Promise<ReadonlyMap<number, number>> {
  const content = randomBytes((textBytes / 4) * 3).toString('base64url');
  const body = JSON.stringify({ model, max_tokens: 1, messages: [{ role: 'user', content }] });
  const statuses = new Map<number, number>();
  let remaining = requests;
  const send = async (): Promise<void> => {
    for (; remaining > 0;) {
      remaining -= 1;
      const response = await postJson(`${url}/v1/chat/completions`, apiKey, body);
      await response.arrayBuffer();
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, send));
  return statuses;
}
