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
import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { RejectedFields, type AddedField, type Mended } from './rejected-fields.ts';
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
  const rejectedFields = new RejectedFields();

  return {
    chat: (target, body, stream, context) =>
      chat({ client, warnOfFinishWord, rejectedFields }, target, body, stream, context),
    needsImageBytes,

    async embed(
      target: UpstreamTarget,
      call: EmbeddingCall,
      context: CallContext,
    ): Promise<EmbeddingResponse> {
      const response = await postMended(
        { client, rejectedFields },
        { path: '/embeddings', body: toEmbeddingRequest(target, call), isStream: false },
        { target, context, added: encodingFormat },
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

interface ChatDeps extends PostDeps {
  readonly warnOfFinishWord: WarnOfFinishWord;
}

async function* chat(
  { client, warnOfFinishWord, rejectedFields }: ChatDeps,
  target: UpstreamTarget,
  original: ChatBody,
  stream: boolean,
  context: CallContext,
): AsyncGenerator<readonly ChatEvent[]> {
  const { toolNames } = profiles[target.profile];
  const { body, restore } = toolNames === null ? unchanged(original) : fitToolNames(original, toolNames);
  const images = await collectImages(body, context, (url) => needsImageBytes(target, url));
  const withReasoning = restoreReasoning(body, target.model, context.recalled);
  const request = toChatRequest(target, withReasoning, stream, images);
  const response = await postMended(
    { client, rejectedFields },
    { path: '/chat/completions', body: request, isStream: stream },
    { target, context, added: context.isTemperatureAdded === true ? temperature : nothing },
  );
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

const nothing: ReadonlySet<AddedField> = new Set();
const temperature: ReadonlySet<AddedField> = new Set(['temperature']);
const encodingFormat: ReadonlySet<AddedField> = new Set(['encoding_format']);
/** How often a refused request is sent again. More than once only for a server that does not say how long the prompt is. */
const maxMends = 3;

interface PostDeps {
  readonly client: HttpClient;
  readonly rejectedFields: RejectedFields;
}

interface MendedPost {
  readonly target: UpstreamTarget;
  readonly context: CallContext;
  /** Fields of the body that the caller did not send. */
  readonly added: ReadonlySet<AddedField>;
}

/**
 * Sends a request. If the server refuses it for something that the caller did not ask for, sends it again without that:
 * a field that the gateway added, or a limit that leaves no room for the prompt, because the server's vocabulary needs
 * more tokens for it than ours.
 */
async function postMended(
  { client, rejectedFields }: PostDeps,
  call: Omit<VendorCall, 'headers'>,
  { target, context, added }: MendedPost,
): Promise<HttpResponse> {
  let body = rejectedFields.adapt(target.model, call.body as JsonRecord, added);
  const mends: Mended[] = [];
  for (;;) {
    try {
      const response = await post(client, { ...call, body }, target, context);
      for (const mended of mends) rejectedFields.remember(target.model, mended, context.log);
      return response;
    } catch (error) {
      const mended = mends.length === maxMends ? null : rejectedFields.mend(body, added, error);
      if (mended === null) throw error;
      mends.push(mended);
      context.log.debug({ err: error }, 'server rejected the request; retrying with corrected fields');
      body = mended.body;
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
  return await callVendor(client, { ...call, headers }, context, (errorResponse) =>
    toUpstreamError(errorResponse, target.apiKey),
  );
}
