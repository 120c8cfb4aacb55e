import { callVendor, isJson, readText, type VendorCall } from '../call-vendor.ts';
import { readChatStream } from '../chat-stream.ts';
import { collectImages } from '../collect-media.ts';
import {
  createHttpClient,
  type HttpResponse,
  type HttpClient,
  type HttpClientOptions,
} from '../http-client.ts';
import {
  type CallContext,
  type ChatBody,
  type ChatEvent,
  type EmbeddingResponse,
  type EmbeddingCall,
  type Upstream,
  type UpstreamTarget,
} from '../upstream.ts';
import { fitToolNames, type ToolNames } from '../tool-names.ts';
import { createFinishWordWarning, type WarnOfFinishWord } from '../unknown-finish-words.ts';
import { isRecord } from '../../../shared/encoding/json-record.ts';
import { findFittingLimit } from './fit-limit.ts';
import { toUpstreamError } from './from-error.ts';
import { ReasoningRecorder, restoreReasoning } from './save-reasoning.ts';
import { fromEmbeddingResponse } from './from-embedding-response.ts';
import { fromChatResponse } from './from-response.ts';
import { createChatStreamTranslator } from './from-stream.ts';
import { generateImages } from './generate-images.ts';
import { profiles } from './profiles.ts';
import { toChatRequest, toEmbeddingRequest } from './to-request.ts';

/** 2048 vectors of 3072 dimensions are 34 MB of base64. The remainder is for the JSON around them. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

/**
 * Creates an upstream for any OpenAI-compatible server: OpenAI itself, vLLM, Ollama, llama.cpp, TEI, OpenRouter
 * and others. The base URL ends with the version, as in OpenAI's clients: `https://api.openai.com/v1`.
 */
export function createOpenAiUpstream(options: HttpClientOptions): Required<Upstream> {
  const client = createHttpClient(options);
  const warnOfFinishWord = createFinishWordWarning();

  return {
    chat: (target, body, stream, context) => chat(client, warnOfFinishWord, target, body, stream, context),
    needsImageBytes,

    async embed(
      target: UpstreamTarget,
      call: EmbeddingCall,
      context: CallContext,
    ): Promise<EmbeddingResponse> {
      const response = await post(
        client,
        { path: '/embeddings', body: toEmbeddingRequest(target, call), isStream: false },
        target,
        context,
      );
      return await response.readLarge(MAX_BODY_BYTES, (body) =>
        fromEmbeddingResponse(body, call, target.apiKey),
      );
    },

    generateImages: (target, call, context) =>
      generateImages((request) => post(client, request, target, context), target, call, context),

    close: () => client.close(),
  };
}

/** Data URIs are sent unchanged. */
function needsImageBytes({ imageUrls }: UpstreamTarget, url: string): boolean {
  return imageUrls === 'fetch' && url.startsWith('https:');
}

async function* chat(
  client: HttpClient,
  warnOfFinishWord: WarnOfFinishWord,
  target: UpstreamTarget,
  original: ChatBody,
  stream: boolean,
  context: CallContext,
): AsyncGenerator<readonly ChatEvent[]> {
  const { toolNames } = profiles[target.dialect];
  const { body, restore } = toolNames === null ? unchanged(original) : fitToolNames(original, toolNames);
  const images = await collectImages(body, context, (url) => needsImageBytes(target, url));
  const withReasoning = restoreReasoning(body, target.model, context.recalled);
  const request = toChatRequest(target, withReasoning, stream, images);
  const response = await postChat(client, request, stream, target, context);
  const options = {
    apiKey: target.apiKey,
    choices: readChoices(body),
    isFunctionForced: isFunctionForced(body),
    onUnknownFinish: (word: string) => warnOfFinishWord(word, context.log),
  };
  // Servers that cannot stream send a complete response even if a stream was requested.
  const reasoning = new ReasoningRecorder(target.model);
  if (!stream || isJson(response)) {
    yield restore(reasoning.take(fromChatResponse(await readText(response, MAX_BODY_BYTES), options)));
    return;
  }
  const translator = createChatStreamTranslator(options);
  for await (const events of readChatStream(response, translator, context)) {
    yield restore(reasoning.take(events));
  }
}

const unchanged = (body: ChatBody): ToolNames => ({ body, restore: (events) => events });

const limitFields = ['max_tokens', 'max_completion_tokens'];
/** How often the limit of a chat is lowered. More than once only for a server that does not say how long the prompt is. */
const maxLowerings = 3;

/**
 * Sends a chat. If the server finds that prompt and limit together exceed its context, sends it again with a limit that
 * fits: the server's vocabulary may need more tokens for the prompt than ours.
 */
async function postChat(
  client: HttpClient,
  request: Readonly<Record<string, unknown>>,
  isStream: boolean,
  target: UpstreamTarget,
  context: CallContext,
): Promise<HttpResponse> {
  const field = limitFields.find((name) => typeof request[name] === 'number');
  let body = request;
  for (let lowerings = 0; ; lowerings++) {
    try {
      return await post(client, { path: '/chat/completions', body, isStream }, target, context);
    } catch (error) {
      const fitting =
        field === undefined || lowerings === maxLowerings
          ? null
          : findFittingLimit(error, body[field] as number);
      if (fitting === null) throw error;
      context.log.debug({ limit: body[field!], fitting }, 'the prompt leaves less room than the limit');
      body = { ...body, [field!]: fitting };
    }
  }
}

const isFunctionForced = ({ tool_choice: choice }: ChatBody): boolean =>
  isRecord(choice) && choice['type'] === 'function';

function readChoices(body: ChatBody): number {
  return typeof body['n'] === 'number' ? body['n'] : 1;
}

async function post(
  client: HttpClient,
  call: Omit<VendorCall, 'headers'>,
  target: UpstreamTarget,
  context: CallContext,
): Promise<HttpResponse> {
  const headers = target.apiKey === null ? {} : { authorization: `Bearer ${target.apiKey}` };
  return await callVendor(client, { ...call, headers }, context, (refusal) =>
    toUpstreamError(refusal, target.apiKey),
  );
}
