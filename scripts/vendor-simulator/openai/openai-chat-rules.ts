import type { SimulatedCall, SimulatedError } from '../dialect.ts';
import type { JsonRecord } from '../../../shared/encoding/json-record.ts';

/** OpenAI's own rules for a chat: a `reasoner` model rejects `max_tokens` and `temperature`. */
export function checkOpenAiChat({ model, body }: SimulatedCall): SimulatedError | null {
  const param = findUnsupported(model, body);
  if (param === null) return null;
  const message = `Unsupported parameter: '${param}' is not supported with this model.`;
  return { status: 400, type: 'invalid_request_error', code: 'unsupported_parameter', message, param };
}

function findUnsupported(model: string, body: JsonRecord): string | null {
  if (!model.includes('reasoner')) return null;
  if (body['max_tokens'] !== undefined) return 'max_tokens';
  return body['temperature'] !== undefined && body['temperature'] !== 1 ? 'temperature' : null;
}
