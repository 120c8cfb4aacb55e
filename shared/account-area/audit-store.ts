import { createTimeOrderedId } from '../platform/runtime/time-ordered-id.ts';
import type { WebDatabase } from './web-database-store.ts';
import type { AuditEvent } from './web-models.ts';

/** A new event. Omitted fields are null. By default an event is `started` and sends no notice. */
export type NewAuditEvent = Pick<AuditEvent, 'userId' | 'action'> &
  Partial<Omit<AuditEvent, '_id' | 'userId' | 'action' | 'at' | 'grant'>>;

/** What an action adds to its event at its end. */
export type AuditDetails = Pick<AuditEvent, 'grant'>;

/**
 * The audit log. A sensitive action is recorded before it is carried out, so that none goes unnoticed. After a crash in
 * between, the event's notice is still pending, and a worker sends it.
 */
export class AuditStore {
  readonly #database: WebDatabase;

  constructor(database: WebDatabase) {
    this.#database = database;
  }

  /** @returns the id of the event */
  async start(event: NewAuditEvent): Promise<string> {
    const {
      userId,
      action,
      linkId = null,
      accountId = null,
      label = null,
      address = null,
      device = null,
    } = event;
    const { sessionId = null, requestId = null, outcome = 'started', notice = 'none' } = event;
    const _id = createTimeOrderedId();
    const origin = { address, device, sessionId, requestId };
    const document: AuditEvent = {
      _id,
      userId,
      linkId,
      accountId,
      label,
      action,
      at: new Date(),
      ...origin,
      outcome,
      notice,
    };
    await this.#database.call(({ audit }) => audit.create(document));
    return _id;
  }

  /**
   * Records the outcome of a started action. A failed action changed nothing, so the user gets no mail.
   * @param details what became known only at its end
   */
  async finish(
    id: string,
    outcome: 'done' | 'failed',
    details: AuditDetails = {},
  ): Promise<AuditEvent | null> {
    const notice = outcome === 'failed' ? { notice: 'none' as const } : {};
    return await this.#update(id, { outcome, ...notice, ...details });
  }

  /** Records that the notice to the user has been queued. */
  async markQueued(id: string): Promise<void> {
    await this.#update(id, { notice: 'queued' });
  }

  /** Finds events before `olderThan` whose notice is still pending, oldest first. */
  async findPending(olderThan: Date, limit: number): Promise<AuditEvent[]> {
    return await this.#database.call(({ audit }) =>
      audit
        .find({ notice: 'pending', at: { $lt: olderThan } })
        .sort({ at: 1 })
        .limit(limit)
        .lean<AuditEvent[]>()
        .exec(),
    );
  }

  /** Lists the user's events, newest first. */
  async list(userId: string, limit: number): Promise<AuditEvent[]> {
    return await this.#database.call(({ audit }) =>
      audit.find({ userId }).sort({ at: -1, _id: -1 }).limit(limit).lean<AuditEvent[]>().exec(),
    );
  }

  async #update(
    id: string,
    change: Partial<Pick<AuditEvent, 'outcome' | 'notice' | 'grant'>>,
  ): Promise<AuditEvent | null> {
    return await this.#database.call(({ audit }) =>
      audit
        .findOneAndUpdate({ _id: id }, { $set: change }, { returnDocument: 'after' })
        .lean<AuditEvent>()
        .exec(),
    );
  }
}
