import type { MailTexts } from './mail-texts.ts';

const time = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });

const ignore = 'If you did not request it, ignore this email: nobody can sign in without the code.';
const intruder =
  'If this was not you, someone else may be signed in as you. Sign in, end all other sessions and replace the API keys of your accounts.';
const nothingToDo = `If this was you, there is nothing to do. ${intruder}`;

export const textsEn: MailTexts = {
  signIn: (signInCase, service) => ({
    subject:
      signInCase === 'signup' ? `Your sign-up code for ${service}` : `Your sign-in code for ${service}`,
    heading: signInCase === 'signup' ? `Welcome to ${service}` : `Sign in to ${service}`,
    lead: {
      login: 'Enter this code on the page where you requested it:',
      signup: 'Enter this code to confirm your address and finish signing up:',
      'signup-of-known': 'You have already signed up with this address. Enter this code to sign in:',
    }[signInCase],
    advice: ignore,
  }),
  noProfile: (email, service, isSignUpOpen) => ({
    subject: `No ${service} profile for this address`,
    heading: 'There is no profile for this address',
    lead:
      `Someone requested a code to sign in to ${service} as ${email}, but nobody has signed up with this address. ` +
      (isSignUpOpen
        ? 'To sign up, choose “Sign up” on the sign-in page and enter this address again.'
        : 'If you have a profile, sign in with the address that you signed up with. Nobody can sign up at the moment.'),
    advice: 'If this was not you, ignore this email. Nothing has been created or changed.',
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
      unlink: `The API key of “${label}” will keep working. Enter this code to unlink the account from your profile:`,
      reveal: `Enter this code to show the API key of the account “${label}”:`,
      regenerate: `The current API key of “${label}” will stop working immediately. Enter this code to replace it:`,
    }[action],
    advice: intruder,
  }),
  notice: (event, label, service) => {
    const [heading, lead, advice = nothingToDo] = {
      'account-linked': ['An account was linked', `The account “${label}” was linked to your profile.`],
      'account-unlinked': [
        'An account was unlinked',
        `The account “${label}” was unlinked from your profile. Its API key keeps working.`,
        `${nothingToDo} To get the account back, link it again with its key, or contact support.`,
      ],
      'account-unlinked-by-support': [
        'An account was unlinked',
        `Support unlinked the account “${label}” from your profile. Its API key keeps working.`,
        'If you did not expect this, contact support.',
      ],
      'key-revealed': ['An API key was shown', `The API key of the account “${label}” was shown in full.`],
      'key-regenerated': [
        'An API key was replaced',
        `The API key of the account “${label}” was replaced. The previous key has stopped working.`,
      ],
      'sessions-ended': [
        'A session was ended for your security',
        'A session of your profile was ended because it seemed to be in use in two places. This can be an error of a page, or somebody may have copied your cookies.',
        'If you do not recognise the address above, sign in, end all other sessions and replace the API keys of your accounts.',
      ],
      'balance-low': [
        'Your balance is low',
        `The balance of “${label}” at ${service} has fallen below the amount that was set for it. Requests fail once it is used up.`,
        'Refill the balance. You receive this email once, until the balance has risen above that amount and falls again.',
      ],
      'first-account': ['Your account is ready', `The account “${label}” was created for you at ${service}.`],
    }[event] as [string, string, string?];
    return { subject: heading, heading, lead, advice };
  },
  validity: (minutes) => `Valid for ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}, for one use.`,
  uncertain: 'We could not confirm that this was completed. Check your accounts.',
  neverShare: 'Never share this code. We will never ask you for it.',
  when: 'When',
  address: 'IP address',
  requestedFrom: 'Requested from',
  device: 'Device',
  balance: 'Balance',
  threshold: 'Set amount',
  formatTime: (at) => `${time.format(at)} UTC`,
  sentBy: (service) => `This email was sent automatically by ${service}.`,
  support: (email) => `Questions? Write to ${email}.`,
};
