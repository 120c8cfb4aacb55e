import type { MailTexts } from './mail-texts.ts';

const time = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });

const ignore = 'If you did not ask for it, ignore this mail: nobody can sign in without the code.';
const intruder =
  'If it was not you, somebody else may be signed in as you: sign in, end all other sessions, and replace the API keys of your accounts.';

export const textsEn: MailTexts = {
  signIn: (signInCase, service) => ({
    subject:
      signInCase === 'signup' ? `Your sign-up code for ${service}` : `Your sign-in code for ${service}`,
    heading: signInCase === 'signup' ? `Welcome to ${service}` : `Sign in to ${service}`,
    lead: {
      login: 'Enter this code on the page on which you asked for it:',
      signup: 'Enter this code to confirm your address and finish signing up:',
      'signup-of-known': 'You have signed up with this address before. Enter this code to sign in:',
    }[signInCase],
    advice: ignore,
  }),
  noAccount: (email, service, isSignUpOpen) => ({
    subject: `No account at ${service} under this address`,
    heading: 'There is no account under this address',
    lead:
      `Somebody asked for a code to sign in to ${service} as ${email}, but nobody has signed up with this address. ` +
      (isSignUpOpen
        ? 'To do so, choose “Sign up” on the sign-in page and enter this address again.'
        : 'If you have an account, sign in with the address that you signed up with. New accounts cannot be opened at the moment.'),
    advice: 'If it was not you, ignore this mail. Nothing has been opened or changed.',
  }),
  confirmation: (action, label) => ({
    subject: {
      unlink: 'Code to unlink an account',
      reveal: 'Code to show an API key',
      regenerate: 'Code to replace an API key',
    }[action],
    heading: { unlink: 'Unlink an account', reveal: 'Show an API key', regenerate: 'Replace an API key' }[
      action
    ],
    lead: {
      unlink: `Enter this code to unlink the account “${label}” from your profile. Its API key goes on working:`,
      reveal: `Enter this code to show the API key of the account “${label}”:`,
      regenerate: `Enter this code to replace the API key of the account “${label}”. The present key stops working at once:`,
    }[action],
    advice: intruder,
  }),
  notice: (event, label, service) => {
    const [heading, lead] = {
      'account-linked': ['An account was linked', `The account “${label}” was linked to your profile.`],
      'account-unlinked': [
        'An account was unlinked',
        `The account “${label}” was unlinked from your profile. Its API key goes on working.`,
      ],
      'key-revealed': ['An API key was shown', `The API key of the account “${label}” was shown in full.`],
      'key-regenerated': [
        'An API key was replaced',
        `The API key of the account “${label}” was replaced. The former key has stopped working.`,
      ],
      'sessions-ended': [
        'Sessions were ended',
        'Sessions of your profile were ended. Devices on which they were open have to sign in again.',
      ],
      'first-account': ['Your account is ready', `The account “${label}” was opened for you at ${service}.`],
    }[event] as [string, string];
    return { subject: heading, heading, lead, advice: `If it was you, there is nothing to do. ${intruder}` };
  },
  validity: (minutes) => `Valid for ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}. It works once.`,
  neverShare: 'Never tell the code to anybody: we do not ask for it.',
  when: 'When',
  address: 'IP address',
  device: 'Device',
  formatTime: (at) => `${time.format(at)} UTC`,
  sentBy: (service) => `This mail was sent automatically by ${service}.`,
  support: (email) => `Questions? Write to ${email}.`,
};
