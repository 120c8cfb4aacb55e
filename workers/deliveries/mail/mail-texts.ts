import type { ConfirmedAction, NoticeEvent } from '../../../shared/account-area/mail.ts';

/** The variant of a sign-in mail, which depends on its purpose and on whether the address belongs to a user. */
export type SignInCase = 'login' | 'signup' | 'signup-of-known';

/** The texts of one mail. Values in them are not escaped; the layout does that. */
export interface MailWording {
  readonly subject: string;
  readonly heading: string;
  readonly lead: string;
  /** What to do if the recipient did not request this. */
  readonly advice: string;
}

/** All texts in one language. `service` is the service's name, `label` the name that the user gave an account. */
export interface MailTexts {
  signIn(signInCase: SignInCase, service: string): MailWording;
  noProfile(email: string, service: string, isSignUpOpen: boolean): MailWording;
  confirmation(action: ConfirmedAction, label: string): MailWording;
  notice(event: NoticeEvent, label: string, service: string): MailWording;
  /** How long a code is valid. */
  validity(minutes: number): string;
  readonly neverShare: string;
  /** For a notice about an action that may not have completed. */
  readonly uncertain: string;
  readonly when: string;
  /** For a notice: the label of the address from which the action was made. */
  readonly address: string;
  /** For a code: the label of the address that requested it. */
  readonly requestedFrom: string;
  readonly device: string;
  readonly balance: string;
  /** Below which the owner of an account is told. */
  readonly threshold: string;
  /** In UTC. */
  formatTime(at: number): string;
  sentBy(service: string): string;
  support(email: string): string;
}
