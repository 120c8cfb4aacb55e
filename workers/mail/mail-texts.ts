import type { ConfirmedAction, NoticeEvent } from '../../shared/web/mail.ts';

/** Which mail with a sign-in code goes out, by its purpose and by whether the address has a user. */
export type SignInCase = 'login' | 'signup' | 'signup-of-known';

/** The words of one mail. Values in them are not escaped; the layout does that. */
export interface Words {
  readonly subject: string;
  readonly heading: string;
  readonly lead: string;
  /** What to do if the reader did not ask for this. */
  readonly advice: string;
}

/** All words of a language. `service` is the service's name, `label` the name that its user gave an account. */
export interface MailTexts {
  signIn(signInCase: SignInCase, service: string): Words;
  noProfile(email: string, service: string, isSignUpOpen: boolean): Words;
  confirmation(action: ConfirmedAction, label: string): Words;
  notice(event: NoticeEvent, label: string, service: string): Words;
  /** How long a code holds. */
  validity(minutes: number): string;
  readonly neverShare: string;
  /** Of a notice about something that may not have been completed. */
  readonly uncertain: string;
  readonly when: string;
  /** Of a notice: where the action came from. */
  readonly address: string;
  /** Of a code: the address that asked for it. */
  readonly requestedFrom: string;
  readonly device: string;
  /** In UTC. */
  formatTime(at: number): string;
  sentBy(service: string): string;
  support(email: string): string;
}
