import { maxCallsPerAccount, type Tag } from '../../shared/contract/operation.ts';

/** The text of the OpenAPI document that applies to all operations. */
export const overview =
  'An OpenAI-compatible API for chat, images and embeddings, paid from a prepaid balance in roubles. To use it with any ' +
  'OpenAI client, set the base URL, which ends in `/v1`, and your API key.\n\n' +
  'Every response has an `x-request-id` header. Paths are case-sensitive. An unknown path, or one with a double slash, ' +
  'returns 404 `not_found`. A method that the path does not support returns 405 `method_not_allowed`, and one that no ' +
  'path supports returns 501 with the same code. Write integers in a query as decimal digits, and specify each parameter ' +
  'only once.\n\n' +
  'Malformed HTTP requests return errors in the same format, with the closest code, and their connection is closed: ' +
  '`validation_failed` for 400 (malformed, or not exactly one `Host`), 417 (an unknown `Expect`) and 505 ' +
  '(an unsupported HTTP version), `payload_too_large` for 431 (headers) and 413 (chunk extensions), ' +
  '`deadline_exceeded` for 408, `method_not_allowed` for 501. If a server has no free connections, it responds to a ' +
  'new one with 503 `queue_full` and `retry-after`, and closes it.\n\n' +
  'Requests to models count towards the account’s requests per minute once they have passed validation. Their maximum ' +
  'cost is reserved until they end. Other calls with a key are free, but an account can have at most ' +
  `${maxCallsPerAccount} of them in progress at the same time on each server; further ones return 429. Request fields ` +
  'that are not described, including misspelled ones, are accepted and ignored. They are not sent to vendors.\n\n' +
  'Pages of the gateway call the operations of a key with a session of the account area instead, and name the account as ' +
  '`X-Api-Account`. Such a call is charged, limited and logged like one with the key of that account. An `Authorization` ' +
  'header takes precedence. A 401 `unauthenticated` means that the session must be refreshed, and `invalid_api_key` that a ' +
  'key is missing or wrong.';

export const tagDescriptions: Record<Tag, string> = {
  Chat: 'Generate text with language models. Some models also accept images, files and tools.',
  Images: 'Generate and edit images with a prompt.',
  Embeddings: 'Convert texts to vectors for search, clustering and comparison.',
  Jobs:
    'Run long requests without an open connection. Send a chat, image or embedding request with `Prefer: respond-async`, ' +
    'then get the job later, wait for it, or follow its events.',
  Batches:
    'Run thousands of requests from a file, or send them together. Lines come after single requests and use the capacity ' +
    'that is left. Upload a file of JSON Lines, each with a `custom_id` and the `body` of a request, create a batch, and ' +
    'download its results.',
  Models: 'The available models, their prices and their status. No key is needed.',
  Users: 'The account of the API key: balance, limits, refills, request history, and the key itself.',
  'Web Auth':
    'Sign in to the account area with an emailed code, and manage sessions. Browsers store a session in cookies. Calls that ' +
    'change data require the `csrf_token` of the session as `X-CSRF-Token`, and are rejected if their ' +
    '`Origin` is another site.',
  'Web API Accounts':
    'The accounts that a user of the account area has linked: balances, refills, request history and keys. Revealing or ' +
    'replacing a key and unlinking an account require an emailed code.',
  Admin:
    'For the operator and the programs that run the gateway. A token of the operator is needed, not an API key. Tokens with ' +
    'the scope `read` only read; those with `billing` also create accounts, credits and codes; those with `all` do everything. ' +
    'All paths except `/v1/admin/demand` are unknown while there is no token.',
  System: 'Health, statistics and settings of the service, and this API reference. No key is needed.',
};
