import { createThrottledWarning } from '../../../shared/platform/runtime/throttled-warning.ts';
import { UpstreamError, type UpstreamLogger } from '../upstream.ts';
import { findFittingLimit } from './fit-limit.ts';

type Body = Readonly<Record<string, unknown>>;

/** Fields that the gateway adds, and that some servers refuse. */
export type AddedField = 'temperature' | 'encoding_format';

/** What to change in requests to a model. */
interface Changes {
  readonly omitted: ReadonlySet<AddedField>;
  /** Whether the server knows the limit as `max_completion_tokens` only. */
  readonly renamesLimit: boolean;
}

/** A request that was refused, changed. */
export interface Mended {
  readonly body: Body;
  /** What to change in later requests as well; null if only this one was wrong. */
  readonly changes: Changes | null;
  /** The server's words. */
  readonly reason: string;
}

const dayMs = 24 * 60 * 60 * 1_000;
/** OpenAI's newer models: "Unsupported parameter: 'max_tokens' … Use 'max_completion_tokens' instead." */
const wordsOfOlderLimit = ["'max_tokens'", "'max_completion_tokens'"];
const isOlderLimit = (message: string): boolean =>
  /unsupported|not supported/i.test(message) && wordsOfOlderLimit.every((word) => message.includes(word));
const limitFields = ['max_tokens', 'max_completion_tokens'];

/**
 * Changes requests that a server of an upstream has refused for something that the caller did not ask for: a field that
 * the gateway added, the name of the limit, or a limit that leaves no room for the prompt. The first two are remembered
 * by model, so that only the first request is sent twice.
 */
export class RejectedFields {
  readonly #changes = new Map<string, Changes>();
  readonly #warn = createThrottledWarning(
    (line, fields: object, log: Pick<UpstreamLogger, 'warn'>) => log.warn(fields, line),
    { intervalMs: dayMs },
  );

  /** Returns the body as the model's server takes it, as far as that is known. */
  adapt(model: string, body: Body, added: ReadonlySet<AddedField>): Body {
    const changes = this.#changes.get(model);
    return changes === undefined ? body : change(body, changes, added);
  }

  /** Returns what to send instead of a body that was refused; null if nothing would help. */
  mend(body: Body, added: ReadonlySet<AddedField>, error: unknown): Mended | null {
    if (!(error instanceof UpstreamError) || error.failure !== 'rejected') return null;
    const { message } = error;
    const omitted = [...added].filter((field) => field in body && message.includes(field));
    const changes = { omitted: new Set(omitted), renamesLimit: isOlderLimit(message) };
    const changed = change(body, changes, added);
    if (changed !== body) return { body: changed, changes, reason: message };
    const lowered = lowerLimit(body, error);
    return lowered === null ? null : { body: lowered, changes: null, reason: message };
  }

  /**
   * Remembers what made the server take a request. Not before it did: a caller can bring about that a refusal names a
   * field.
   */
  remember(model: string, { changes, reason }: Mended, log: Pick<UpstreamLogger, 'warn'>): void {
    if (changes === null) return;
    const known = this.#changes.get(model);
    this.#changes.set(model, {
      omitted: new Set([...changes.omitted, ...(known?.omitted ?? [])]),
      renamesLimit: changes.renamesLimit || known?.renamesLimit === true,
    });
    this.#warn(
      'server rejected a field that the gateway added, or its name; later requests to the model are sent without it',
      { upstreamModel: model, reason },
      log,
    );
  }
}

/** @returns the same body if nothing in it changes */
function change(body: Body, { omitted, renamesLimit }: Changes, added: ReadonlySet<AddedField>): Body {
  const fields = [...omitted].filter((field) => added.has(field) && field in body);
  const { max_tokens: limit } = body;
  const isRenamed = renamesLimit && limit !== undefined;
  if (fields.length === 0 && !isRenamed) return body;
  const changed = { ...body };
  for (const field of fields) delete changed[field];
  if (isRenamed) {
    delete changed['max_tokens'];
    changed['max_completion_tokens'] = limit;
  }
  return changed;
}

function lowerLimit(body: Body, error: UpstreamError): Body | null {
  const field = limitFields.find((name) => typeof body[name] === 'number');
  const fitting = field === undefined ? null : findFittingLimit(error, body[field] as number);
  return fitting === null ? null : { ...body, [field!]: fitting };
}
