import { maxPauses } from '../../../shared/catalog/search-allowance.ts';
import { callVendor, isJson, readText } from '../call-vendor.ts';
import { readChatStream } from '../chat-stream.ts';
import { collectImages } from '../collect-media.ts';
import {
  createHttpClient,
  type HttpResponse,
  type HttpClient,
  type HttpClientOptions,
} from '../http-client.ts';
import { type HttpHeaders, readHeader } from '../http-failure.ts';
import type { CallContext, ChatBody, ChatEvent, Upstream, UpstreamTarget } from '../upstream.ts';
import { createMessageTranslator } from './response-translator.ts';
import { toUpstreamError } from './from-error.ts';
import { fromMessage } from './from-response.ts';
import { createChatStreamTranslator } from './from-stream.ts';
import { fitToolNames, strictNames } from '../tool-names.ts';
import { createFinishWordWarning, type WarnOfFinishWord } from '../unknown-finish-words.ts';
import { continueRequest, type MessagesRequest, toChatRequest } from './to-request.ts';

const API_VERSION = '2023-06-01';
const MAX_BODY_BYTES = 64 * 1024 * 1024;
/**
 * Each pause ends a round of searches, and adds the whole prompt to the usage again. The limit is the number of pauses
 * for which money is reserved.
 */
const MAX_CONTINUATIONS = maxPauses;

/**
 * Creates an upstream for any server that speaks Anthropic's Messages API. The base URL excludes the version,
 * as in Anthropic's own clients: `https://api.anthropic.com`.
 */
export function createAnthropicUpstream(
  options: HttpClientOptions,
): Required<Pick<Upstream, 'chat' | 'needsImageBytes' | 'close'>> {
  const client = createHttpClient(options);
  const warnOfFinishWord = createFinishWordWarning();
  return {
    chat: (target, body, stream, context) => chat(client, warnOfFinishWord, target, body, stream, context),
    needsImageBytes,
    close: () => client.close(),
  };
}

function needsImageBytes({ imageUrls }: UpstreamTarget, url: string): boolean {
  return imageUrls === 'fetch' || url.startsWith('data:');
}

async function* chat(
  client: HttpClient,
  warnOfFinishWord: WarnOfFinishWord,
  target: UpstreamTarget,
  original: ChatBody,
  stream: boolean,
  context: CallContext,
): AsyncGenerator<readonly ChatEvent[]> {
  const { body, restore } = fitToolNames(original, strictNames);
  const media = await collectImages(body, context, (url) => needsImageBytes(target, url));
  const first = toChatRequest(target, body, stream, { media, recalled: context.recalled });
  let request: MessagesRequest | null = first;
  const translator = createMessageTranslator({
    model: target.model,
    remembers: first.thinks,
    onUnknownFinish: (word) => warnOfFinishWord(word, context.log),
  });
  for (let continuations = 0; request !== null; continuations += 1) {
    const response = await post(client, request, target, context);
    // Servers that cannot stream send a complete response even if a stream was requested.
    if (!stream || isJson(response)) {
      yield restore(fromMessage(await readText(response, MAX_BODY_BYTES), translator, target.apiKey));
    } else {
      const events = readChatStream(response, createChatStreamTranslator(translator, target.apiKey), context);
      for await (const some of events) yield restore(some);
    }
    if (!translator.isPaused) {
      return;
    }
    request =
      continuations === MAX_CONTINUATIONS
        ? null
        : continueRequest(request, translator.blocks, first.body.max_tokens - (translator.outputTokens ?? 0));
  }
  yield translator.giveUp();
}

async function post(
  client: HttpClient,
  { body, betas }: MessagesRequest,
  { apiKey }: UpstreamTarget,
  context: CallContext,
): Promise<HttpResponse> {
  const headers = {
    'anthropic-version': API_VERSION,
    ...(betas.length > 0 && { 'anthropic-beta': betas.join(',') }),
    ...(apiKey !== null && { 'x-api-key': apiKey }),
  };
  const response = await callVendor(
    client,
    { path: '/v1/messages', headers, body, isStream: body['stream'] === true },
    context,
    (errorResponse) => {
      logId(errorResponse.headers, context, 'upstream rejected the call');
      return toUpstreamError(errorResponse, apiKey, Date.now());
    },
  );
  logId(response.headers, context, 'upstream accepted the call');
  return response;
}

/** Logs the ID that the vendor's support needs to find the call. */
function logId(headers: HttpHeaders, { log }: CallContext, message: string): void {
  const vendorRequestId = readHeader(headers, 'request-id');
  if (vendorRequestId !== null) {
    log.debug({ vendorRequestId }, message);
  }
}
