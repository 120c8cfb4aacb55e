// decision 0098
import { createTimeOrderedId, firstIdAt } from '../platform/runtime/time-ordered-id.ts';
import { callMongo, type Collection, type Database } from '../platform/storage/mongo-client.ts';
import { resourceTypes, type AdminAction, type ResourceType } from './admin-action.ts';

/** `started`: the change began, and how it ended is not known: the process died, or a store failed in between. */
const auditOutcomes = ['started', 'done', 'failed'] as const;
export type AuditOutcome = (typeof auditOutcomes)[number];

/** Who makes a change, and from where. */
export interface Actor {
  /** The name of the token, or `command`. */
  readonly token: string;
  /** Of the command. */
  readonly osUser: string | null;
  /** Of the call of the API. */
  readonly requestId: string | null;
  /** The address of the caller of the API. */
  readonly address: string | null;
}

/** A change by an operator. `before` and `after` have what it changes, without secrets. */
export interface AuditDocument extends Actor {
  /** Time-ordered. */
  readonly _id: string;
  readonly at: Date;
  readonly action: AdminAction;
  readonly resourceType: ResourceType;
  readonly resourceId: string;
  /** The account that it concerns, if it is not the resource itself. */
  readonly accountId?: string;
  /** Why the operator made it; null if nothing was given. Absent in events of earlier releases. */
  readonly reason?: string | null;
  readonly before: object | null;
  readonly after: object | null;
  readonly outcome: AuditOutcome;
  readonly endedAt: Date | null;
  /** Why it failed. */
  readonly error: string | null;
}

export interface AuditFilter {
  readonly token?: string | undefined;
  readonly resourceType?: ResourceType | undefined;
  readonly resourceId?: string | undefined;
  /** Included. */
  readonly since?: Date | undefined;
  /** Not included. */
  readonly until?: Date | undefined;
}

const retentionDays = 400;
/** MongoDB aborts a read of a page that takes longer. */
const limits = { maxTimeMS: 5_000 };

/** The audit log of operators' changes, in MongoDB. */
export class AuditLogStore {
  readonly #events: Collection<AuditDocument>;

  constructor(db: Database) {
    this.#events = db.collection('admin_audit');
  }

  async createIndexes(): Promise<void> {
    await this.#events.createIndex({ at: 1 }, { expireAfterSeconds: retentionDays * 86_400 });
    await this.#events.createIndex({ token: 1, _id: 1 });
    await this.#events.createIndex({ token: 1, resourceType: 1, _id: 1 });
    await this.#events.createIndex({ resourceType: 1, _id: 1 });
    await this.#events.createIndex({ resourceType: 1, resourceId: 1, _id: 1 });
    await this.#events.createIndex({ accountId: 1, _id: 1 });
    await this.#events.createIndex({ token: 1, accountId: 1, _id: 1 });
  }

  /** Records that a change begins. @returns the id of the event */
  async start(
    event: Actor &
      Pick<AuditDocument, 'action' | 'resourceType' | 'resourceId' | 'accountId' | 'reason' | 'before'>,
  ): Promise<string> {
    const { token, osUser, requestId, address, action, resourceType, resourceId, accountId } = event;
    const { reason = null, before } = event;
    const _id = createTimeOrderedId();
    await callMongo(() =>
      this.#events.insertOne({
        _id,
        at: new Date(),
        token,
        osUser,
        requestId,
        address,
        action,
        resourceType,
        resourceId,
        ...(accountId === undefined ? {} : { accountId }),
        reason,
        before,
        after: null,
        outcome: 'started',
        endedAt: null,
        error: null,
      }),
    );
    return _id;
  }

  /** Records how a change ended. */
  async finish(id: string, end: Pick<AuditDocument, 'outcome' | 'after' | 'error'>): Promise<void> {
    await callMongo(() => this.#events.updateOne({ _id: id }, { $set: { ...end, endedAt: new Date() } }));
  }

  async findById(id: string): Promise<AuditDocument | null> {
    return await callMongo(() => this.#events.findOne({ _id: id }, limits));
  }

  /**
   * Lists events, newest first. Those of an account include changes of other resources that concern it.
   * @param after the last event of the page before; null for the newest
   */
  async list(
    { token, resourceType, resourceId, since, until }: AuditFilter,
    { after, limit }: { readonly after: string | null; readonly limit: number },
  ): Promise<AuditDocument[]> {
    // The page before, or the end of the period: whichever is earlier.
    const [before] = [after, until === undefined ? null : firstIdAt(until.getTime())]
      .filter((id) => id !== null)
      .toSorted();
    const ids = {
      ...(before === undefined ? {} : { $lt: before }),
      ...(since === undefined ? {} : { $gte: firstIdAt(since.getTime()) }),
    };
    const find = (filter: object): Promise<AuditDocument[]> => {
      const whole = {
        ...(token === undefined ? {} : { token }),
        ...filter,
        ...(Object.keys(ids).length === 0 ? {} : { _id: ids }),
      };
      return callMongo(() => this.#events.find(whole, limits).sort({ _id: -1 }).limit(limit).toArray());
    };
    const ofResource = find(selectResource(resourceType, resourceId));
    const mayBeAccount = resourceType === undefined || resourceType === 'account';
    if (!mayBeAccount || resourceId === undefined) return await ofResource;
    // Each read has an index of its own.
    const found = (await Promise.all([ofResource, find({ accountId: resourceId })])).flat();
    return found.toSorted((one, other) => (one._id < other._id ? 1 : -1)).slice(0, limit);
  }
}

/** The index begins with the type. */
function selectResource(type: ResourceType | undefined, id: string | undefined): object {
  if (id === undefined) return type === undefined ? {} : { resourceType: type };
  return { resourceType: type ?? { $in: [...resourceTypes] }, resourceId: id };
}
