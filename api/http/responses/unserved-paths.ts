import type { Operation } from '../../../shared/contract/operation.ts';
import { operations } from '../../contract/operations.ts';

const chat = 'POST /v1/chat/completions';

/** Hints for paths that clients of OpenAI and other vendors call but this gateway does not serve. */
const substitutes: readonly (readonly [path: RegExp, hint: string])[] = [
  [
    /^\/v1\/responses\b/,
    `The Responses API is not served here. Use ${chat}, such as client.chat.completions.`,
  ],
  [/^\/v1\/(?:engines\/.+\/)?completions$/, `Completions of plain prompts are not served here. Use ${chat}.`],
  [/^\/v1\/messages\b/, `Anthropic's API is not served here. Use ${chat}, with an OpenAI client.`],
  [
    /^\/v1beta\/|:(?:streamG|g)enerateContent$/,
    `Gemini's API is not served here. Use ${chat}, with an OpenAI client.`,
  ],
  [
    /^\/v1\/images\/(?:edits|variations)$/,
    'Use POST /v1/images/generations with image_url to change an image.',
  ],
  [/^\/v1\/audio\b/, `There are no operations for sound. Models that hear or speak are asked by ${chat}.`],
  [
    /^\/v1\/(?:files|uploads)\b/,
    `No files are kept here. Send each with its message to ${chat}, as file.file_data.`,
  ],
  [
    /^\/v1\/(?:assistants|threads|conversations)\b/,
    `No conversations are kept here. Send all messages to ${chat}.`,
  ],
  [
    /^\/v1\/vector_stores\b/,
    'No vectors are stored here. Make them by POST /v1/embeddings, and search them yourself.',
  ],
  [
    /^\/v1\/batches\b/,
    'There are no batches. Send the requests one by one; POST /v1/embeddings takes 2048 inputs at once.',
  ],
  [
    /^\/v1\/(?:moderations|fine_tuning|realtime|evals|containers|videos|organization)\b/,
    'This part of OpenAI’s API is not served here. /docs lists what is.',
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
    return `Clients add the method to the base URL themselves: cut ${doubled} from it, so that it ends in /v1.`;
  const hint = substitutes.find(([pattern]) => pattern.test(path))?.[1];
  if (hint !== undefined) return hint;
  if (path.startsWith('/v1/v1/')) return 'It has /v1 twice: check the base URL, which ends in /v1.';
  if (firstParts.has(findFirstPart(path))) return 'It lacks the /v1 that the base URL ends in.';
  return '/docs lists what there is.';
}
