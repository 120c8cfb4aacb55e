import accountTexts from '../../admin/accounts/texts.en.ts';
import type { Catalog } from '../../lib/messages.ts';

const messages = {
  ...accountTexts,
  title: 'Accounts',
  create: 'Create an account',
  search: 'Search accounts',
  searchPlaceholder: 'Name, email, note, id or API key',
  searchHint:
    'Finds the beginnings of words in names, addresses and notes, and of ids from four characters on.',
  noAccounts: 'No accounts yet',
  noAccountsText: 'Create one, or wait for the first customer who signs up.',
  noneFound: 'Nothing begins with “{search}”',
  noneFoundText:
    'All words must match the beginning of a word in the name, the address or the note, or the id. The middle of a word is not found.',
  anyState: 'All',
  onlyBanned: 'Banned',
  notBanned: 'Not banned',
  ban: 'Ban',
  clear: 'Show all accounts',
  noneOfFilter: 'No account is like this',
  account: 'Account',
  id: 'Id',
  state: 'State',
  balance: 'Balance',
  freeRequests: 'Free requests',
  limits: 'Limits',
  lastUsed: 'Last request',
  never: 'never',
  created: 'Created',
  tpm: '{tokens} tokens/min',
  createTitle: 'New account',
  moreSettings: 'Limits and other settings',
  byDefault: 'by default',
  createdTitle: 'The account is ready',
  createdText: 'This is the key of {name}:',
  createdAlready:
    'This dialog has already created an account with other fields: the response was lost. Close it and look at the list.',
  rpm: '{count}/min',
  models: { one: '{count} model', other: '{count} models' },
  addresses: { one: '{count} address', other: '{count} addresses' },
} as const satisfies Catalog;

export default messages;
