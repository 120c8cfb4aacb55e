import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Sign in',
  titleWithSignup: 'Sign in or sign up',
  intro: 'We email you a code. There is no password to remember.',
  introWithSignup:
    'We email you a code. There is no password, and if you are new, your profile is created with it.',
  sessionEnded: 'Your session has ended. Sign in to continue where you were.',
  email: 'Email address',
  emailMissing: 'Enter your email address.',
  emailWrong: 'This is not an email address. It looks like name@example.com.',
  continue: 'Continue',
  acceptTerms: 'By continuing you accept the {terms}.',
  acceptBoth: 'By continuing you accept the {terms} and the {privacy}.',
  terms: 'terms of service',
  privacy: 'privacy policy',
  captchaTitle: 'One quick check',
  captchaTask: 'Click these four icons in the picture below, in this order:',
  promptImage: 'Four icons to find, in order',
  captchaPlace: 'Picture with eight icons. Move the marker with the arrow keys and place a point with Enter.',
  captchaKeys:
    'By keyboard: arrow keys move the marker, with Shift in small steps. Enter places a point, Backspace takes it back.',
  points: '{count} of {total} points placed',
  undo: 'Undo',
  otherPicture: 'Another picture',
  captchaWrong: 'Those were not the icons. Here is a new picture.',
  captchaChecking: 'Checking …',
  cannotSee: 'I cannot see the picture',
  skipHint: 'You can go on without it. Fewer codes are then sent in an hour.',
  askSupport: 'If you cannot see the picture, write to {email}.',
  codeTitle: 'Check your mail',
  codeMinutes: {
    one: 'It is valid for {count} minute.',
    other: 'It is valid for {count} minutes.',
  },
  codeSentTo: 'We have sent a six-digit code to {email}.',
  spam: 'Nothing there? Look in the spam folder, or send another code.',
  rememberMe: 'Keep me signed in on this device for 30 days',
  endOthers: 'Sign out everywhere else',
  endOthersHint: 'Choose this if somebody else may have signed in as you.',
  submit: 'Sign in',
  resend: 'Send another code',
  resent: 'A new code is on its way.',
  changeEmail: 'Use another address',
} as const satisfies Catalog;

export default messages;
