import Type, { type Static } from 'typebox';
import { CostRequest, FreeRequest, TotalTime } from './fields.ts';

const tokens = (description: string) => Type.Integer({ minimum: 0, description });

/** OpenAI's fields, which its typed clients require, and ours. */
export const ImageUsage = Type.Object(
  {
    input_tokens: tokens(
      'Of the prompt and the input images, as the vendor counted; 0 where it did not say.',
    ),
    output_tokens: tokens('Of the images, as the vendor counted; 0 where it did not say.'),
    total_tokens: tokens('The sum of both.'),
    input_tokens_details: Type.Object({
      text_tokens: tokens('Of the prompt.'),
      image_tokens: tokens('Of the input images; 0 where the vendor did not tell them apart.'),
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
