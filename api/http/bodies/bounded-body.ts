import { HttpMethodEnum, koaBody } from 'koa-body';
import type { Services } from '../../services.ts';
import type { ApiContext } from '../request/context.ts';
import { BodyCheck } from './body-check.ts';
import { BodyShare } from './body-share.ts';
import { checkDepth, isWellFormedJson, parseSmallJson } from '../../../shared/preparing/json-body.ts';
import { readChunks } from './read-chunks.ts';

/** What koa-body adds to Koa's request. */
interface ParsedRequest {
  readonly body?: unknown;
  /** The text of the body, if the parser accepted it. */
  readonly rawBody?: string;
}

/**
 * Creates a reader of JSON bodies up to `limitBytes`, which are collected whole and parsed by koa-body. What it does not
 * know is checked beside it: the pace, the encoding and the memory of the account, and the depth.
 */
export function createBoundedReader(
  services: Services,
  limitBytes: number,
): (context: ApiContext) => Promise<unknown> {
  const { POST, PUT, PATCH, DELETE } = HttpMethodEnum;
  const parse = koaBody({
    json: true,
    jsonLimit: limitBytes,
    jsonStrict: true,
    includeUnparsed: true,
    multipart: false,
    urlencoded: false,
    text: false,
    // Two operations take a body with DELETE.
    parsedMethods: [POST, PUT, PATCH, DELETE],
    onError(error, { request }) {
      const { body } = error as Error & { readonly body?: string };
      if (body === undefined) throw error;
      // Either it is no JSON, and this throws the error that says where, or it is JSON that strict parsers refuse, such
      // as a number, and its schema says what is wrong.
      request.body = parseSmallJson(body) as Exclude<typeof request.body, undefined>;
    },
  });
  return async (context) => {
    const check = new BodyCheck(limitBytes);
    const share = new BodyShare(services, context);
    const take = (chunk: Buffer): void => {
      check.push(chunk);
      share.holdIncomplete(check.length);
    };
    const { req, request } = context;
    try {
      const arrived = readChunks(req, services.bodyTimes, {
        isLarge: () => false,
        onChunk(chunk) {
          const { meter } = context.state;
          if (meter === undefined) take(chunk);
          else meter.measure(() => take(chunk));
        },
      });
      const ours = new Set(req.listeners('data'));
      const parsed = parse(context, async () => undefined);
      const theirs = req.listeners('data').filter((listener) => !ours.has(listener));
      // It is awaited below, unless the body is refused before its end.
      parsed.catch(() => undefined);
      await arrived.catch((error: unknown) => {
        // Beyond its limit, the parser would pause the body, the rest of which is drained after the error response.
        for (const listener of theirs) req.off('data', listener as () => void);
        throw error;
      });
      check.end();
      await parsed;
    } finally {
      share.release();
    }
    return takeBody(request);
  };
}

/** @throws AppError `validation_failed` */
function takeBody({ body, rawBody }: ParsedRequest): unknown {
  // An empty body is treated as an empty object, so that missing fields are reported by name.
  if (body === undefined) return {};
  checkDepth(body);
  if (rawBody !== undefined && !isWellFormedJson(rawBody, body)) return parseSmallJson(rawBody);
  return body;
}
