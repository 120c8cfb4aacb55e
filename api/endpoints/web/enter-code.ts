import { callerNetwork } from '../../callers/caller-network.ts';
import type { ApiContext } from '../../middleware/request-context.ts';
import type { Services } from '../../services.ts';
import type { AcceptedCode, ExpectedCode } from '../../web/email-code-store.ts';
import { refuseMailedCode } from './fields.ts';

/**
 * Compares what was typed with the code that was mailed. Only wrong codes count against a network: challenges that were
 * made up, or have ended, give nothing away, and must not lock out everybody behind one address. The response is the same
 * for all of them.
 * @throws AppError `invalid_code`, `too_many_attempts`, `service_unavailable`
 */
export async function enterCode(
  { web: { limits, emailCodes, users } }: Services,
  context: ApiContext,
  typed: { readonly challenge_id: string; readonly code: string },
  expected: ExpectedCode,
): Promise<AcceptedCode> {
  const guesses = [{ name: 'wrong-codes-network', who: callerNetwork(context.ip) }] as const;
  await limits.check(guesses);
  // The attempt uses the code up, and what it is good for takes MongoDB.
  await users.checkReachable();
  // Mail programs and people put spaces between the digits.
  const code = typed.code.replaceAll(/\s/g, '');
  const entered = await emailCodes.verify(typed.challenge_id, code, expected);
  if (entered.outcome === 'right') return entered;
  if (entered.outcome === 'wrong') await limits.count(guesses);
  throw refuseMailedCode();
}
