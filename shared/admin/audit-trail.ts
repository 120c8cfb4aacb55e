// decision 0098
import { AppError } from '../contract/errors.ts';
import { cleanText } from '../contract/mask-secrets.ts';
import { shorten } from '../platform/runtime/shorten.ts';
import type { AdminAction, ResourceType } from './admin-action.ts';
import type { Actor, AuditLogStore } from './audit-log-store.ts';

/** A change that is about to be made. */
export interface Change {
  readonly action: AdminAction;
  /** The resource that it concerns, such as an account's id. */
  readonly id: string;
  /** The account that it concerns, if that is not the resource: it is among the account's changes, too. */
  readonly accountId?: string;
  /** What the resource was like, without secrets. */
  readonly before?: object | null;
}

export interface AuditTrailOptions {
  readonly store: AuditLogStore;
  readonly actor: Actor;
  /** Why the operator makes the changes; null if nothing was given. */
  readonly reason: string | null;
  /** Whether an error shows that the change was not made; by default a client error (4xx). */
  readonly isRejection?: (error: unknown) => boolean;
  /** Called if a change was made, but its end could not be recorded: the log shows it as started. */
  readonly onUnrecorded: (error: unknown) => void;
}

/** How to undo a change whose caller no longer waits for its result, such as a new secret, which nobody else can have. */
export interface Undoing<T> {
  /** Aborted once the caller has its error; undefined for a caller that waits for as long as it takes. */
  readonly timedOut: AbortSignal | undefined;
  readonly undo: (result: T) => Promise<void>;
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
   * @param undoing for a change that is not made, or is undone and recorded as failed, if its caller does not get the result
   * @throws AppError `service_unavailable` if the change cannot be recorded
   */
  async run<T>(
    { action, id, accountId, before = null }: Change,
    work: () => Promise<T>,
    describe: (result: T) => object | null = () => null,
    undoing?: Undoing<T>,
  ): Promise<T> {
    const { store, actor, reason, onUnrecorded, isRejection = isClientError } = this.#options;
    const resourceType = action.slice(0, action.indexOf('.')) as ResourceType;
    const eventId = await store.start({
      ...actor,
      action,
      resourceType,
      resourceId: id,
      ...(accountId === undefined ? {} : { accountId }),
      reason: reason === null ? null : cleanText(reason),
      before,
    });
    const end = async (how: Parameters<AuditLogStore['finish']>[1]): Promise<void> => {
      await store.finish(eventId, how).catch((error: unknown) => onUnrecorded(error));
    };
    try {
      undoing?.timedOut?.throwIfAborted();
      const result = await work();
      await undoIfLate(result, undoing);
      await end({ outcome: 'done', after: describe(result), error: null });
      // Recording the end may have taken long, too. Nothing is awaited between this check and the response.
      await undoIfLate(result, undoing);
      return result;
    } catch (error) {
      const { timedOut } = undoing ?? {};
      const isUndone = timedOut?.aborted === true && error === timedOut.reason;
      if (isUndone || isRejection(error))
        await end({
          outcome: 'failed',
          after: null,
          error: shorten((error as Error).message, maxErrorLength),
        });
      throw error;
    }
  }
}

async function undoIfLate<T>(result: T, undoing: Undoing<T> | undefined): Promise<void> {
  if (undoing?.timedOut?.aborted !== true) return;
  await undoing.undo(result);
  undoing.timedOut.throwIfAborted();
}

/** A caller that left is not a rejection: what it asked for may be under way. */
export const isClientError = (error: unknown): boolean =>
  error instanceof AppError && error.status < 500 && error.code !== 'job_cancelled';
