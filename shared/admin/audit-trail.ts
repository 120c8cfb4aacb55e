// decision 0098
import { AppError } from '../contract/errors.ts';
import { shorten } from '../platform/runtime/shorten.ts';
import type { AdminAction, ResourceType } from './admin-action.ts';
import type { Actor, AuditLogStore } from './audit-log-store.ts';

/** A change that is about to be made. */
export interface Change {
  readonly action: AdminAction;
  /** The resource that it concerns, such as an account's id. */
  readonly id: string;
  /** What the resource was like, without secrets. */
  readonly before?: object | null;
}

export interface AuditTrailOptions {
  readonly store: AuditLogStore;
  readonly actor: Actor;
  /** Whether an error shows that the change was not made; by default a client error (4xx). */
  readonly isRejection?: (error: unknown) => boolean;
  /** Called if a change was made, but its end could not be recorded: the log shows it as started. */
  readonly onUnrecorded: (error: unknown) => void;
}

const maxErrorLength = 500;

/** Records the changes of one operator in the audit log. */
export class AuditTrail {
  readonly #options: AuditTrailOptions;

  constructor(options: AuditTrailOptions) {
    this.#options = options;
  }

  get actor(): Actor {
    return this.#options.actor;
  }

  /**
   * Makes a change. It is recorded first, and is not made if that fails. A change that is rejected (4xx) is recorded as
   * failed. After any other error it is not known whether the change was made: it stays `started`, as it does if this
   * process dies.
   * @param describe what the resource is like afterwards, without secrets
   * @throws AppError `service_unavailable` if the change cannot be recorded
   */
  async run<T>(
    { action, id, before = null }: Change,
    work: () => Promise<T>,
    describe: (result: T) => object | null = () => null,
  ): Promise<T> {
    const { store, actor, onUnrecorded, isRejection = isClientError } = this.#options;
    const resourceType = action.slice(0, action.indexOf('.')) as ResourceType;
    const eventId = await store.start({ ...actor, action, resourceType, resourceId: id, before });
    let result: T;
    try {
      result = await work();
    } catch (error) {
      if (isRejection(error)) {
        const text = shorten((error as Error).message, maxErrorLength);
        await store
          .finish(eventId, { outcome: 'failed', after: null, error: text })
          .catch((unrecorded: unknown) => onUnrecorded(unrecorded));
      }
      throw error;
    }
    await store
      .finish(eventId, { outcome: 'done', after: describe(result), error: null })
      .catch((error: unknown) => onUnrecorded(error));
    return result;
  }
}

export const isClientError = (error: unknown): boolean => error instanceof AppError && error.status < 500;
