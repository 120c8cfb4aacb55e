import type { Catalog } from '../../lib/messages.ts';

const messages = {
  search: 'Search the docs',
  searchShort: 'Search',
  found: { one: '{count} result', other: '{count} results' },
  tryIt: 'Try it: {title}',
  paid: 'This request is sent for real. It is charged to {account}, as with its key.',
  real: 'This request is sent for real, for {account}.',
  realPublic: 'This request is sent for real. It needs no account.',
  noAccount: 'You have no API account yet.',
  createAccount: 'Create one',
  signInFirst: 'Sign in to try this request.',
  body: 'Body (JSON)',
  exampleOf: 'Example',
  example_0: 'Response at once',
  example_1: 'Response as a stream',
  missing: 'This is needed.',
  notJson: 'Not JSON: {reason}',
  send: 'Send',
  stop: 'Stop',
  response: 'Response',
  status: 'Status {status}',
  firstByte: 'first byte after {time}',
  total: '{time} in all',
  responseHeaders: 'Response headers',
  truncated: 'Only the first 200 KB are shown.',
  stopped: 'Stopped.',
  broken: 'The connection broke off.',
} as const satisfies Catalog;

export default messages;
