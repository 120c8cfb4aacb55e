import { findImageFamily, supportsInputFidelity } from '../../../shared/routing/image-models.ts';
import { writeImagePrompt } from '../image-prompt.ts';
import { encodeMultipartBody, type FormFile, type RequestBody } from '../request-body.ts';
import type { ImageCall, InputImage, UpstreamTarget } from '../upstream.ts';
import { omitFields } from './to-request.ts';

/** Converts image requests to OpenAI's format (OpenAI API reference: images). Pure. */

type Fields = Record<string, unknown>;

const dallE3Styles = new Set(['vivid', 'natural']);

/**
 * Builds the body of `/images/generations`. OpenAI rejects fields that a model family does not support, so each
 * family gets only its own fields. Servers of other models get every option that the caller set; if a server rejects
 * an option, its route `drops` it.
 */
export function toImageRequest(target: UpstreamTarget, call: ImageCall): Fields {
  const { moderation } = call.options;
  const fields = { ...toSharedFields(target, call), ...toStreamFields(target, call) };
  if (moderation !== null && !isDallE(target)) fields['moderation'] = moderation;
  return omitFields(fields, target.drops);
}

/**
 * Builds the body of `/images/edits`: a form with the inputs as files. OpenAI's clients name a single file `image` and
 * several files `image[]`; compatible servers expect the same.
 */
export function toImageEditRequest(target: UpstreamTarget, call: ImageCall): RequestBody {
  const { inputFidelity } = call.options;
  const fields = { ...toSharedFields(target, call), ...toStreamFields(target, call) };
  const supportsFidelity = supportsInputFidelity(target.model) || findImageFamily(target.model) === 'other';
  if (inputFidelity !== null && supportsFidelity) fields['input_fidelity'] = inputFidelity;
  const name = call.inputs.length === 1 ? 'image' : 'image[]';
  const files = call.inputs.map((input, index) => toFile(name, `image-${index + 1}`, input));
  if (call.mask !== null && !target.drops.has('mask')) files.push(toFile('mask', 'mask', call.mask));
  return encodeMultipartBody(omitFields(fields, target.drops), files);
}

/** Whether previews are requested. Among OpenAI's models, only the GPT family can stream. */
export function requestsStream({ model, drops }: UpstreamTarget, { partialImages }: ImageCall): boolean {
  return (partialImages ?? 0) > 0 && findImageFamily(model) === 'gpt-image' && !drops.has('stream');
}

/**
 * OpenAI's image API has no `negative_prompt`, and supports `style` only for DALL·E 3, as `vivid` or `natural`.
 * The GPT image models always return base64 and reject `response_format`.
 */
function toSharedFields(target: UpstreamTarget, call: ImageCall): Fields {
  const { background, outputFormat, outputCompression } = call.options;
  const passesStyle = isStylePassed(target, call);
  const fields: Fields = {
    model: target.model,
    prompt: writeImagePrompt(call, { withStyle: !passesStyle }),
    n: findImageFamily(target.model) === 'dall-e-3' ? 1 : call.n,
    size: call.size,
  };
  if (findImageFamily(target.model) !== 'gpt-image') fields['response_format'] = 'b64_json';
  if (call.quality !== null) fields['quality'] = call.quality;
  if (passesStyle) fields['style'] = call.style;
  if (call.user !== null) fields['user'] = call.user;
  if (isDallE(target)) return fields;
  if (background !== null) fields['background'] = background;
  if (outputFormat !== null) fields['output_format'] = outputFormat;
  // PNG has no quality setting; OpenAI rejects it.
  const isLossy = outputFormat === 'jpeg' || outputFormat === 'webp';
  if (outputCompression !== null && isLossy) fields['output_compression'] = outputCompression;
  return fields;
}

function toStreamFields(target: UpstreamTarget, call: ImageCall): Fields {
  return requestsStream(target, call) ? { stream: true, partial_images: call.partialImages } : {};
}

function isStylePassed({ model, drops }: UpstreamTarget, { style, inputs }: ImageCall): boolean {
  return (
    style !== null &&
    inputs.length === 0 &&
    findImageFamily(model) === 'dall-e-3' &&
    dallE3Styles.has(style) &&
    !drops.has('style')
  );
}

function isDallE({ model }: UpstreamTarget): boolean {
  return findImageFamily(model).startsWith('dall-e');
}

const extensions = { 'image/png': 'png', 'image/jpeg': 'jpg', 'image/webp': 'webp' } as const;

function toFile(name: string, stem: string, { bytes, contentType }: InputImage): FormFile {
  return { name, fileName: `${stem}.${extensions[contentType]}`, contentType, bytes };
}
