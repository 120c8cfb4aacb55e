import type { Operation } from '../../../shared/contract/operation.ts';
import { operations } from '../../contract/operations.ts';

const chat = 'POST /v1/chat/completions';

/** Hints for paths that clients of OpenAI and other vendors call but this gateway does not serve. */
const substitutes: readonly (readonly [path: RegExp, hint: string])[] = [
  [
    /^\/v1\/responses\b/,
    `The Responses API is not supported. Use ${chat}, which is client.chat.completions in OpenAI's SDKs.`,
  ],
  [/^\/v1\/(?:engines\/.+\/)?completions$/, `The legacy Completions API is not supported. Use ${chat}.`],
  [/^\/v1\/messages\b/, `Anthropic's API is not supported. Use ${chat} with an OpenAI client.`],
  [
    /^\/v1beta\/|:(?:streamG|g)enerateContent$/,
    `Gemini's API is not supported. Use ${chat} with an OpenAI client.`,
  ],
  [
    /^\/v1\/images\/(?:edits|variations)$/,
    'To edit an image, use POST /v1/images/generations with image_url.',
  ],
  [/^\/v1\/audio\b/, `There are no audio endpoints. Use ${chat} with a model that supports audio.`],
  [
    /^\/v1\/uploads\b/,
    `Uploads in parts are not supported. Send the input of a batch with POST /v1/files, and any other file in its message to ${chat}, as file.file_data.`,
  ],
  [
    /^\/v1\/(?:assistants|threads|conversations)\b/,
    `Conversations are not stored. Send all messages with each request to ${chat}.`,
  ],
  [
    /^\/v1\/vector_stores\b/,
    'Vector stores are not supported. Create vectors with POST /v1/embeddings, and store and search them yourself.',
  ],
  [
    /^\/v1\/(?:moderations|fine_tuning|realtime|evals|containers|videos|organization)\b/,
    'This part of OpenAI’s API is not supported. See /docs for the available endpoints.',
  ],
];

/** A base URL that ends in a method, to which a client has added one. */
const doubledMethod =
  /^\/v1(\/(?:chat\/completions|completions|embeddings|images\/generations|images\/edits))\/(?:v1\/)?(?:chat|completions|embeddings|images|models)(?:\/|$)/;

const findFirstPart = (path: string): string => path.split('/')[1] ?? '';

/** First path segments of the operations under the version segment. */
const firstParts = new Set(
  Object.values<Operation>(operations)
    .filter(({ atRoot }) => atRoot !== true)
    .map(({ path }) => findFirstPart(path)),
);

/** Suggests, in a sentence or two, what to call instead of an unknown path. */
export function suggestPath(path: string): string {
  const doubled = doubledMethod.exec(path)?.[1];
  if (doubled !== undefined)
    return `Clients append the endpoint to the base URL. Remove ${doubled} from the base URL, so that it ends in /v1.`;
  const hint = substitutes.find(([pattern]) => pattern.test(path))?.[1];
  if (hint !== undefined) return hint;
  if (path.startsWith('/v1/v1/'))
    return 'The path contains /v1 twice. Check the base URL, which must end in a single /v1.';
  if (firstParts.has(findFirstPart(path)))
    return 'The path lacks /v1. Check the base URL, which must end in /v1.';
  return 'See /docs for the available endpoints.';
}
