import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Settings',

  profile: 'Profile',
  email: 'Email',
  emailNote: 'Codes and notices are sent here.',
  memberSince: 'Signed up',
  lastSignIn: 'Last sign-in',

  appearance: 'Language and region',
  language: 'Language',
  theme: 'Theme',
  timeZone: 'Time zone',
  findTimeZone: 'City, country or offset',
  timeZoneSaved: 'Time zone saved',
  now: 'It is {time} there.',
  useBrowserZone: 'Use this device’s',

  sessions: 'Sessions and devices',
  sessionsText: 'Everywhere you are signed in. If you do not recognise one, end it.',
  thisDevice: 'this device',
  unknownBrowser: 'Unknown browser',
  onSystem: '{browser} on {system}',
  lastUsed: 'Used {ago} from {address}',
  lastUsedNoAddress: 'Used {ago}',
  startedAt: 'Signed in {time}',
  endsAt: 'ends {time} unless used',
  end: 'End',
  endOne: 'End the session: {device}',
  ended: 'Session ended',
  endOthers: 'End all others',
  endOthersTitle: { one: 'End {count} other session?', other: 'End {count} other sessions?' },
  endOthersText: 'Everywhere but here, signing in needs a new code. API keys keep working.',
  othersEnded: 'All other sessions ended',
  onlyThis: 'You are signed in here only.',
} as const satisfies Catalog;

export default messages;
