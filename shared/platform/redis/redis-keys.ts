/**
 * All our Redis keys. Keys used by one script share a hash tag, so that a Cluster keeps them on one node. The hash of
 * an account's id determines its shard, which never changes.
 */

/** Fixed for the life of a deployment, because it determines the shard of every account. */
export const shardCount = 16;

/** FNV-1a over the characters of the id: fast, the same on every machine, and evenly distributed over the shards. */
export function shardOf(accountId: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < accountId.length; i++) hash = Math.imul(hash ^ accountId.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % shardCount;
}

const tag = (shard: number): string => `{s${String(shard).padStart(2, '0')}}`;

export const redisKeys = {
  /** Hash: balance, reservations and limits of one account. No TTL; rebuilt from MongoDB if missing. */
  account: (accountId: string) => `mg:${tag(shardOf(accountId))}:account:${accountId}`,
  /** Sorted set: id of an account's undelivered webhook → when it no longer counts towards the limit (s); 48 hours. */
  undeliveredWebhooks: (accountId: string) => `mg:${tag(shardOf(accountId))}:webhooks:${accountId}`,
  /** String: how a receiver of an account's webhooks responded last; an hour after a timeout, otherwise a week. */
  webhookReceiver: (accountId: string, origin: string) =>
    `mg:${tag(shardOf(accountId))}:webhook-receiver:${accountId}:${origin}`,
  /** String: set while a receiver of the account counts as hanging; an hour after the last timeout. */
  hangingWebhooks: (accountId: string) => `mg:${tag(shardOf(accountId))}:webhooks-hanging:${accountId}`,
  /** String: the last day (since 1970) whose spending accounts in MongoDB have forgotten. No TTL. */
  spendingForgotten: 'mg:spending-forgotten',
  /** List: `second:slots` of an account's requests in the last minute. Expires a minute after the last one. */
  rpmWindow: (accountId: string) => `mg:${tag(shardOf(accountId))}:rpm:${accountId}`,
  /** List: `second:tokens` of an account in the last minute, if its tokens per minute are limited; a minute. */
  tokenWindow: (accountId: string) => `mg:${tag(shardOf(accountId))}:tpm:${accountId}`,
  /** Hash: request id → its reservation. A field lives from admission to settlement. */
  reservations: (shard: number) => `mg:${tag(shard)}:reservations`,
  /**
   * Sorted set: request id → when its heartbeat expires (ms). Holds only requests that take more than a few seconds.
   */
  heldRequests: (shard: number) => `mg:${tag(shard)}:held`,
  /** String: Redis's time at the last check for orphans (ms). Used to detect a clock that was set back. */
  orphanClock: (shard: number) => `mg:${tag(shard)}:orphan-clock`,
  /** Hash: request id → the reservation released as an orphan; an hour, for a late settlement. */
  orphans: (shard: number) => `mg:${tag(shard)}:orphans`,
  /** Hash: minute of the hour → `minute requests nano-roubles`, for the last hour of one account. */
  recentMinutes: (accountId: string) => `mg:${tag(shardOf(accountId))}:minutes:${accountId}`,
  /** Hash: the request that used an account's Idempotency-Key, the fingerprint of its body, and its `replays`; a day. */
  claim: (accountId: string, keyHash: string) =>
    `mg:${tag(shardOf(accountId))}:claim:${accountId}:${keyHash}`,
  /**
   * String: the frames of a request whose response stays stored after its connection ends, or a marker of where they
   * have moved; a day.
   */
  storedFrames: (accountId: string, requestId: string) => `mg:${tag(shardOf(accountId))}:kept:${requestId}`,
  /**
   * String: shows that a stream may be resumed by its account, by whose id it is named; until the frames expire, or with
   * an Idempotency-Key, a day.
   */
  resumableStream: (accountId: string, requestId: string) =>
    `mg:${tag(shardOf(accountId))}:resumable:${accountId}:${requestId}`,
  /** String: a large complete response, while the object store is unavailable; a day. */
  storedResponse: (accountId: string, requestId: string) =>
    `mg:${tag(shardOf(accountId))}:kept-answer:${requestId}`,
  /** Hash: `sum` of an account's bytes stored in Redis under Idempotency-Keys, and the bytes by expiry time; a day. */
  storedBytes: (accountId: string) => `mg:${tag(shardOf(accountId))}:kept-bytes:${accountId}`,
  /** Hash: like `storedBytes`, for the responses of durable jobs. */
  jobStoredBytes: (accountId: string) => `mg:${tag(shardOf(accountId))}:job-kept-bytes:${accountId}`,
  /**
   * Prefix of all keys of durable jobs in a shard, so that one script can change a job, its reservation and its lists.
   * `shared/work/jobs/job-functions.lua` defines the keys.
   */
  jobsOf: (shard: number) => `mg:${tag(shard)}:`,
  /** Hash: a durable job, from its admission until a day after its end. */
  job: (accountId: string, jobId: string) => `mg:${tag(shardOf(accountId))}:job:${accountId}:${jobId}`,
  /** String: what a worker needs to run the job, as JSON; until the job has ended. */
  jobBody: (accountId: string, jobId: string) =>
    `mg:${tag(shardOf(accountId))}:job-body:${accountId}:${jobId}`,
  /** Sorted set: job id → creation time (ms), for all jobs of an account or for those with one status. */
  jobsList: (accountId: string, status: string) =>
    `mg:${tag(shardOf(accountId))}:jobs:${accountId}:${status}`,
  /** Sorted set: job id → creation time (ms), for an account's jobs for one model that wait for a worker. */
  jobsWaiting: (accountId: string, queue: string, model: string) =>
    `mg:${tag(shardOf(accountId))}:jobs-waiting:${accountId}:${queue}:${model}`,
  /**
   * Hash: the reservations of an account's unfinished jobs and batches (`cost`, `free`), of which `lines` are those of
   * batches, and `day:` and a day those of jobs that were admitted on it; and the size of all its jobs (`bytes`).
   */
  jobsHeld: (accountId: string) => `mg:${tag(shardOf(accountId))}:jobs-held:${accountId}`,
  /** Set: `account queue model` of each job list in a shard that has waiting jobs. */
  jobLines: (shard: number) => `mg:${tag(shard)}:job-lines`,
  /** Hash: id of a job or batch → its account, for all that a shard has. */
  jobOwners: (shard: number) => `mg:${tag(shard)}:job-owners`,
  /** Hash: queue → number of a shard's waiting jobs, and `bytes`: the size of all bodies and records of jobs. */
  jobTotals: (shard: number) => `mg:${tag(shard)}:job-totals`,
  /** Sorted set: `account id` → when the lease of the worker that took the job expires (ms). */
  jobLeases: (shard: number) => `mg:${tag(shard)}:job-leases`,
  /** Sorted set: `account id` → deadline for starting the job (ms). */
  jobDeadlines: (shard: number) => `mg:${tag(shard)}:job-deadlines`,
  /** Sorted set: `account id` → when the job is cancelled unless it has ended (ms); only if its caller set a time. */
  jobCancelTimes: (shard: number) => `mg:${tag(shard)}:job-cancel-times`,
  /** Sorted set: `account id` → when a finished job is deleted (ms). */
  jobsEnded: (shard: number) => `mg:${tag(shard)}:jobs-ended`,
  /** Sorted set: `account id` → end time (ms), for a queue's jobs that failed within the last day. */
  jobFailures: (shard: number, queue: string) => `mg:${tag(shard)}:job-failures:${queue}`,
  /** Sorted set: `account id` → end time (ms), for jobs whose webhook is not queued yet. */
  jobHooks: (shard: number) => `mg:${tag(shard)}:job-hooks`,
  /** Sorted set: `account id` → start time (ms), for jobs whose webhook of their start is not queued yet. */
  jobStartHooks: (shard: number) => `mg:${tag(shard)}:job-start-hooks`,
  /** String: the worker that maintains this shard's jobs now; seconds. */
  jobsLease: (shard: number) => `mg:${tag(shard)}:jobs-lease`,
  /**
   * Prefix of all keys of files in a shard, so that one script can change a file, its lists and the batches that use it.
   * `shared/work/files/file-functions.lua` defines the keys.
   */
  filesOf: (shard: number) => `mg:${tag(shard)}:`,
  /** Hash: a file of the API, until it is deleted or has expired and no batch reads it. */
  file: (accountId: string, fileId: string) => `mg:${tag(shardOf(accountId))}:file:${accountId}:${fileId}`,
  /** List: `key bytes` of the objects that make up a file of results; as long as the file. */
  fileSegments: (accountId: string, fileId: string) =>
    `mg:${tag(shardOf(accountId))}:file-segments:${accountId}:${fileId}`,
  /** Sorted set: file id → creation time (ms), for all files of an account or for those with one purpose. */
  filesList: (accountId: string, list: string) => `mg:${tag(shardOf(accountId))}:files:${accountId}:${list}`,
  /** Hash: `count` and `bytes` of an account's files. */
  filesHeld: (accountId: string) => `mg:${tag(shardOf(accountId))}:files-held:${accountId}`,
  /** Sorted set: `account id` → when the file expires (ms). */
  fileTimes: (shard: number) => `mg:${tag(shard)}:file-times`,
  /** Sorted set: key of an object that belongs to no file → when it is deleted (ms). */
  fileTrash: (shard: number) => `mg:${tag(shard)}:file-trash`,
  /** Hash: a batch, until 31 days after its end. `shared/work/batches/batch-functions.lua` defines its keys. */
  batch: (accountId: string, batchId: string) =>
    `mg:${tag(shardOf(accountId))}:batch:${accountId}:${batchId}`,
  /** Hash: number of a slice of a batch → its state; until its lines are settled. */
  batchSlices: (accountId: string, batchId: string) =>
    `mg:${tag(shardOf(accountId))}:batch-slices:${accountId}:${batchId}`,
  /** Set: `account queue model` of each list of batches in a shard that have lines which no worker has. */
  batchLines: (shard: number) => `mg:${tag(shard)}:batch-lines`,
  /**
   * Hash: `status:` and a status → number of a shard's batches, ended ones since the beginning; `lines:queue model` → lines
   * of unfinished batches that are not settled.
   */
  batchTotals: (shard: number) => `mg:${tag(shard)}:batch-totals`,
  /** Sorted set: `account batch slice` → when the lease of the worker that took the slice expires (ms). */
  batchLeases: (shard: number) => `mg:${tag(shard)}:batch-leases`,
  /** Sorted set: batch id → creation time (ms), for an account's batches for one model with lines that no worker has. */
  batchesWaiting: (accountId: string, queue: string, model: string) =>
    `mg:${tag(shardOf(accountId))}:batches-waiting:${accountId}:${queue}:${model}`,
  /** Sorted set: `account batch` → when the batch expires (ms). */
  batchWindows: (shard: number) => `mg:${tag(shard)}:batch-windows`,
  /** Sorted set: batch id → creation time (ms), for all batches of an account. */
  batchesOfAccount: (accountId: string) => `mg:${tag(shardOf(accountId))}:batches:${accountId}`,
  /** Sorted set: batch id → creation time (ms), for the batches of an account that have not ended. */
  batchesOpen: (accountId: string) => `mg:${tag(shardOf(accountId))}:batches-open:${accountId}`,
  /** Sorted set: `account batch` → when the record of an ended batch is deleted (ms). */
  batchesEnded: (shard: number) => `mg:${tag(shard)}:batches-ended`,
  /** Sorted set: `account batch` → end time (ms), for batches whose webhook is not queued yet. */
  batchHooks: (shard: number) => `mg:${tag(shard)}:batch-hooks`,
  /** Stream: usage events and refills to be written to MongoDB; trimmed once they are there. */
  ledgerStream: (shard: number) => `mg:${tag(shard)}:ledger`,
  /** Stream: ledger entries that could not be read completely; until deleted by hand. */
  ledgerDead: (shard: number) => `mg:${tag(shard)}:ledger-dead`,
  /** String: id of the last entry trimmed from this shard's stream after it reached MongoDB. */
  ledgerTrimmed: (shard: number) => `mg:${tag(shard)}:ledger-trimmed`,
  /** String: set while this shard recovers after Redis lost its data; seconds. */
  ledgerRecovering: (shard: number) => `mg:${tag(shard)}:ledger-recovering`,
  /** String: the worker that reads this shard's stream now; seconds. */
  ledgerLease: (shard: number) => `mg:${tag(shard)}:ledger-lease`,
  /** String: the worker that checks this shard for orphaned reservations and expired files now; seconds. */
  sweepLease: (shard: number) => `mg:${tag(shard)}:sweep-lease`,
  /** String: what a refill credited, or that it is void; a week. After that, only MongoDB has it. */
  refill: (accountId: string, refillId: string) => `mg:${tag(shardOf(accountId))}:refill:${refillId}`,
  /**
   * String: the reasoning that led to a tool call, which vendors require back and clients drop, by the hash of the call
   * and of the conversation before it; six hours after its last use. If a call was made under several sets of
   * instructions, each set has a key with its hash after a colon.
   */
  reasoning: (accountId: string, callHash: string) =>
    `mg:${tag(shardOf(accountId))}:reasoning:${accountId}:${callHash}`,
  /** String: how many unknown refill codes an account tried; an hour from the first one. */
  unknownCodes: (accountId: string) => `mg:${tag(shardOf(accountId))}:unknown-codes:${accountId}`,

  /**
   * Sorted set: an event that counts against a limit → when it happened (ms), by a keyed hash of its subject; the
   * limit's window after the last event. Keys of the web account area share a tag, because one script checks several
   * limits.
   */
  webLimit: (name: string, whoHash: string) => `mg:{web}:limit:${name}:${whoHash}`,
  /** String: a browser's session of the admin API, by the hash of its cookie, as JSON; eight hours. */
  adminSession: (cookieHash: string) => `mg:{web}:admin-session:${cookieHash}`,
  /** Sorted set: hash of a session's cookie → when it ends (ms), by the hash of its token; eight hours. */
  adminSessionsOf: (secretHash: string) => `mg:{web}:admin-sessions:${secretHash}`,
  /** Hash: an emailed code's purpose, subject and MAC, the encrypted address, and the number of tries; ten minutes. */
  emailCode: (challengeId: string) => `mg:{web}:email-code:${challengeId}`,

  /** Sorted set: id of an account's webhook that waits for a place in a lane → when it was queued (ms); 48 hours. */
  waitingWebhooks: (lane: string, accountId: string) => `mg:{webhooks}:waiting:${lane}:${accountId}`,
  /** Sorted set: account with webhooks that wait in a lane → since when it waits for its turn (µs); 48 hours. */
  webhookTurns: (lane: string) => `mg:{webhooks}:turns:${lane}`,

  /** String: account id by the hash of its API key; a day, so that known keys work while MongoDB is unavailable. */
  apiKey: (keyHash: string) => `mg:key:${keyHash}`,
  /** String: the worker that deletes expired images now; seconds. */
  fileSweepLease: 'mg:file-sweep-lease',
  /** String: the api process that sends alerts now; seconds. */
  alertLease: 'mg:{alerts}:lease',
  /** Hash: name of a condition → what operators were last told about it, and when. No TTL; one field a condition. */
  sentAlerts: 'mg:{alerts}:sent',
  /** Set: ids of the models that an administrator has disabled. */
  disabledModels: 'mg:disabled-models',
  /** Set: what an operator has drained: an upstream, or an upstream and the id of a model, separated by a space. */
  drainedRoutes: 'mg:drained-routes',

  /**
   * List: interactive chats that wait for a worker, oldest first; bounded. Accounts with many running requests use the
   * bulk list.
   */
  readyQueue: 'mg:{ready}:chat',
  bulkReadyQueue: 'mg:{ready}:chat-bulk',
  /** String: how many items have been pushed to a ready queue in total. */
  pushedTo: (readyQueue: string) => `${readyQueue}:pushed`,
  /** Sorted set: id of a worker that serves this queue → when its heartbeat expires (ms). */
  workers: (queue: string) => `mg:{workers}:${queue}`,
  /** Hash: id of a worker that serves this queue → its current load. */
  workerLoads: (queue: string) => `mg:{workers}:${queue}:loads`,
  /** List: what workers reply to an operator, as JSON; two minutes. */
  drained: (id: string) => `mg:drained:${id}`,
  /** Sorted set: request whose caller disconnected while it was queued → when the entry expires (ms). */
  cancelled: 'mg:cancelled',
  /** String: a payload too large for a queue item or a frame; TTL longer than its request's deadline. */
  payload: (id: string) => `mg:payload:${id}`,

  /**
   * Sorted set: model with waiting jobs → its position in the rotation of models. The index of durable jobs over all
   * accounts shares a tag, because one script reads several models of a queue. Keys of one queue and model end with the
   * model, so that scripts can build them.
   */
  jobModels: (queue: string) => `mg:{jobs}:models:${queue}`,
  /** Hash: counters of a queue's index, and the virtual time and number of waiting jobs of each model. No TTL. */
  jobIndex: (queue: string) => `mg:{jobs}:index:${queue}`,
  /** Sorted set: account with waiting jobs for this queue and model → virtual time at which its next job may start. */
  jobTurns: (queue: string, model: string) => `mg:{jobs}:turns:${queue}:${model}`,
  /** Sorted set: account without waiting jobs whose last turn ends in the future → virtual time of that end. */
  jobIdle: (queue: string, model: string) => `mg:{jobs}:idle:${queue}:${model}`,
  /** Hash: account → `waiting adds weight taken` for this queue and model; a minute after its last waiting job. */
  jobAccounts: (queue: string, model: string) => `mg:{jobs}:accounts:${queue}:${model}`,
  /** Sorted set: id of a running job of this queue and model → when its lease expires (ms). */
  jobsRunning: (queue: string, model: string) => `mg:{jobs}:running:${queue}:${model}`,
  /** Hash: id of a running job of this queue and model → start time (ms). */
  jobsStarted: (queue: string, model: string) => `mg:{jobs}:started:${queue}:${model}`,
  /** List: durations in ms of the latest jobs of this queue and model, newest first; a week after the last one. */
  jobServiceTimes: (queue: string, model: string) => `mg:{jobs}:service:${queue}:${model}`,

  /**
   * Hash: recent call outcomes of one route, and its circuit breaker; 15 minutes after the last call. All routing keys
   * share a tag, because one script reads several routes of a model.
   */
  routeHealth: (routeId: string) => `mg:{routes}:health:${routeId}`,
  /**
   * Hash: fingerprint of an upstream's key, alone or with a route → when its cooldown for all accounts ends, and its
   * reason. Prefixed with `some`: the same for the latest cooldown that applies only to some accounts.
   */
  keysOnCooldown: (upstream: string) => `mg:{routes}:set-aside:${upstream}`,
  /** Sorted set: account → when its last call on this route succeeded (ms); half a minute after the last one. */
  accountsServedOnRoute: (routeId: string) => `mg:{routes}:served:route:${routeId}`,
  /** Sorted set: account whose latest two calls failed because of this route's server → when the last one did (ms). */
  accountsFailedOnRoute: (routeId: string) => `mg:{routes}:failed:route:${routeId}`,
  /** Sorted set: account whose latest call failed because of the server, but not the one before → when (ms); 30 s. */
  accountsStruckOnRoute: (routeId: string) => `mg:{routes}:struck:route:${routeId}`,
  /** Sorted set: account → when its last call with this key on this route succeeded (ms); half a minute. */
  accountsServedWithKey: (routeId: string, fingerprint: string) =>
    `mg:{routes}:served:key:${fingerprint}:${routeId}`,
  /** Sorted set: account for which the vendor rejected this key on this route → when its cooldown ends (ms). */
  accountsRejectedWithKey: (routeId: string, fingerprint: string) =>
    `mg:{routes}:refused:key:${fingerprint}:${routeId}`,
  /** Sorted set: running call at an upstream, with one of its keys, or on one route → when its lease expires (ms). */
  callsOfUpstream: (upstream: string) => `mg:{routes}:calls:upstream:${upstream}`,
  callsOfKey: (upstream: string, fingerprint: string) => `mg:{routes}:calls:key:${upstream}:${fingerprint}`,
  callsOfRoute: (routeId: string) => `mg:{routes}:calls:route:${routeId}`,
  /** Sorted set: name under which a worker holds call slots → when it counts as dead unless it reports again (ms). */
  slotHolders: 'mg:{routes}:slot-holders',
  /** Sorted set: holder that was declared dead, and whose slots are freed → when (ms); for as long as a lease lasts. */
  deadSlotHolders: 'mg:{routes}:slot-holders:dead',
  /**
   * Hash: when a holder last reported, until when none counts as dead, until when no slot is granted (ms), and the
   * `epoch`, which changes if Redis loses its data; a day.
   */
  slotHoldersState: 'mg:{routes}:slot-holders:state',
  /**
   * Sorted set: account that waits for a slot of these calls → when the entry expires unless it tries again (ms).
   */
  waitingFor: (callsKey: string) => `${callsKey}:waiting`,
  /** Sorted set: account whose durable jobs wait for slots of these calls → since when (ms). */
  jobsWaitSince: (callsKey: string) => `${callsKey}:jobs-since`,
  /** Sorted set: the accounts of `jobsWaitSince` → when the entry expires unless they try again (ms). */
  jobsWaitUntil: (callsKey: string) => `${callsKey}:jobs-until`,
  /** The same for accounts whose lines of batch files wait. */
  batchWaitsSince: (callsKey: string) => `${callsKey}:batch-since`,
  batchWaitsUntil: (callsKey: string) => `${callsKey}:batch-until`,
  /** Hash: the account last granted a slot of these calls, and when; when any other account last was; ten minutes. */
  slotUsersOf: (callsKey: string) => `${callsKey}:users`,

  /**
   * String: a vector that a model returned to one account for one text, by a hash of all three; for as long as the
   * catalog specifies. All keys of a model's cache share a tag, because one script stores new vectors and drops the
   * oldest.
   */
  cachedVector: (modelId: string, hash: string) => `mg:{vectors:${modelId}}:v:${hash}`,
  /** List: the cached vectors of a model, oldest first, and their sizes; an hour longer than the last vector. */
  cachedVectorsOrder: (modelId: string) => `mg:{vectors:${modelId}}:order`,
  /** Hash: hits and misses of a model's cache, in inputs; 30 days after the last one. */
  cachedVectorsUse: (modelId: string) => `mg:{vectors:${modelId}}:use`,

  /** String: an unsolved captcha with its solution, as JSON; five minutes. */
  captcha: (challengeId: string) => `mg:{web}:captcha:${challengeId}`,
  /** String: what the token of a solved captcha may be used for, by the token's hash, as JSON; five minutes. */
  captchaToken: (tokenHash: string) => `mg:{web}:captcha-token:${tokenHash}`,

  /** Hash: `stat:model` → its sum over five minutes of settled requests; 40 minutes. The key ends with the bucket. */
  modelStats: (bucket: number | '') => `mg:{traffic}:models:${bucket}`,
  /**
   * Hash: stat → its sum over ten minutes of settled requests of all models; 25 hours. The key ends with the bucket.
   */
  totalStats: (bucket: number | '') => `mg:{traffic}:totals:${bucket}`,
  /** Hash: `stat:model` → its sum over an hour of settled requests; 25 hours. The key ends with the bucket. */
  hourlyStats: (bucket: number | '') => `mg:{traffic}:hours:${bucket}`,
  /** Hash: `stat:model` → a sum that only operators see over five minutes; 70 minutes. The key ends with the bucket. */
  operatorMinutes: (bucket: number | '') => `mg:{traffic}:operator-minutes:${bucket}`,
  /** The same over an hour; 25 hours. */
  operatorHours: (bucket: number | '') => `mg:{traffic}:operator-hours:${bucket}`,
  /** Hash: `stat:model` → the sum of the current hour that is shown, and the clock `step` it belongs to; two steps. */
  shownHour: 'mg:{traffic}:shown-hour',
  /** Hash: `stat:model` → the sum currently shown, and the clock `step` it belongs to; two steps. */
  shownModels: 'mg:{traffic}:shown-models',
  /** Hash: stat → the sum currently shown, and the clock `step` it belongs to; two steps. */
  shownTotals: 'mg:{traffic}:shown-totals',
} as const;

/** Sharded pub/sub channels. Each belongs to the slot of its name or of its hash tag. */
export const redisChannels = {
  /** Frames for the requests that one api process waits for. */
  reply: (apiId: string) => `mg:reply:${apiId}`,
  /** Control messages (pause, resume, cancel) for the requests that one worker runs. */
  control: (workerId: string) => `mg:control:${workerId}`,
  /**
   * Announces that a queue and model now has waiting durable jobs and had none before. Published by a script that has
   * the index in its keys.
   */
  jobsAdded: (queue: string) => `mg:{jobs}:added:${queue}`,
  /** Announces changes that every process must drop from its caches immediately. */
  invalidation: 'mg:{all}:invalidation',
  /** Announces that the tokens of the admin API have changed. */
  adminTokens: 'mg:{all}:admin-tokens',
  /** Carries no messages. Its number of subscribers is the number of api processes. */
  apis: 'mg:{all}:apis',
} as const;

/** BullMQ's key prefix, tagged so that a queue's keys share a slot. */
export const bullPrefix = '{bull}';
