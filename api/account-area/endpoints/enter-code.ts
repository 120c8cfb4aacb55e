import { readTypedCode } from '../../../shared/encoding/typed-text.ts';
import { callerNetwork } from '../../http/callers/caller-network.ts';
import type { ApiContext } from '../../http/request/context.ts';
import type { Services } from '../../services.ts';
import type { AcceptedCode, ExpectedCode } from '../email-code-store.ts';
import { invalidMailedCode } from './fields.ts';

/**
 * Verifies a typed code against the mailed one. The per-network limit counts only wrong codes. Attempts with invalid or
 * expired challenges do not count: they reveal nothing, and must not lock out everyone behind one address. The error is
 * the same in all cases.
 * @throws AppError `invalid_code`, `too_many_attempts`, `service_unavailable`
 */
export async function enterCode(
  { web: { limits, emailCodes, users } }: Services,
  context: ApiContext,
  typed: { readonly challenge_id: string; readonly code: string },
  expected: ExpectedCode,
): Promise<AcceptedCode> {
  const wrongCodeLimits = [{ name: 'wrong-codes-network', who: callerNetwork(context.ip) }] as const;
  await limits.check(wrongCodeLimits);
  // The attempt may consume the code, and the action after it needs MongoDB.
  await users.checkReachable();
  const code = readTypedCode(typed.code);
  const entered = await emailCodes.verify(typed.challenge_id, code, expected);
  if (entered.outcome === 'right') return entered;
  if (entered.outcome === 'wrong') await limits.count(wrongCodeLimits);
  throw invalidMailedCode();
}
