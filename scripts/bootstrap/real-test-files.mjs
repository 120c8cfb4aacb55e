/**
 * The test suite for real stores, in phases that run one after the other. Each of these test files uses a separate
 * Redis Cluster and a separate database of the shared mongod.
 */

/** Tests of behaviour that must be the same with any MongoDB, and of moving money between Redis and MongoDB. */
const stores = [
  'dist/test/scripts/embedded/mongo/conformance*.test.js',
  'dist/test/shared/ledger/*.test.js',
  'dist/test/shared/accounts/*.test.js',
  'dist/test/shared/money/*.test.js',
  'dist/test/workers/ledger/*.test.js',
];

/** The core of the API: chats, streams, images, embeddings, jobs, accounts, history and sign-in. */
const core = [
  'dist/test/api/chat*.test.js',
  'dist/test/api/cancel.test.js',
  'dist/test/api/disconnect-billing.test.js',
  'dist/test/api/disconnected-chats.test.js',
  'dist/test/api/images.test.js',
  'dist/test/api/image-edits.test.js',
  'dist/test/api/file-links.test.js',
  'dist/test/api/embeddings.test.js',
  'dist/test/load/embeddings-merging.test.js',
  'dist/test/api/jobs.test.js',
  'dist/test/api/idempotency.test.js',
  'dist/test/load/large-responses.test.js',
  'dist/test/api/profile.test.js',
  'dist/test/api/history.test.js',
  'dist/test/api/redeem.test.js',
  'dist/test/api/refill-log.test.js',
  'dist/test/api/ban.test.js',
  'dist/test/api/spending-the-last-money.test.js',
  'dist/test/api/ledger-money.test.js',
  'dist/test/api/regenerate-key.test.js',
  'dist/test/api/account-area/sign-in.test.js',
  'dist/test/api/account-area/sessions.test.js',
  'dist/test/api/account-area/account-life.test.js',
  'dist/test/api/account-area/linked-accounts.test.js',
];

const deaths = [
  'dist/test/crash/worker-death.test.js',
  'dist/test/crash/lost-callers.test.js',
  'dist/test/crash/orphans.test.js',
  'dist/test/crash/durable-jobs.test.js',
  'dist/test/crash/idempotency.test.js',
];

const real = 'dist/test/real/*.test.js';

/** The last phase applies load and kills processes for minutes, so no other tests run next to it. */
export const longForm = [[...stores, ...core, ...deaths], [real], ['dist/test/crash/random-deaths.test.js']];

/** Tests that wait for crashes and outages start first, so that the others run in the meantime. */
export const shortForm = [
  [
    real,
    'dist/test/scripts/embedded/mongo/conformance*.test.js',
    'dist/test/shared/accounts/restore.test.js',
    'dist/test/api/chat.test.js',
    'dist/test/api/chat-prices.test.js',
    'dist/test/api/chat-failures.test.js',
    'dist/test/api/history.test.js',
    'dist/test/api/account-area/sign-in.test.js',
  ],
];
