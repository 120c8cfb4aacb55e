import type { AccountStore } from '../shared/accounts/account-store.ts';
import type { ApiKeyStore } from '../shared/accounts/api-key-store.ts';
import type { RefillCodeStore } from '../shared/accounts/refill-code-store.ts';
import type { HotAccountStore } from '../shared/billing/hot-account-store.ts';
import type { CatalogStore } from '../shared/catalog/catalog-store.ts';
import type { FairBudget } from '../shared/fairness/fair-budget.ts';
import type { HistoryStore } from '../shared/ledger/history-store.ts';
import type { Lane } from '../shared/queue/fair-share.ts';
import type { JobQueue } from '../shared/queue/job-queue.ts';
import type { ImageJob } from '../shared/queue/job-kinds.ts';
import type { WorkerRegistryStore } from '../shared/queue/worker-registry-store.ts';
import type { ReasoningStore } from '../shared/reasoning/reasoning-store.ts';
import type { RedisClient } from '../shared/redis/redis-client.ts';
import type { Config } from '../shared/runtime/config.ts';
import type { Logger } from '../shared/runtime/logger.ts';
import type { MongoConnection } from '../shared/storage/mongo-client.ts';
import type { ObjectStore } from '../shared/storage/object-store.ts';
import type { FiguresCache } from '../shared/traffic/figures-cache.ts';
import type { ModelSums, TotalSums } from '../shared/traffic/traffic-sums.ts';
import type { WebStores } from '../shared/web/web-stores.ts';
import type { MailQueue } from '../shared/web/mail-queue.ts';
import type { Captcha } from './captcha/captcha.ts';
import type { EmailCodeStore } from './web/email-code-store.ts';
import type { Limits } from './web/limits.ts';
import type { BulkShares } from './dispatch/bulk-shares.ts';
import type { ChatDispatcher } from './dispatch/dispatch-chat.ts';
import type { JobWaiting } from './dispatch/dispatch-job.ts';
import type { DurableJobs } from './dispatch/durable-jobs.ts';
import type { EmbeddingBatcher } from './dispatch/embedding-batcher.ts';
import type { BodyTimes } from './middleware/body-pace.ts';
import type { DocumentReader } from './files/document-reader.ts';
import type { RecentRefusals } from './middleware/recent-refusals.ts';

/** What the account area works with, beside the accounts that users link. */
export interface WebServices extends WebStores {
  readonly captcha: Captcha;
  readonly emailCodes: EmailCodeStore;
  readonly limits: Limits;
  readonly mails: MailQueue;
  /** Ends of actions that are being written down, and their notices queued: a process that stops waits for them. */
  readonly unfinished: Set<Promise<void>>;
}

/** What middleware and endpoints are handed; made once a process. */
export interface Services {
  readonly config: Config;
  readonly log: Logger;
  readonly redis: RedisClient;
  readonly mongo: MongoConnection;
  readonly objects: ObjectStore;
  readonly catalog: CatalogStore;
  readonly accounts: AccountStore;
  readonly apiKeys: ApiKeyStore;
  readonly hotAccounts: HotAccountStore;
  /** How long a caller waits for its account to be loaded from MongoDB. */
  readonly accountWaitMs: number;
  /** How long a caller waits for what MongoDB is asked on its behalf, its turn included. */
  readonly databaseWaitMs: number;
  readonly refusals: RecentRefusals;
  readonly codes: RefillCodeStore;
  readonly web: WebServices;
  readonly history: HistoryStore;
  readonly workers: WorkerRegistryStore;
  readonly chats: ChatDispatcher;
  readonly jobs: JobWaiting;
  readonly durableJobs: DurableJobs;
  readonly embeddings: EmbeddingBatcher;
  readonly images: Readonly<Record<Lane, JobQueue<ImageJob>>>;
  /** Of the workers' runs for accounts with much under way. */
  readonly bulkShares: BulkShares;
  /** What large bodies hold until they are answered, and others until they have come, by account. */
  readonly requestMemory: FairBudget;
  readonly bodyTimes: BodyTimes;
  readonly reasoning: ReasoningStore;
  readonly documents: DocumentReader;
  /** Bytes that large responses under way may hold together. */
  readonly responseMemory: FairBudget;
  /** Files on their way to callers, by the network of the caller. */
  readonly downloads: FairBudget;
  /** Reads of the object store for those. */
  readonly downloadReads: FairBudget;
  /** At MongoDB, for what callers read or change of their accounts. */
  readonly databaseTurns: FairBudget;
  /** Of the last half hour, by the id of the model. */
  readonly modelTraffic: FiguresCache<ReadonlyMap<string, ModelSums>>;
  /** Of the last day. */
  readonly totalTraffic: FiguresCache<TotalSums>;
  /** Where callers reach this server; known once it listens. */
  publicUrl: string;
}
