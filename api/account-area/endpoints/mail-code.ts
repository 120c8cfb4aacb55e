import type { EmailCodeRequested } from '../../contract/web-auth.ts';
import type { Mail } from '../../../shared/account-area/mail.ts';
import type { Services } from '../../services.ts';
import type { NewCode } from '../email-code-store.ts';

/**
 * Creates a code and queues its mail.
 * @throws AppError `service_unavailable`; the code is then invalid
 */
export async function mailCode(
  { web: { emailCodes, mails } }: Services,
  request: NewCode,
  write: (code: { readonly code: string; readonly expiresAt: number }) => Mail,
): Promise<EmailCodeRequested> {
  const { challengeId, code, expiresAt } = await emailCodes.create(request);
  try {
    await mails.add(write({ code, expiresAt: expiresAt.getTime() }));
  } catch (error) {
    await emailCodes.discard(challengeId).catch(() => {
      // The code was never sent and expires by itself.
    });
    throw error;
  }
  return { challenge_id: challengeId, expires_at: expiresAt.toISOString() };
}
