import type { EmailCodeRequested } from '../../../shared/contract/web-auth.ts';
import type { Mail } from '../../../shared/web/mail.ts';
import type { Services } from '../../services.ts';
import type { CodeRequest } from '../../web/email-code-store.ts';

/**
 * Makes a code and queues the mail that brings it.
 * @throws AppError `service_unavailable`: then the code is good for nothing
 */
export async function mailCode(
  { web: { emailCodes, mails } }: Services,
  what: CodeRequest,
  write: (code: { readonly code: string; readonly expiresAt: number }) => Mail,
): Promise<EmailCodeRequested> {
  const { challengeId, code, expiresAt } = await emailCodes.create(what);
  try {
    await mails.add(write({ code, expiresAt: expiresAt.getTime() }));
  } catch (error) {
    await emailCodes.discard(challengeId).catch(() => {
      // It expires by itself, and nobody was told of it.
    });
    throw error;
  }
  return { challenge_id: challengeId, expires_at: expiresAt.toISOString() };
}
