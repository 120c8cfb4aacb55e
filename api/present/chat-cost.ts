import { toRubNumber } from '../../shared/pricing/money.ts';

/** Quotes inside strings are escaped in JSON, so this only matches a key. The last match is the one in `usage`. */
const key = Buffer.from('"cost_request":');
const endsOfNumber = new Set(Buffer.from(',}'));

/** Sets the cost in a chat response's JSON. Returns the same buffer if nothing changes. */
export function withCost(answer: Buffer, costNano: bigint): Buffer {
  const at = answer.lastIndexOf(key);
  if (at < 0) return answer;
  const from = at + key.length;
  let to = from;
  while (to < answer.length && !endsOfNumber.has(answer[to]!)) to += 1;
  const cost = JSON.stringify(toRubNumber(costNano));
  if (answer.toString('latin1', from, to) === cost) return answer;
  return Buffer.concat([answer.subarray(0, from), Buffer.from(cost), answer.subarray(to)]);
}
