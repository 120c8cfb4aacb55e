import { createKey } from './create-key.ts';
import { readSelectedAccount } from './selected-account.ts';

/** The last request of each kind that was not answered, perhaps because the connection was lost on the way back. */
const unanswered = new Map<string, { readonly text: string; readonly key: string }>();

/**
 * Sends a request with an `Idempotency-Key`: until it is answered, the same request of the same account has the same key,
 * so a double click, or a repetition after a lost connection, is charged once. Not for streams, which a key would keep
 * running when they are stopped.
 * @param kind of the request, such as where it is sent from
 * @param body what it consists of
 */
export async function sendOnce<Result>(
  kind: string,
  body: object,
  send: (header: { readonly 'Idempotency-Key': string }) => Promise<Result>,
): Promise<Result> {
  const text = JSON.stringify([readSelectedAccount(), body]);
  const known = unanswered.get(kind);
  const key = known?.text === text ? known.key : createKey();
  unanswered.set(kind, { text, key });
  const result = await send({ 'Idempotency-Key': key });
  if (unanswered.get(kind)?.key === key) unanswered.delete(kind);
  return result;
}
