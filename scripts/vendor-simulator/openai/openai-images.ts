import { countWords } from '../count-words.ts';
import type { SimulatedResponse, SimulatedCall } from '../dialect.ts';
import { checkImageCall, type ImageError, isGptImage } from './openai-image-rules.ts';
import { countFiles, readNumber } from './openai-image-fields.ts';
import { readText } from '../json-record.ts';
import { type ImageFormat, makeSampleImage } from '../sample-image.ts';

/** OpenAI's token count for an image of 1024x1024 pixels, by quality. Input images are counted at low quality. */
const tokensOfQuality: Readonly<Record<string, number>> = { low: 272, medium: 1056, high: 4160 };
const tokensOfInput = 272;

const streamError = JSON.stringify({
  type: 'error',
  error: { type: 'server_error', code: null, message: 'The server had an error.', param: null },
});

/** Serves `/v1/images/generations` and `/v1/images/edits`. Edits accept forms and JSON. */
export function handleImages(call: SimulatedCall): SimulatedResponse {
  const isEdit = call.operation.name === 'image-edits';
  const problem = checkImageCall(call, isEdit);
  if (problem !== null) return invalidRequest(problem);
  const { body } = call;
  if (body['stream'] === true || body['stream'] === 'true') return streamImage(call, isEdit);
  const images = Array.from({ length: readNumber(body['n']) ?? 1 }, (_, index) =>
    describeImage(call, isEdit, index),
  );
  const whole = {
    created: Math.floor(Date.now() / 1_000),
    data: images,
    ...describeUsage(call, images.length),
  };
  return { kind: 'whole', parts: [JSON.stringify(whole)] };
}

function describeImage({ body, model, faults }: SimulatedCall, isEdit: boolean, index: number): object {
  const returnsUrl = !isGptImage(model) && body['response_format'] !== 'b64_json';
  if (returnsUrl) return { url: `https://images.example/${index}.png` };
  // Each image of a call has a different colour, so that tests can check the order and distinguish edits from new
  // images.
  const color = [(index * 60) % 256, isEdit ? 200 : 120, isEdit ? 120 : 200] as const;
  return {
    b64_json: makeSampleImage(readFormat(body), color, faults.image),
    revised_prompt: `A picture of: ${readText(body['prompt'])}`,
  };
}

function streamImage(call: SimulatedCall, isEdit: boolean): SimulatedResponse {
  const { body, faults } = call;
  const prefix = isEdit ? 'image_edit' : 'image_generation';
  const shared = {
    created_at: Math.floor(Date.now() / 1_000),
    size: body['size'] ?? '1024x1024',
    quality: body['quality'] ?? 'medium',
    background: body['background'] ?? 'opaque',
    output_format: readFormat(body),
  };
  const chunks: string[] = [];
  for (let index = 0; index < (readNumber(body['partial_images']) ?? 0); index += 1) {
    // Each preview is lighter than the previous one, so that tests can distinguish them.
    const b64_json = makeSampleImage(readFormat(body), [0, 0, 40 * (index + 1)], faults.image);
    const type = `${prefix}.partial_image`;
    chunks.push(renderEvent({ type, b64_json, partial_image_index: index, ...shared }));
  }
  if (faults.noEnd !== 'finish' && faults.noEnd !== 'both') {
    const image = describeImage(call, isEdit, 0);
    chunks.push(renderEvent({ type: `${prefix}.completed`, ...image, ...shared, ...describeUsage(call, 1) }));
  }
  return {
    kind: 'stream',
    contentType: 'text/event-stream',
    chunks,
    errorChunk: `event: error\ndata: ${streamError}\n\n`,
  };
}

function renderEvent(event: { readonly type: string } & Readonly<Record<string, unknown>>): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** The GPT family counts tokens. Other models report no usage. */
function describeUsage({ body, model, faults }: SimulatedCall, images: number): object {
  if (!isGptImage(model) || faults.usage === 'missing') return {};
  const text = countWords(readText(body['prompt']));
  const image = countFiles(body) * tokensOfInput;
  const output = images * (tokensOfQuality[readText(body['quality'])] ?? tokensOfQuality['medium']!);
  return {
    usage: {
      input_tokens: text + image,
      input_tokens_details: { text_tokens: text, image_tokens: image },
      output_tokens: output,
      total_tokens: text + image + output,
    },
  };
}

function readFormat(body: Readonly<Record<string, unknown>>): ImageFormat {
  const format = body['output_format'];
  return format === 'jpeg' || format === 'webp' ? format : 'png';
}

function invalidRequest({ message, param }: ImageError): SimulatedResponse {
  const error = { status: 400, type: 'invalid_request_error', code: null, message, param };
  return { kind: 'error', error };
}
