import { toRubNumber } from '../../shared/pricing/money.ts';

/** Quotes within a text are escaped in JSON: so it stands for nothing but a key, and that of `usage` comes last. */
const key = Buffer.from('"cost_request":');
const endsOfNumber = new Set(Buffer.from(',}'));

/** The JSON of a chat's answer with this as its cost; the same bytes where it says so already. */
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
