import { toRubNumber } from '../encoding/money.ts';

/** Quotes inside JSON strings are escaped, so this only matches a key. The last match is the one in `usage`. */
const key = Buffer.from('"cost_request":');
const numberEnds = new Set(Buffer.from(',}'));

/** Sets the cost in a chat response's JSON. Returns the same buffer if nothing changes. */
export function withCost(response: Buffer, costNano: bigint): Buffer {
  const at = response.lastIndexOf(key);
  if (at < 0) return response;
  const from = at + key.length;
  let to = from;
  while (to < response.length && !numberEnds.has(response[to]!)) to += 1;
  const cost = JSON.stringify(toRubNumber(costNano));
  if (response.toString('latin1', from, to) === cost) return response;
  return Buffer.concat([response.subarray(0, from), Buffer.from(cost), response.subarray(to)]);
}
