import { maxCallsPerAccount, type Tag } from '../../shared/contract/operation.ts';

/** The text of the OpenAPI document that applies to all operations. */
export const overview =
  'OpenAI’s API for chat, images and embeddings, paid from a prepaid balance in roubles. Any OpenAI client works ' +
  'once it is given the address, which ends in `/v1`, and a key.\n\n' +
  'Every answer carries `x-request-id`. An unknown address, or one with a doubled slash, is a 404 `not_found`; paths ' +
  'are case-sensitive. A method that an address does not take is a 405, one that no address takes a 501, both ' +
  '`method_not_allowed`. Integers in a query are decimal digits, and each parameter is given once.\n\n' +
  'Malformed HTTP requests get the same error format, with the closest code, and their connection is closed: ' +
  '`validation_failed` for 400 (malformed, or without exactly one `Host`), 417 (an unknown `Expect`) and 505 ' +
  '(another version of HTTP), `payload_too_large` for 431 (headers) and 413 (extensions of chunks), ' +
  '`deadline_exceeded` for 408, `method_not_allowed` for 501. A server whose connections are all taken answers a further ' +
  'one with 503 `queue_full` and `retry-after`, and closes it.\n\n' +
  'Requests to models count against the account’s requests per minute once they passed validation, and reserve the ' +
  `most that they can cost until they end. Other calls with a key cost nothing; an account may have ${maxCallsPerAccount} ` +
  'of them under way at once at each server, and a further one is a 429. Fields of a request that are not described are accepted and ignored, ' +
  'misspelt ones too; no vendor is sent them.';

export const tagDescriptions: Record<Tag, string> = {
  Chat: 'Text from language models, with images, files and tools where the model takes them.',
  Images: 'Pictures from a prompt.',
  Embeddings: 'Vectors for search, clustering and comparison of texts.',
  Jobs:
    'Long work without an open connection. Send a chat, image or embedding request with `Prefer: respond-async`, and ask ' +
    'for the job later, or follow its events.',
  Models: 'What there is and what it costs. No key is needed.',
  Users: 'The account behind the key: its balance and limits, refills, history, and the key itself.',
  'Web Auth':
    'Signing in to the account area with a mailed code, and its sessions. Browsers carry a session in cookies. Calls that ' +
    'change something need the `csrf_token` of the last sign-in or refresh as `X-CSRF-Token`, and are refused if their ' +
    '`Origin` is another site.',
  'Web API Accounts':
    'The accounts that a user of the account area has linked: balances, refills, history, and keys. What gives a key away, or ' +
    'takes it, is confirmed by a mailed code.',
  System: 'The service itself. No key is needed.',
};
