/** Mails of the account area. Plain data: the worker decides on the wording. */
export type Mail = SignInCodeMail | ConfirmationCodeMail | NoticeMail;

export const mailLanguages = ['ru', 'en'] as const;
export type MailLanguage = (typeof mailLanguages)[number];

/** Where a request came from, if known. */
export interface MailOrigin {
  readonly address?: string | null;
  /** Such as `Firefox on Linux`. */
  readonly device?: string | null;
}

/**
 * Whether the address has a user is decided when the mail is sent, so that the api's response time does not reveal
 * it.
 */
export interface SignInCodeMail extends MailOrigin {
  readonly kind: 'sign-in-code';
  /** Validated and normalised. */
  readonly email: string;
  readonly purpose: 'login' | 'signup';
  readonly code: string;
  /** Milliseconds since 1970. The mail is not sent after that. */
  readonly expiresAt: number;
  readonly language: MailLanguage;
}

export type ConfirmedAction = 'unlink' | 'reveal' | 'regenerate';

export interface ConfirmationCodeMail extends MailOrigin {
  readonly kind: 'confirmation-code';
  readonly email: string;
  readonly action: ConfirmedAction;
  readonly accountLabel: string;
  readonly code: string;
  /** Milliseconds since 1970. The mail is not sent after that. */
  readonly expiresAt: number;
  readonly language: MailLanguage;
}

export type NoticeEvent =
  | 'account-linked'
  | 'account-unlinked'
  | 'account-unlinked-by-support'
  | 'key-revealed'
  | 'key-regenerated'
  | 'sessions-ended'
  | 'first-account'
  | 'balance-low';

export interface NoticeMail extends MailOrigin {
  readonly kind: 'notice';
  readonly email: string;
  readonly event: NoticeEvent;
  readonly accountLabel: string | null;
  /**
   * True by default. False if it is unknown whether the action completed, because the process died or did not receive
   * the result.
   */
  readonly isCertain?: boolean;
  /** Of a balance that has fallen below the threshold of its account, in roubles. */
  readonly amounts?: { readonly balance: string; readonly threshold: string };
  /** When it happened, in milliseconds since 1970. */
  readonly at: number;
  readonly language: MailLanguage;
}

/** How long the delivery of a notice is retried. */
const noticeLifetimeMs = 3 * 24 * 60 * 60 * 1_000;

/** Returns when a mail stops being useful, in milliseconds since 1970. */
export function findMailExpiry(mail: Mail): number {
  return mail.kind === 'notice' ? mail.at + noticeLifetimeMs : mail.expiresAt;
}
