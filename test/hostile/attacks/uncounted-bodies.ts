import { randomBytes } from 'node:crypto';
import { postJson } from '../../support/post-json.ts';
import type { Target } from './target.ts';

export interface UncountedBodiesOptions extends Target {
  /** A chat model that reads so much. */
  readonly model: string;
  readonly requests: number;
  readonly atOnce: number;
}

/** Just below what is asked about before it is read. */
const textBytes = 60_000;

/**
 * Sends bodies that are just small enough to be read without a question, full of what takes longest to count: letters at
 * random.
 * @returns how often each status came
 */
export async function sendUncountedBodies({
  url,
  apiKey,
  model,
  requests,
  atOnce,
}: UncountedBodiesOptions): Promise<ReadonlyMap<number, number>> {
  const content = randomBytes((textBytes / 4) * 3).toString('base64url');
  const body = JSON.stringify({ model, max_tokens: 1, messages: [{ role: 'user', content }] });
  const statuses = new Map<number, number>();
  let left = requests;
  const send = async (): Promise<void> => {
    for (; left > 0;) {
      left -= 1;
      const response = await postJson(`${url}/v1/chat/completions`, apiKey, body);
      await response.arrayBuffer();
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, send));
  return statuses;
}
