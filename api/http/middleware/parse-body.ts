// decision 0011
import type { IncomingMessage } from 'node:http';
import { AppError } from '../../../shared/contract/errors.ts';
import { defaultBodyLimitBytes, type Operation } from '../../../shared/contract/operation.ts';
import { tooLarge } from '../../../shared/contract/too-large.ts';
import { modelTypes, type ModelType } from '../../../shared/contract/models.ts';
import { nextWorkTurn } from '../../../shared/fairness/work-turns.ts';
import { ChunkList } from '../../../shared/platform/runtime/chunk-list.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import { checkBeforeBody, preAdmitBody } from '../../admission/pre-admit.ts';
import { BodyCheck } from '../bodies/body-check.ts';
import { smallBodyBytes } from '../bodies/body-pace.ts';
import type { BodyReader } from '../bodies/body-reader.ts';
import { BodyShare } from '../bodies/body-share.ts';
import { createBoundedReader } from '../bodies/bounded-body.ts';
import { FormReader } from '../bodies/form-reader.ts';
import { JsonBodyReader, parseSmallJson } from '../../../shared/preparing/json-body.ts';
import { readChunks } from '../bodies/read-chunks.ts';
import { noMemory } from '../bodies/body-errors.ts';
import type { ApiContext, ApiMiddleware } from '../request/context.ts';
import { requesterOf } from '../request/requester.ts';
import type { Services } from '../../services.ts';

/**
 * Reads a JSON body, or a form if the operation takes one, within the operation's limit. A large body is read only
 * after its account has been checked, is parsed as it arrives, and takes its memory from the process's budget for
 * request bodies until its response is sent.
 */
export function parseBody(services: Services, operation: Operation): ApiMiddleware {
  if (operation.bodyLimitBytes === undefined) return parseBoundedBody(services, operation);
  const limitBytes = operation.bodyLimitBytes;
  return async (context, next) => {
    checkType(context, operation);
    // Absent for chunked bodies.
    const announced = context.request.length ?? 0;
    if (announced > limitBytes) throw tooLarge(limitBytes);
    const body = new IncomingBody(services, context, operation, limitBytes);
    try {
      if (announced > smallBodyBytes) await body.becomeLarge(announced);
      else if (operation.modelTypes !== undefined && expectsContinue(context.req))
        // A caller that waits for `100 Continue` gets all errors that do not depend on the body before it sends the body.
        await checkBeforeBody(services, context, operation.modelTypes);
      context.state.body = await body.read();
      await next();
      body.end(null);
    } catch (error) {
      body.end(error);
      throw error;
    }
  };
}

function parseBoundedBody(services: Services, operation: Operation): ApiMiddleware {
  const readBody = createBoundedReader(services, defaultBodyLimitBytes);
  return async (context, next) => {
    checkType(context, operation);
    if ((context.request.length ?? 0) > defaultBodyLimitBytes) throw tooLarge(defaultBodyLimitBytes);
    if (expectsContinue(context.req)) context.res.writeContinue();
    context.state.body = await readBody(context);
    await next();
  };
}

/** HTTP/1.0 has no interim responses and ignores expectations. */
const expectsContinue = ({ headers, httpVersion }: IncomingMessage): boolean =>
  headers.expect !== undefined && httpVersion !== '1.0';

/** The models that a request may pay for. Null if it is not counted, and cannot be large. */
const typesOf = ({ modelTypes: types, isCounted }: Operation): readonly ModelType[] | null =>
  types ?? (isCounted === true ? modelTypes : null);

const formType = 'multipart/form-data';

const isForm = (context: ApiContext, { formBody }: Operation): boolean =>
  formBody !== undefined && context.is(formType) === formType;

function checkType(context: ApiContext, operation: Operation): void {
  const { headers } = context.req;
  // What most clients send needs no parsing.
  if (headers['content-type'] === 'application/json' && headers['content-encoding'] === undefined) return;
  const isJson = context.is('application/json');
  // Without a body, there is no type to check.
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
  // A few kilobytes can inflate to any size, and no API client compresses requests.
  const encoding = context.get('content-encoding').toLowerCase();
  if (encoding !== '' && encoding !== 'identity') {
    throw new AppError('unsupported_media_type', {
      message: `The Content-Encoding is ${shorten(encoding)}. Send the body uncompressed.`,
    });
  }
}

/**
 * Maximum time spent reading a body per event-loop turn: enough for 64 KB of many small values, or for a megabyte or
 * two of long texts.
 */
const readingTurnMs = 4;

/** A body that is being read. It is treated as small until its header or its received length shows that it is large. */
class IncomingBody {
  readonly #services: Services;
  readonly #context: ApiContext;
  readonly #operation: Operation;
  readonly #isForm: boolean;
  readonly #check: BodyCheck;
  readonly #chunks = new ChunkList();
  /** Memory for the body, from when a first part of an incomplete body has arrived. */
  readonly #share: BodyShare;
  /** Null while the body is small, and once it is read: a caller that waits for a job must not hold its body. */
  #reader: BodyReader | null = null;
  #isLarge = false;
  /** Time spent reading in the current event-loop turn (ms). */
  #spentMs = 0;
  #isReading = true;
  /** Bytes that already count as rejected. */
  #countedBytes = 0;

  constructor(services: Services, context: ApiContext, operation: Operation, limitBytes: number) {
    this.#services = services;
    this.#context = context;
    this.#operation = operation;
    this.#isForm = isForm(context, operation);
    this.#check = new BodyCheck(limitBytes, !this.#isForm);
    this.#share = new BodyShare(services, context);
  }

  /**
   * Treats the body as large from now on: checks whether the account may send it, before more of it is read.
   * @param minBytes the length of the body, as far as known
   */
  async becomeLarge(minBytes: number): Promise<void> {
    const modelTypes = typesOf(this.#operation);
    if (modelTypes === null) throw new AppError('payload_too_large');
    const { requestMemory, rejectedBodies } = this.#services;
    const requester = requesterOf(this.#context);
    this.#share.release();
    this.#countedBytes = await rejectedBodies.waitToSend(requester, minBytes, this.#context.state.signal);
    // Only check that there is enough memory for the whole body now. A body takes no memory before it arrives.
    const whole = requestMemory.tryAcquire(requester, minBytes);
    if (whole === null) throw noMemory();
    whole.release();
    await preAdmitBody(this.#services, this.#context, modelTypes);
    this.#share.hold(Math.max(this.#check.length, smallBodyBytes));
    // The part already read stays in memory until reading ends, even if a response has been sent before that.
    const onClose = (): void => {
      if (!this.#isReading) this.#share.release();
    };
    this.#context.state.signal.addEventListener('abort', onClose, { once: true });
    this.#reader = this.#createReader();
    this.#isLarge = true;
    for (const chunk of this.#chunks.takeChunks()) await this.#reader.push(chunk);
  }

  async read(): Promise<unknown> {
    const {
      req,
      res,
      state: { signal },
    } = this.#context;
    if (expectsContinue(req)) res.writeContinue();
    try {
      await readChunks(req, this.#services.bodyTimes, {
        isLarge: () => this.#reader !== null,
        onChunk: (chunk) => this.#measure(() => this.#readChunk(chunk)),
      });
      this.#check.end();
      if (this.#reader !== null) {
        const share = this.#share.held;
        if (share !== null) this.#context.state.bodyMemory = { share, textBytes: this.#check.length };
        return await this.#reader.end();
      }
      this.#share.release();
      return await this.#measure(() => this.#parseSmall());
    } catch (error) {
      // Release the memory before the error is sent, because sending may take a while and the body is no longer needed.
      this.#share.release();
      throw error;
    } finally {
      this.#isReading = false;
      this.#reader = null;
      if (signal.aborted) this.#share.release();
    }
  }

  /** @param error of the request, or null if it succeeded */
  end(error: unknown): void {
    const isRejected = this.#isLarge && !this.#context.headerSent && isRejection(error);
    const rejectedBytes = isRejected ? this.#check.length : 0;
    if (rejectedBytes === this.#countedBytes) return;
    this.#services.rejectedBodies.add(requesterOf(this.#context), rejectedBytes - this.#countedBytes);
  }

  #measure<T>(work: () => T): T {
    const { meter } = this.#context.state;
    return meter === undefined ? work() : meter.measure(work);
  }

  #readChunk(chunk: Buffer): void | Promise<void> {
    this.#check.push(chunk);
    return this.#reader === null ? this.#readSmallChunk(chunk) : this.#readLargeChunk(chunk, this.#reader);
  }

  #readSmallChunk(chunk: Buffer): void | Promise<void> {
    this.#chunks.add(chunk);
    if (this.#check.length > smallBodyBytes) return this.becomeLarge(this.#check.length);
    this.#share.holdIncomplete(this.#check.length);
    return undefined;
  }

  /**
   * Reads a chunk of a large body, and pauses once the time for one event-loop turn is used up. Otherwise, one
   * connection could deliver up to two megabytes before the event loop does anything else.
   */
  #readLargeChunk(chunk: Buffer, reader: BodyReader): void | Promise<void> {
    const startedMs = performance.now();
    const read = reader.push(chunk);
    this.#spentMs += performance.now() - startedMs;
    return read === undefined ? this.#yieldAfterRead(reader) : read.then(() => this.#yieldAfterRead(reader));
  }

  #yieldAfterRead(reader: BodyReader): void | Promise<void> {
    this.#share.hold(this.#check.length + reader.extraBytes);
    if (this.#spentMs < readingTurnMs) return undefined;
    this.#spentMs = 0;
    return nextWorkTurn(requesterOf(this.#context));
  }

  async #parseSmall(): Promise<unknown> {
    // An empty body is treated as an empty object, so that missing fields are reported by name.
    if (this.#check.length === 0) return {};
    const bytes = this.#chunks.take();
    if (!this.#isForm) return parseSmallJson(bytes.toString('utf8'));
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

/** Whether the request failed because of what its caller sent, or because its caller did not wait for the response. */
const isRejection = (error: unknown): boolean => error instanceof AppError && error.status < 500;
