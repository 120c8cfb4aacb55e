// decision 0028
import { callVendor, isJson, readRecord, readText } from '../call-vendor.ts';
import { readChatStream } from '../chat-stream.ts';
import { collectImages } from '../collect-media.ts';
import {
  createHttpClient,
  type HttpResponse,
  type HttpClient,
  type HttpClientOptions,
} from '../http-client.ts';
import { makeOneImagePerCall } from '../one-image-per-call.ts';
import { encodeJsonBody } from '../request-body.ts';
import type {
  CallContext,
  ChatBody,
  ChatEvent,
  EmbeddingResponse,
  EmbeddingCall,
  ImageResponse,
  ImageCall,
  Upstream,
  UpstreamTarget,
} from '../upstream.ts';
import { fromEmbeddingResponse } from './from-embedding-response.ts';
import { toUpstreamError } from './from-error.ts';
import { fromImageResponse } from './from-image-response.ts';
import { fromChatResponse } from './from-response.ts';
import { createChatStreamTranslator, MAX_ANSWER_BYTES } from './from-stream.ts';
import { toMethodPath } from './model-name.ts';
import type { ConversationInputs } from './to-contents.ts';
import { toEmbeddingRequest } from './to-embedding-request.ts';
import { toImageRequest } from './to-image-request.ts';
import { isSentAsBytes } from './to-parts.ts';
import { fitToolNames, letterFirstNames } from '../tool-names.ts';
import { createFinishWordWarning, type WarnOfFinishWord } from '../unknown-finish-words.ts';
import { toChatRequest } from './to-request.ts';

/**
 * Creates an upstream for Google's Gemini API. The base URL contains only the server,
 * `https://generativelanguage.googleapis.com`; the version and the model are in the path of each call.
 */
export function createGeminiUpstream(options: HttpClientOptions): Required<Upstream> {
  const client = createHttpClient(options);
  const warnOfFinishWord = createFinishWordWarning();

  return {
    chat: (target, body, stream, context) => chat(client, warnOfFinishWord, target, body, stream, context),
    needsImageBytes: isSentAsBytes,

    async embed(
      target: UpstreamTarget,
      call: EmbeddingCall,
      context: CallContext,
    ): Promise<EmbeddingResponse> {
      const request = toEmbeddingRequest(target, call);
      const response = await post(client, 'batchEmbedContents', request, target, context);
      return fromEmbeddingResponse(await readText(response, MAX_ANSWER_BYTES), call, target.apiKey);
    },

    generateImages: (target, call, context) => generateImages(client, target, call, context),

    close: () => client.close(),
  };
}

async function* chat(
  client: HttpClient,
  warnOfFinishWord: WarnOfFinishWord,
  target: UpstreamTarget,
  original: ChatBody,
  stream: boolean,
  context: CallContext,
): AsyncGenerator<readonly ChatEvent[]> {
  const { body, restore } = fitToolNames(original, letterFirstNames);
  const request = toChatRequest(target, body, await collectInputs(target, body, context));
  const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
  const response = await post(client, method, request, target, context);
  const options = {
    model: target.model,
    apiKey: target.apiKey,
    onUnknownFinish: (word: string) => warnOfFinishWord(word, context.log),
    oneCall: body['parallel_tool_calls'] === false && !target.drops.has('parallel_tool_calls'),
  };
  if (!stream || isJson(response)) {
    yield restore(fromChatResponse(await readText(response, MAX_ANSWER_BYTES), options));
  } else {
    const events = readChatStream(response, createChatStreamTranslator(options), context);
    for await (const some of events) yield restore(some);
  }
}

/** Collects the inputs of the translation besides the request. */
async function collectInputs(
  target: UpstreamTarget,
  body: ChatBody,
  context: CallContext,
): Promise<ConversationInputs> {
  const images = await collectImages(body, context, (url) => isSentAsBytes(target, url));
  return { images, recalled: context.recalled };
}

async function generateImages(
  client: HttpClient,
  target: UpstreamTarget,
  call: ImageCall,
  context: CallContext,
): Promise<ImageResponse> {
  const request = await toImageRequest(target, call, context.accountId);
  const body = await encodeJsonBody(request, context.accountId);
  return await makeOneImagePerCall(call.n, context, async () => {
    const response = await post(client, 'generateContent', body, target, context);
    const responseBody = await readRecord(response, MAX_ANSWER_BYTES, 'an image response', context);
    return await fromImageResponse(responseBody, target.apiKey, context.accountId);
  });
}

async function post(
  client: HttpClient,
  method: string,
  body: object,
  target: UpstreamTarget,
  context: CallContext,
): Promise<HttpResponse> {
  const path = toMethodPath(target.model, method);
  const headers = target.apiKey === null ? {} : { 'x-goog-api-key': target.apiKey };
  const isStream = method.startsWith('stream');
  return await callVendor(client, { path, headers, body, isStream }, context, (errorResponse) =>
    toUpstreamError(errorResponse, target.apiKey),
  );
}
