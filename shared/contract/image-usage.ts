import Type, { type Static } from 'typebox';
import { CostRequest, FreeRequest, TotalTime } from './fields.ts';

const tokens = (description: string) => Type.Integer({ minimum: 0, description });

/** OpenAI's fields, which its typed clients require, and ours. */
export const ImageUsage = Type.Object(
  {
    input_tokens: tokens(
      'Tokens of the prompt and the input images, as reported by the vendor; 0 if not reported.',
    ),
    output_tokens: tokens('Tokens of the generated images, as reported by the vendor; 0 if not reported.'),
    total_tokens: tokens('The sum of `input_tokens` and `output_tokens`.'),
    input_tokens_details: Type.Object({
      text_tokens: tokens('Tokens of the prompt.'),
      image_tokens: tokens('Tokens of the input images; 0 if the vendor does not report them separately.'),
    }),
    total_time: TotalTime,
    cost_request: CostRequest,
    free_request: FreeRequest,
  },
  { title: 'ImageUsage' },
);
export type ImageUsage = Static<typeof ImageUsage>;

/** What a vendor reported about an image request. Absent where it did not say. */
export interface ImageTokens {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  /** Of the input tokens. */
  readonly imageTokens?: number | undefined;
}

/** @param receipt what the request took and cost */
export function createImageUsage(
  { inputTokens = 0, outputTokens = 0, imageTokens = 0 }: ImageTokens,
  receipt: Pick<ImageUsage, 'total_time' | 'cost_request' | 'free_request'>,
): ImageUsage {
  return {
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    input_tokens_details: { text_tokens: inputTokens - imageTokens, image_tokens: imageTokens },
    ...receipt,
  };
}
