import type { IncomingMessage } from 'node:http';
import { AppError, invalidField } from '../../shared/contract/errors.ts';
import { defaultBodyLimitBytes, type Operation } from '../../shared/contract/operation.ts';
import { shorten } from '../../shared/runtime/shorten.ts';
import { ChunkList } from '../../shared/runtime/chunk-list.ts';
import { Utf8Check } from '../../shared/runtime/utf8-check.ts';
import type { BudgetShare } from '../../shared/fairness/fair-budget.ts';
import { nextWorkTurn } from '../../shared/fairness/work-turns.ts';
import type { Services } from '../services.ts';
import { smallBodyBytes } from './body-pace.ts';
import type { BodyReader } from './body-reader.ts';
import { FormReader } from './form-reader.ts';
import { JsonBodyReader, parseSmallJson, toJsonError } from './json-body.ts';
import { JsonStructure } from './json-structure.ts';
import { checkBeforeBody, preAdmitBody } from './pre-admit.ts';
import { readChunks } from './read-chunks.ts';
import type { ApiContext, ApiMiddleware } from './request-context.ts';
import { requesterOf } from './requester.ts';

/**
 * Reads a body, JSON or a form where the operation takes one, within the operation's bound. A large one is read only once the account may send it, counts in what
 * all bodies of the process may hold until it is answered, and is parsed as it comes.
 */
export function parseBody(operation: Operation, services: Services): ApiMiddleware {
  const limitBytes = operation.bodyLimitBytes ?? defaultBodyLimitBytes;
  return async (context, next) => {
    checkType(context, operation);
    // Absent from a body that is sent in chunks.
    const announced = context.request.length ?? 0;
    if (announced > limitBytes) throw tooLarge(limitBytes);
    const body = new IncomingBody(services, context, operation);
    if (announced > smallBodyBytes) await body.becomeLarge(announced);
    else if (operation.modelTypes !== undefined && expectsContinue(context.req))
      // A caller who waits to be told to go on hears first of all that can be known without the body.
      await checkBeforeBody(services, context, operation.modelTypes);
    context.state.body = await body.read(limitBytes);
    await next();
  };
}

/** HTTP/1.0 has no interim responses, and an expectation in it counts for nothing. */
const expectsContinue = ({ headers, httpVersion }: IncomingMessage): boolean =>
  headers.expect !== undefined && httpVersion !== '1.0';

const formType = 'multipart/form-data';

const isForm = (context: ApiContext, { formBody }: Operation): boolean =>
  formBody !== undefined && context.is(formType) === formType;

function checkType(context: ApiContext, operation: Operation): void {
  const isJson = context.is('application/json');
  // Without a body there is nothing that could be of a wrong type.
  if (isJson === null) return;
  if (isJson === false && !isForm(context, operation)) {
    const type = context.get('content-type');
    const text = type === '' ? 'The request has no Content-Type.' : `The Content-Type is ${shorten(type)}.`;
    const types =
      operation.formBody === undefined ? '"application/json"' : `"application/json" or "${formType}"`;
    throw new AppError('unsupported_media_type', { message: `${text} Send ${types}.` });
  }
  const charset = context.request.charset.toLowerCase();
  if (charset !== '' && charset !== 'utf-8' && charset !== 'utf8') {
    throw new AppError('unsupported_media_type', {
      message: `The charset is ${shorten(charset)}. Send UTF-8.`,
    });
  }
  // A few kilobytes can inflate to anything; no client of the API compresses what it sends.
  const encoding = context.get('content-encoding').toLowerCase();
  if (encoding !== '' && encoding !== 'identity') {
    throw new AppError('unsupported_media_type', {
      message: `The Content-Encoding is ${shorten(encoding)}. Send the body as it is.`,
    });
  }
}

/** A chunk of 64 KB takes as long where it holds many small values; of long texts a megabyte or two are read meanwhile. */
const readingTurnMs = 4;

/** One body while it is read: small until it is known to be large, by its header or by what has come of it. */
class IncomingBody {
  readonly #services: Services;
  readonly #context: ApiContext;
  readonly #operation: Operation;
  readonly #isForm: boolean;
  readonly #utf8 = new Utf8Check();
  readonly #structure = new JsonStructure();
  readonly #chunks = new ChunkList();
  #length = 0;
  /** Of the memory for bodies: held from the first part of a body that is not the whole of it. */
  #share: BudgetShare | null = null;
  /** Null while the body is small. */
  #reader: BodyReader | null = null;
  /** Time spent on reading since its turn began. */
  #spentMs = 0;
  #isReading = true;

  constructor(services: Services, context: ApiContext, operation: Operation) {
    this.#services = services;
    this.#context = context;
    this.#operation = operation;
    this.#isForm = isForm(context, operation);
  }

  /**
   * Asks whether the account may send a large body, before more of it is read.
   * @param atLeastBytes of its length, as far as it is known
   */
  async becomeLarge(atLeastBytes: number): Promise<void> {
    const { modelTypes } = this.#operation;
    if (modelTypes === undefined) throw new AppError('payload_too_large');
    const { requestMemory } = this.#services;
    const requester = requesterOf(this.#context);
    this.#release();
    // What is only announced takes no memory yet, but is not begun where it could not be read to its end now.
    const whole = requestMemory.tryAcquire(requester, atLeastBytes);
    if (whole === null) throw noMemory();
    whole.release();
    await preAdmitBody(this.#services, this.#context, modelTypes);
    this.#hold(Math.max(this.#length, smallBodyBytes));
    // What was read of it lives on until the reading ends, also where somebody else has answered the request.
    this.#context.res.once('close', () => {
      if (!this.#isReading) this.#release();
    });
    this.#reader = this.#createReader();
    for (const chunk of this.#chunks.takeChunks()) await this.#reader.push(chunk);
  }

  async read(limitBytes: number): Promise<unknown> {
    const { req, res } = this.#context;
    if (expectsContinue(req)) res.writeContinue();
    try {
      await readChunks(req, this.#services.bodyTimes, {
        isLarge: () => this.#reader !== null,
        take: (chunk) => this.#take(chunk, limitBytes),
      });
      if (!this.#isForm) checkUtf8(this.#utf8.end());
      if (this.#reader !== null) {
        if (this.#share !== null)
          this.#context.state.bodyMemory = { share: this.#share, textBytes: this.#length };
        return await this.#reader.end();
      }
      this.#release();
      return await this.#parseSmall();
    } catch (error) {
      // Nothing of it is kept, while its caller may take a while to hear of that.
      this.#release();
      throw error;
    } finally {
      this.#isReading = false;
      if (res.destroyed) this.#release();
    }
  }

  /** @throws AppError where there is not so much for the requester */
  #hold(bytes: number): void {
    // Its caller has gone, or was answered: nobody wants the rest.
    if (this.#context.res.destroyed) throw new AppError('job_cancelled');
    if (this.#share?.tryGrow(bytes) === true) return;
    this.#share ??= this.#services.requestMemory.tryAcquire(requesterOf(this.#context), bytes);
    if (this.#share === null || this.#share.amount < bytes) throw noMemory();
  }

  #release(): void {
    this.#share?.release();
    this.#share = null;
  }

  #take(chunk: Buffer, limitBytes: number): void | Promise<void> {
    this.#length += chunk.length;
    if (this.#length > limitBytes) throw tooLarge(limitBytes);
    if (!this.#isForm) checkUtf8(this.#utf8.push(chunk));
    return this.#reader === null ? this.#takeSmall(chunk) : this.#takeLarge(chunk, this.#reader);
  }

  #takeSmall(chunk: Buffer): void | Promise<void> {
    this.#chunks.add(chunk);
    if (this.#length > smallBodyBytes) return this.becomeLarge(this.#length);
    const fault = this.#isForm ? null : this.#structure.push(chunk);
    if (fault !== null) throw toJsonError(fault);
    // Most small bodies are whole at once, and hold nothing that could be held for long.
    const { req, request } = this.#context;
    if (!req.complete && this.#length !== request.length) this.#hold(this.#length);
    return undefined;
  }

  /** A connection brings up to two megabytes before the event loop does anything else, so it is stopped in between. */
  #takeLarge(chunk: Buffer, reader: BodyReader): void | Promise<void> {
    const startedMs = performance.now();
    const read = reader.push(chunk);
    this.#spentMs += performance.now() - startedMs;
    return read === undefined ? this.#countRead(reader) : read.then(() => this.#countRead(reader));
  }

  #countRead(reader: BodyReader): void | Promise<void> {
    this.#hold(this.#length + reader.extraBytes);
    if (this.#spentMs < readingTurnMs) return undefined;
    this.#spentMs = 0;
    return nextWorkTurn(requesterOf(this.#context));
  }

  async #parseSmall(): Promise<unknown> {
    // An empty body is taken for an empty object: what it lacks is then named field by field.
    if (this.#length === 0) return {};
    const bytes = this.#chunks.take();
    if (!this.#isForm) return parseSmallJson(bytes);
    const reader = this.#createReader();
    await reader.push(bytes);
    return await reader.end();
  }

  #createReader(): BodyReader {
    if (!this.#isForm) return new JsonBodyReader(this.#operation.bodyIntegers ?? 0);
    const { body, formFiles } = this.#operation;
    return new FormReader(this.#context.get('content-type'), { schema: body!, files: formFiles ?? [] });
  }
}

/** @param offset of a byte that is none of a text; negative where all are */
function checkUtf8(offset: number): void {
  if (offset < 0) return;
  const msg = `The body is not valid UTF-8: byte ${offset}, counted from 0, is part of no character. Send text in UTF-8.`;
  throw invalidField(['body'], msg, { type: 'unicode_invalid' });
}

export function noMemory(): AppError {
  return new AppError('queue_full', {
    message: 'The requests under way leave no memory for this body. Try again shortly.',
  });
}

/** @param what is larger than what the operation takes */
export function tooLarge(limitBytes: number, what = 'The body'): AppError {
  const size = limitBytes >= 1_000_000 ? `${limitBytes / 1_000_000} MB` : `${limitBytes / 1_000} KB`;
  return new AppError('payload_too_large', {
    message: `${what} is larger than the ${size} that this operation takes. Send less at once.`,
  });
}
