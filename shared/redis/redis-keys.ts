/**
 * Every key of ours in Redis. What one script touches shares a hash tag, so that a Cluster keeps it on one node; an
 * account belongs to one shard for ever, by the hash of its id.
 */

/** Fixed for the life of a deployment: an account's shard follows from it. */
export const shardCount = 16;

/** FNV-1a over the id's characters: quick, the same on every machine, evenly spread over the shards. */
export function shardOf(accountId: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < accountId.length; i++) hash = Math.imul(hash ^ accountId.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % shardCount;
}

const tag = (shard: number): string => `{s${String(shard).padStart(2, '0')}}`;

export const redisKeys = {
  /** Hash: balance, reservations and limits of one account. No TTL: rebuilt from MongoDB where it is missing. */
  account: (accountId: string) => `mg:${tag(shardOf(accountId))}:account:${accountId}`,
  /** Sorted set: the id of a webhook of one account that is to be delivered → until when it counts (s); 48 hours. */
  undeliveredWebhooks: (accountId: string) => `mg:${tag(shardOf(accountId))}:webhooks:${accountId}`,
  /** Sorted set: the id of a webhook of one account that waits for its turn → when it was queued (ms); 48 hours. */
  waitingWebhooks: (accountId: string) => `mg:${tag(shardOf(accountId))}:webhooks-waiting:${accountId}`,
  /** List: `second:slots` of the last minute's requests of one account. Expires a minute after the last. */
  rpmWindow: (accountId: string) => `mg:${tag(shardOf(accountId))}:rpm:${accountId}`,
  /** Hash: request id → its reservation. A field lives from admission to settlement. */
  reservations: (shard: number) => `mg:${tag(shard)}:reservations`,
  /**
   * Sorted set: request id → until when a process says that it has that request in hand (ms). Only requests of more
   * than a few seconds are ever in it.
   */
  heldRequests: (shard: number) => `mg:${tag(shard)}:held`,
  /** Redis's time at the last look for orphans (ms): by it a clock that stepped back is noticed. */
  orphanClock: (shard: number) => `mg:${tag(shard)}:orphan-clock`,
  /** Hash: request id → the reservation that was taken from it as an orphan; an hour, for a settlement that comes late. */
  orphans: (shard: number) => `mg:${tag(shard)}:orphans`,
  /** Hash: minute of the hour → `minute requests nano-roubles` of one account's last hour. */
  recentMinutes: (accountId: string) => `mg:${tag(shardOf(accountId))}:minutes:${accountId}`,
  /** Hash: the request that an Idempotency-Key of an account stands for, and the body's fingerprint; a day. */
  claim: (accountId: string, keyHash: string) =>
    `mg:${tag(shardOf(accountId))}:claim:${accountId}:${keyHash}`,
  /** String: the frames of a request whose answer is kept beyond its socket, or where they have moved to; a day. */
  keptFrames: (accountId: string, requestId: string) => `mg:${tag(shardOf(accountId))}:kept:${requestId}`,
  /** String: a large whole answer that is kept, while the object store does not take it; a day. */
  keptAnswer: (accountId: string, requestId: string) =>
    `mg:${tag(shardOf(accountId))}:kept-answer:${requestId}`,
  /**
   * Hash: `sum` of the bytes that are kept for one account in Redis under Idempotency-Keys, and their share by when they
   * expire; a day.
   */
  keptBytes: (accountId: string) => `mg:${tag(shardOf(accountId))}:kept-bytes:${accountId}`,
  /** Hash: the same of the answers of durable jobs. */
  jobKeptBytes: (accountId: string) => `mg:${tag(shardOf(accountId))}:job-kept-bytes:${accountId}`,
  /**
   * Durable jobs. All keys of an account's jobs begin with this, so that one script can change a job, what it reserves and
   * the lists it stands in; `shared/jobs/job-lua.ts` names them.
   */
  jobsOf: (shard: number) => `mg:${tag(shard)}:`,
  /** Hash: a durable job, from its admission until a day after its end. */
  job: (accountId: string, jobId: string) => `mg:${tag(shardOf(accountId))}:job:${accountId}:${jobId}`,
  /** String: what a worker needs to run the job, as JSON; until the job has ended. */
  jobBody: (accountId: string, jobId: string) =>
    `mg:${tag(shardOf(accountId))}:job-body:${accountId}:${jobId}`,
  /** Sorted set: job id → when it was made (ms), of all jobs of an account, or of those with a status. */
  jobsList: (accountId: string, status: string) =>
    `mg:${tag(shardOf(accountId))}:jobs:${accountId}:${status}`,
  /** Sorted set: job id → when it was made (ms), of an account's jobs for one model that wait for a worker. */
  jobsWaiting: (accountId: string, queue: string, model: string) =>
    `mg:${tag(shardOf(accountId))}:jobs-waiting:${accountId}:${queue}:${model}`,
  /** Hash: what an account's jobs that have not ended reserve (`cost`, `free`) and how large their bodies are (`bytes`). */
  jobsHeld: (accountId: string) => `mg:${tag(shardOf(accountId))}:jobs-held:${accountId}`,
  /** Set: `account queue model` of each list of a shard's jobs that has some waiting. */
  jobLines: (shard: number) => `mg:${tag(shard)}:job-lines`,
  /** Hash: how many jobs of a shard wait, by queue, and `bytes` of all bodies. */
  jobTotals: (shard: number) => `mg:${tag(shard)}:job-totals`,
  /** Sorted set: `account id` → until when the worker that took the job has it (ms). */
  jobLeases: (shard: number) => `mg:${tag(shard)}:job-leases`,
  /** Sorted set: `account id` → when a job that has not started is too late (ms). */
  jobDeadlines: (shard: number) => `mg:${tag(shard)}:job-deadlines`,
  /** Sorted set: `account id` → when a job that has ended is forgotten (ms). */
  jobsEnded: (shard: number) => `mg:${tag(shard)}:jobs-ended`,
  /** Sorted set: `account id` → when it ended (ms), of a queue's jobs that failed within the last day. */
  jobFailures: (shard: number, queue: string) => `mg:${tag(shard)}:job-failures:${queue}`,
  /** Sorted set: `account id` → when it ended (ms), of jobs whose webhook is still to be queued. */
  jobHooks: (shard: number) => `mg:${tag(shard)}:job-hooks`,
  /** String: the worker that looks after this shard's jobs now; seconds. */
  jobsLease: (shard: number) => `mg:${tag(shard)}:jobs-lease`,
  /** Stream: usage events and refills on their way to MongoDB; trimmed once they are there. */
  ledgerStream: (shard: number) => `mg:${tag(shard)}:ledger`,
  /** String: id of the last entry that was trimmed from this shard's stream, MongoDB having it. */
  ledgerTrimmed: (shard: number) => `mg:${tag(shard)}:ledger-trimmed`,
  /** String: this shard was found to have lost its memory a moment ago; seconds. */
  ledgerRecovering: (shard: number) => `mg:${tag(shard)}:ledger-recovering`,
  /** String: the worker that reads this shard's stream now; seconds. */
  ledgerLease: (shard: number) => `mg:${tag(shard)}:ledger-lease`,
  /** String: the worker that looks for this shard's orphaned reservations now; seconds. */
  sweepLease: (shard: number) => `mg:${tag(shard)}:sweep-lease`,
  /** String: a refill that was credited or withdrawn; a week, after which MongoDB alone remembers it. */
  refill: (accountId: string, refillId: string) => `mg:${tag(shardOf(accountId))}:refill:${refillId}`,
  /**
   * String: the reasoning that led to a tool call, which vendors want back and clients drop, by the hash of the call and
   * of the conversation before it; six hours after its last use. Where it was made under several instructions, a key of
   * each has their hash behind a colon.
   */
  reasoning: (accountId: string, callHash: string) =>
    `mg:${tag(shardOf(accountId))}:reasoning:${accountId}:${callHash}`,
  /** String: unknown refill codes that an account tried; an hour from the first of them. */
  unknownCodes: (accountId: string) => `mg:${tag(shardOf(accountId))}:unknown-codes:${accountId}`,

  /**
   * Keys of the web account area share a tag: one script looks at several limits. Sorted set: what counts against a limit
   * → when it happened (ms), by a keyed hash of whom it is counted for; as long as the limit's window, after the last.
   */
  webLimit: (name: string, whoHash: string) => `mg:{web}:limit:${name}:${whoHash}`,
  /** Hash: a mailed code's purpose, subject and MAC, its mailbox encrypted, and how often it was tried; ten minutes. */
  emailCode: (challengeId: string) => `mg:{web}:email-code:${challengeId}`,

  /** String: hash of an API key → account id; a day, so that known keys work while MongoDB is away. */
  apiKey: (keyHash: string) => `mg:key:${keyHash}`,
  /** String: the worker that deletes images past their day now; seconds. */
  fileSweepLease: 'mg:file-sweep-lease',
  /** Set: ids of the models that an administrator has turned off. */
  disabledModels: 'mg:disabled-models',

  /** List: interactive chats that wait for a worker, oldest first; bounded. Accounts with many under way have one of their own. */
  readyQueue: 'mg:{ready}:chat',
  bulkReadyQueue: 'mg:{ready}:chat-bulk',
  /** String: how many items were ever pushed to a ready queue. */
  pushedTo: (readyQueue: string) => `${readyQueue}:pushed`,
  /** Sorted set: id of a worker that serves this queue → when its heartbeat runs out (ms). */
  workers: (queue: string) => `mg:{workers}:${queue}`,
  /** Hash: id of a worker that serves this queue → requests it runs now. */
  workerLoads: (queue: string) => `mg:{workers}:${queue}:loads`,
  /** Sorted set: requests whose callers left while their jobs were queued, and until when that is known. */
  cancelled: 'mg:cancelled',
  /** String: a payload too large for a queue or a frame; TTL longer than its request's deadline. */
  payload: (id: string) => `mg:payload:${id}`,

  /**
   * The index of durable jobs over all accounts shares a tag: one script looks at several models of a queue. Of keys of a
   * line (one queue, one model) the model comes last, so that scripts can name them. Sorted set: model with waiting jobs →
   * its place in the rotation of models.
   */
  jobModels: (queue: string) => `mg:{jobs}:models:${queue}`,
  /** Hash: counters of a queue's index, and the virtual time and waiting jobs of each of its models. No TTL. */
  jobIndex: (queue: string) => `mg:{jobs}:index:${queue}`,
  /** Sorted set: account with waiting jobs of this line → virtual time at which its next job may start. */
  jobTurns: (queue: string, model: string) => `mg:{jobs}:turns:${queue}:${model}`,
  /** Sorted set: account without waiting jobs whose last turn reaches into the future → virtual time of its end. */
  jobIdle: (queue: string, model: string) => `mg:{jobs}:idle:${queue}:${model}`,
  /** Hash: account → `waiting adds weight taken` of this line; a minute after the line's last waiting job. */
  jobAccounts: (queue: string, model: string) => `mg:{jobs}:accounts:${queue}:${model}`,
  /** Sorted set: id of a running job of this line → when its lease runs out (ms). */
  jobsRunning: (queue: string, model: string) => `mg:{jobs}:running:${queue}:${model}`,
  /** Hash: id of a running job of this line → when it started (ms). */
  jobsStarted: (queue: string, model: string) => `mg:{jobs}:started:${queue}:${model}`,
  /** List: milliseconds that the latest jobs of this line took, newest first; a week after the last. */
  jobServiceTimes: (queue: string, model: string) => `mg:{jobs}:service:${queue}:${model}`,

  /**
   * Hash: how the calls of one route went lately, and its circuit breaker; 15 minutes after the last call. All keys of
   * routing share a tag: one script looks at several routes of a model.
   */
  routeHealth: (routeId: string) => `mg:{routes}:health:${routeId}`,
  /**
   * Hash: fingerprint of an upstream's key, alone or with a route → until when it is set aside for all, and why. Under
   * `some` and those, the same for the account that it was last set aside for alone.
   */
  keysSetAside: (upstream: string) => `mg:{routes}:set-aside:${upstream}`,
  /** Sorted set: account → when a call of it last ended well on this route (ms); half a minute after the last. */
  servedOn: (routeId: string) => `mg:{routes}:served:route:${routeId}`,
  /** Sorted set: account whose latest call failed by the server of this route, and the one before too → when (ms). */
  failedOn: (routeId: string) => `mg:{routes}:failed:route:${routeId}`,
  /** Sorted set: account whose latest call failed so, and not the one before → when (ms); half a minute. */
  struckOn: (routeId: string) => `mg:{routes}:struck:route:${routeId}`,
  /** Sorted set: account → when a call of it last ended well with this key on this route (ms); half a minute. */
  servedBy: (routeId: string, fingerprint: string) => `mg:{routes}:served:key:${fingerprint}:${routeId}`,
  /** Sorted set: account that this key was refused to on this route → until when it is set aside for it (ms). */
  refusedTo: (routeId: string, fingerprint: string) => `mg:{routes}:refused:key:${fingerprint}:${routeId}`,
  /** Sorted set: a call under way at an upstream, with one of its keys or on one route → when its lease runs out (ms). */
  callsOfUpstream: (upstream: string) => `mg:{routes}:calls:upstream:${upstream}`,
  callsOfKey: (upstream: string, fingerprint: string) => `mg:{routes}:calls:key:${upstream}:${fingerprint}`,
  callsOfRoute: (routeId: string) => `mg:{routes}:calls:route:${routeId}`,
  /** Sorted set: an account that waits for a slot of these calls → until when that holds (ms), unless it asks again. */
  waitingFor: (callsKey: string) => `${callsKey}:waiting`,
  /** Sorted set: account whose durable jobs wait for slots of these calls → since when (ms). */
  jobsWaitSince: (callsKey: string) => `${callsKey}:jobs-since`,
  /** Sorted set: the same accounts → until when they wait unless they ask again (ms). */
  jobsWaitUntil: (callsKey: string) => `${callsKey}:jobs-until`,
  /** Hash: the account that was last granted a slot of these calls, and when it and another were; ten minutes. */
  usersOf: (callsKey: string) => `${callsKey}:users`,

  /**
   * String: a vector that a model gave one account for one text, by a hash of all of that; as long as the catalog says.
   * All keys of a model's cache share a tag: one script keeps new vectors and drops the oldest.
   */
  keptVector: (modelId: string, hash: string) => `mg:{vectors:${modelId}}:v:${hash}`,
  /** List: the kept vectors of a model, oldest first, and what they take; an hour longer than the last of them. */
  keptVectorsOrder: (modelId: string) => `mg:{vectors:${modelId}}:order`,
  /** Hash: how many inputs were looked up in a model's cache and found, or not; 30 days after the last. */
  keptVectorsUse: (modelId: string) => `mg:{vectors:${modelId}}:use`,

  /** String: a captcha that was shown and not answered, with its solution, as JSON; five minutes. */
  captcha: (challengeId: string) => `mg:{web}:captcha:${challengeId}`,
  /** String: what a token for a solved captcha may be used for, by the token's hash, as JSON; five minutes. */
  captchaToken: (tokenHash: string) => `mg:{web}:captcha-token:${tokenHash}`,

  /** Hash: `figure:model` → its sum over five minutes of settled requests; 40 minutes. The bucket comes last. */
  modelTraffic: (bucket: number | '') => `mg:{traffic}:models:${bucket}`,
  /** Hash: figure → its sum over ten minutes of settled requests of all models; 25 hours. The bucket comes last. */
  totalTraffic: (bucket: number | '') => `mg:{traffic}:totals:${bucket}`,
  /** Hash: `figure:model` → the sum that is shown now, and the `step` of the clock it belongs to; two steps. */
  shownModels: 'mg:{traffic}:shown-models',
  /** Hash: figure → the sum that is shown now, and the `step` of the clock it belongs to; two steps. */
  shownTotals: 'mg:{traffic}:shown-totals',
} as const;

/** Channels of sharded pub/sub: each has the slot of its name or of its hash tag. */
export const redisChannels = {
  /** Frames for the requests that one api process waits for. */
  reply: (apiId: string) => `mg:reply:${apiId}`,
  /** Pause, resume and cancel for the requests that one worker runs. */
  control: (workerId: string) => `mg:control:${workerId}`,
  /** A line of this queue that had no waiting durable job has one. A script that has the index in its keys says so. */
  jobsAdded: (queue: string) => `mg:{jobs}:added:${queue}`,
  /** What every process must forget at once. */
  invalidation: 'mg:{all}:invalidation',
  /** Nothing is said here: how many api processes there are shows in how many listen. */
  apis: 'mg:{all}:apis',
} as const;

/** BullMQ's own prefix, tagged so that a queue's keys share a slot. */
export const bullPrefix = '{bull}';
