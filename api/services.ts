import type { AccountStore } from '../shared/accounts/account-store.ts';
import type { ApiKeyStore } from '../shared/accounts/api-key-store.ts';
import type { HotAccountStore } from '../shared/accounts/hot-account-store.ts';
import type { CatalogStore } from '../shared/catalog/catalog-store.ts';
import type { Config } from '../shared/platform/config/config.ts';
import type { FairBudget } from '../shared/fairness/fair-budget.ts';
import type { Holdings } from '../shared/fairness/holdings.ts';
import type { HistoryStore } from './endpoints/users/history-store.ts';
import type { RequestLogStore } from '../shared/ledger/request-log-store.ts';
import type { ReasoningStore } from '../shared/work/reasoning-store.ts';
import type { ProcessMetrics } from '../shared/platform/metrics/process-metrics.ts';
import type { DoctorReport } from '../shared/doctor/finding.ts';
import type { Demand } from '../shared/work/demand/demand.ts';
import type { RecentReading } from './operator/recent-reading.ts';
import type { UpstreamState } from './operator/watch-upstreams.ts';
import type { ConditionBoard } from './operator/conditions/condition-board.ts';
import type { RequestMetrics } from './http/responses/request-metrics.ts';
import type { RedisClient } from '../shared/platform/redis/redis-client.ts';
import type { RefillCodeStore } from '../shared/accounts/refill-code-store.ts';
import type { Logger } from '../shared/platform/runtime/logger.ts';
import type { Tracing } from '../shared/platform/tracing/tracing.ts';
import type { MongoConnection } from '../shared/platform/storage/mongo-client.ts';
import type { ObjectStore } from '../shared/platform/storage/object-store.ts';
import type { Traffic } from './endpoints/admin/overview/describe-traffic.ts';
import type { StatsCache } from './endpoints/public/stats-cache.ts';
import type { BucketSums } from '../shared/ledger/request-stats-store.ts';
import type { ModelSums, TotalSums } from '../shared/ledger/request-sums.ts';
import type { MailQueue } from '../shared/account-area/mail-queue.ts';
import type { WebStores } from '../shared/account-area/web-stores.ts';
import type { RefillListStore } from '../shared/ledger/refill-list-store.ts';
import type { PriceStore } from '../shared/ledger/price-store.ts';
import type { LedgerStore } from '../shared/ledger/ledger-store.ts';
import type { AdminAccess } from './admin/admin-access.ts';
import type { SessionAccounts } from './account-area/session-accounts.ts';
import type { FundedAccounts } from './admission/funded-accounts.ts';
import type { KeyAccessCache } from './admission/key-access-cache.ts';
import type { RecentRejections } from './admission/recent-rejections.ts';
import type { RejectionLog } from './admission/rejection-log.ts';
import type { RejectedBodies } from './admission/rejected-bodies.ts';
import type { BodyTimes } from './http/bodies/body-pace.ts';
import type { UnpaidTime } from './http/callers/unpaid-time.ts';
import type { FileStore } from '../shared/work/files/file-store.ts';
import type { Captcha } from './account-area/captcha/captcha.ts';
import type { Dispatch } from './requests/dispatch/create-dispatch.ts';
import type { DocumentReader } from '../shared/preparing/documents/document-reader.ts';
import type { Batches } from '../shared/work/batches/batches.ts';
import type { SystemReader } from './operator/conditions/system-reader.ts';
import type { JobPolls } from './jobs/job-polls.ts';
import type { BrandFiles } from './pages/site/brand-files.ts';
import type { EmailCodeStore } from './account-area/email-code-store.ts';
import type { Limits } from './account-area/limits.ts';
import type { SignupGrants } from './account-area/signup-grants.ts';

/** Services that only the account area uses. */
export interface WebServices extends WebStores {
  readonly captcha: Captcha;
  readonly emailCodes: EmailCodeStore;
  readonly grants: SignupGrants;
  readonly limits: Limits;
  readonly mails: MailQueue;
  /**
   * Completed actions that are still being recorded and whose notices are still being queued. A stopping process waits
   * for them.
   */
  readonly unfinished: Set<Promise<void>>;
}

/** Dependencies of middleware and endpoints, created once per process. */
export interface Services extends Dispatch {
  readonly config: Config;
  readonly log: Logger;
  readonly metrics: ProcessMetrics;
  /**
   * The metrics that this process shows: its own, or those of all api processes that share its port.
   * @throws AppError `service_unavailable`
   */
  readonly writeMetrics: () => Promise<string>;
  readonly requestMetrics: RequestMetrics;
  /** Null unless traces are exported. */
  readonly tracing: Tracing | null;
  /** What waits and runs in all processes together. */
  readonly demand: RecentReading<Demand>;
  /** Slots, breakers and keys of upstreams. */
  readonly upstreams: RecentReading<readonly UpstreamState[]>;
  /** What is wrong, as this process sees it. */
  readonly conditions: Pick<ConditionBoard, 'list'>;
  /** What `admin doctor` finds, from this process. */
  readonly doctor: RecentReading<DoctorReport>;
  /** The state of the stores and the workers. */
  readonly system: SystemReader;
  /** Whether this process has stopped to take requests. */
  isStopping: boolean;
  readonly redis: RedisClient;
  readonly mongo: MongoConnection;
  readonly objects: ObjectStore;
  readonly files: FileStore;
  readonly catalog: CatalogStore;
  readonly accounts: AccountStore;
  readonly apiKeys: ApiKeyStore;
  readonly hotAccounts: HotAccountStore;
  /** How long a caller waits for its account to be loaded from MongoDB. */
  readonly accountWaitMs: number;
  /** How long an event stream may be silent before its first comment. */
  readonly firstCommentMs: number;
  /** How long a caller waits for MongoDB, including its turn. */
  readonly databaseWaitMs: number;
  /** Concurrent calls that do not call a model, by account or session: short ones, and event streams. */
  readonly calls: { readonly short: Holdings; readonly streams: Holdings };
  /** When and from where keys may be used, for operations without admission. */
  readonly keyAccess: KeyAccessCache;
  readonly recentRejections: RecentRejections;
  readonly rejections: RejectionLog;
  /** Large bodies that were read for nothing, by account. */
  readonly rejectedBodies: RejectedBodies;
  /** Accounts that are known to have money. The work of their calls is not limited by network. */
  readonly funded: FundedAccounts;
  /** The accounts that sessions act for. */
  readonly sessionAccounts: SessionAccounts;
  /** The process's time that unpaid calls use, by network. */
  readonly unpaidTime: UnpaidTime;
  readonly codes: RefillCodeStore;
  readonly web: WebServices;
  /** Who calls the admin API. */
  readonly admin: AdminAccess;
  readonly ledger: LedgerStore;
  /** Prices that requests were charged by. */
  readonly prices: PriceStore;
  readonly history: HistoryStore;
  readonly refills: RefillListStore;
  readonly requestLog: RequestLogStore;
  /**
   * Memory for request bodies, by account. Large bodies occupy it until their responses are sent, others until they
   * have arrived.
   */
  readonly requestMemory: FairBudget;
  /** Memory for uploads of files, by account. */
  readonly uploadMemory: FairBudget;
  readonly bodyTimes: BodyTimes;
  readonly reasoning: ReasoningStore;
  readonly documents: DocumentReader;
  readonly batches: Batches;
  /** Memory budget in bytes for all large responses in progress. */
  readonly responseMemory: FairBudget;
  /** Downloads in progress, by the client's network. */
  readonly downloads: FairBudget;
  /** Concurrent reads of the object store for downloads. */
  readonly downloadReads: FairBudget;
  /** Turns at Redis of callers that read their accounts or jobs. */
  readonly redisTurns: FairBudget;
  /** Look-ups of jobs that callers follow. */
  readonly jobPolls: JobPolls;
  /** Database turns for callers that read or change their accounts. */
  readonly databaseTurns: FairBudget;
  /** Request stats of the last half hour, by model id. */
  readonly modelStats: StatsCache<ReadonlyMap<string, ModelSums>>;
  /** Request stats of each of the last 24 hours, by model id. */
  readonly hourlyStats: StatsCache<readonly BucketSums[]>;
  /** What operators see of the requests of the last hour and day. */
  readonly traffic: StatsCache<Traffic>;
  /** Request stats of the last day. */
  readonly totalStats: StatsCache<TotalSums>;
  /** What pages load of the operator's brand. */
  readonly brand: BrandFiles;
  /** Public URL of this server; known once it listens. */
  publicUrl: string;
}
