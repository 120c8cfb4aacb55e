import { createHttpClient, type HttpAnswer, type HttpClient, type HttpTimeouts } from '../http-client.ts';
import { readHeader } from '../http-failure.ts';
import {
  type CallContext,
  type ChatBody,
  type ChatEvent,
  type EmbeddingAnswer,
  type EmbeddingCall,
  type ImageAnswer,
  type ImageCall,
  type Upstream,
  UpstreamError,
  type UpstreamTarget,
} from '../upstream.ts';
import { toUpstreamError } from './from-error.ts';
import { fromEmbeddingResponse } from './from-embedding-response.ts';
import { fromImageResponse } from './from-image-response.ts';
import { fromChatResponse } from './from-response.ts';
import { createChatStreamTranslator } from './from-stream.ts';
import { toChatRequest, toEmbeddingRequest, toImageRequest } from './to-request.ts';

export interface OpenAiUpstreamOptions {
  /** Ends with the version, as clients of OpenAI have it: `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  readonly timeouts?: HttpTimeouts;
  readonly connections?: number;
}

/** 2048 vectors of 3072 dimensions are 34 MB of base64; the rest is room for what stands around them. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;
const MAX_ERROR_BYTES = 16 * 1024;

/** Any server that speaks OpenAI's dialect: OpenAI itself, vLLM, Ollama, llama.cpp, TEI, OpenRouter and their like. */
export function createOpenAiUpstream(options: OpenAiUpstreamOptions): Required<Upstream> {
  const client = createHttpClient(options);

  return {
    chat: (target, body, stream, context) => chat(client, target, body, stream, context),

    async embed(target: UpstreamTarget, call: EmbeddingCall, context: CallContext): Promise<EmbeddingAnswer> {
      const answer = await post(client, '/embeddings', toEmbeddingRequest(target, call), target, context);
      return fromEmbeddingResponse(await answer.readAll(MAX_BODY_BYTES), call, target.apiKey);
    },

    async generateImages(
      target: UpstreamTarget,
      call: ImageCall,
      context: CallContext,
    ): Promise<ImageAnswer> {
      const answer = await post(client, '/images/generations', toImageRequest(target, call), target, context);
      return fromImageResponse(await readText(answer), call.n, target.apiKey);
    },

    close: () => client.close(),
  };
}

async function* chat(
  client: HttpClient,
  target: UpstreamTarget,
  body: ChatBody,
  stream: boolean,
  context: CallContext,
): AsyncGenerator<ChatEvent> {
  const request = toChatRequest(target, body, stream);
  const answer = await post(client, '/chat/completions', request, target, context);
  // Servers that cannot stream answer whole, whatever was asked.
  const isWhole =
    !stream || (readHeader(answer.headers, 'content-type') ?? '').startsWith('application/json');
  if (isWhole) {
    yield* fromChatResponse(await readText(answer), target.apiKey);
    return;
  }
  let isOver = false;
  try {
    yield* readStream(answer, target, context);
    isOver = true;
  } finally {
    // Who stops listening stops the vendor at once; after the end the connection is worth keeping.
    if (isOver) {
      answer.release();
    } else {
      answer.abort();
    }
  }
}

async function* readStream(
  answer: HttpAnswer,
  target: UpstreamTarget,
  context: CallContext,
): AsyncGenerator<ChatEvent> {
  const translator = createChatStreamTranslator(target.apiKey);
  while (!translator.isDone) {
    const chunk = await readNext(answer, translator.isFinished, context);
    if (chunk === null) {
      yield* translator.end();
      return;
    }
    yield* translator.push(chunk);
  }
}

async function readNext(
  answer: HttpAnswer,
  isFinished: boolean,
  context: CallContext,
): Promise<Buffer | null> {
  try {
    return await answer.next();
  } catch (error) {
    if (isFinished && error instanceof UpstreamError) {
      context.log.debug({ err: error }, 'the stream was cut after its end');
      return null;
    }
    throw error;
  }
}

async function post(
  client: HttpClient,
  path: string,
  request: object,
  target: UpstreamTarget,
  context: CallContext,
): Promise<HttpAnswer> {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'user-agent': 'model-gateway',
  };
  if (target.apiKey !== null) {
    headers['authorization'] = `Bearer ${target.apiKey}`;
  }
  const answer = await client.post({ path, headers, body: JSON.stringify(request), signal: context.signal });
  if (answer.status >= 200 && answer.status < 300) {
    return answer;
  }
  const body = await readErrorBody(answer, context);
  throw toUpstreamError({ status: answer.status, headers: answer.headers, body }, target.apiKey);
}

/** The status decides; a refusal whose body is cut or never comes is a refusal all the same. */
async function readErrorBody(answer: HttpAnswer, context: CallContext): Promise<Buffer> {
  try {
    return await answer.readStart(MAX_ERROR_BYTES);
  } catch (error) {
    context.signal.throwIfAborted();
    context.log.debug({ err: error }, 'the body of a refusal could not be read');
    return Buffer.alloc(0);
  }
}

async function readText(answer: HttpAnswer): Promise<string> {
  const body = await answer.readAll(MAX_BODY_BYTES);
  return body.toString('utf8');
}
