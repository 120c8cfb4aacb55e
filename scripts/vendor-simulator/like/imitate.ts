import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import type { Dialect, SimulatedCall, SimulatedResponse } from '../dialect.ts';
import { openAiDialect, serveOpenAiCall } from '../openai/openai.ts';
import type { Personality } from './personality.ts';

const done = '[DONE]';
const failure = {
  status: 500,
  type: 'server_error',
  code: null,
  message: 'The server had an error while processing your request.',
};

/** OpenAI's dialect as this server speaks it. */
export function imitate(server: Personality): Dialect {
  return {
    ...openAiDialect,

    findOperation(method, path, query) {
      const operation = openAiDialect.findOperation(method, path, query);
      return operation !== null && server.operations.includes(operation.name) ? operation : null;
    },

    respond(call) {
      const error = server.check(call);
      if (error !== null) return { kind: 'error', error };
      const body = server.readBody?.(call.body, call) ?? call.body;
      return rewrite(serveOpenAiCall({ ...call, body }), server, call);
    },

    renderError(error) {
      const body = server.writeError(error);
      return typeof body === 'string' ? body : JSON.stringify(body);
    },
  };
}

function rewrite(response: SimulatedResponse, server: Personality, call: SimulatedCall): SimulatedResponse {
  if (response.kind === 'error') return response;
  if (response.kind === 'stream') {
    return {
      ...response,
      chunks: rewriteChunks(response.chunks, server, call),
      errorChunk: toEvent(server.streamError ?? server.writeError(failure)),
    };
  }
  const write = call.operation.name === 'embeddings' ? server.writeEmbeddings : server.writeChat;
  if (write === undefined || !['chat', 'embeddings'].includes(call.operation.name)) return response;
  const whole: unknown = JSON.parse(response.parts.map(String).join(''));
  return isRecord(whole) ? { kind: 'whole', parts: [JSON.stringify(write(whole, call))] } : response;
}

function rewriteChunks(
  chunks: readonly (Buffer | string)[],
  server: Personality,
  call: SimulatedCall,
): readonly string[] {
  const data = chunks.map((chunk) => chunk.toString().slice('data: '.length).trimEnd());
  const records = data.filter((text) => text !== done).map((text) => JSON.parse(text) as JsonRecord);
  const written = server.writeChunks?.(records, call) ?? records;
  return [...written.map(toEvent), ...(data.includes(done) ? [`data: ${done}\n\n`] : [])];
}

const toEvent = (chunk: JsonRecord | string): string =>
  typeof chunk === 'string' ? `: ${chunk}\n\n` : `data: ${JSON.stringify(chunk)}\n\n`;
