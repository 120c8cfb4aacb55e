import type { FinishReason } from './upstream.ts';

/** How a vendor's word for the end of a choice is understood. */
export type FinishMeaning = FinishReason | 'failure';

/** The words of all dialects, in the spelling that `fold` returns. `docs/vendors.md` has the same lists. */
const words: Readonly<Record<FinishMeaning, string>> = {
  stop: 'stop stop_sequence end_turn end_of_turn eos eos_token complete completed',
  length:
    'length max_tokens max_length max_output_tokens model_length model_context_window_exceeded context_length_exceeded ' +
    'continuation pause_turn',
  tool_calls: 'tool_calls tool_call tool_use function_call',
  content_filter:
    'content_filter content_filtered safety refusal recitation blocklist prohibited_content spii model_armor ' +
    'image_safety image_prohibited_content image_recitation guardrail_intervened sensitive',
  failure:
    'error abort aborted cancelled insufficient_system_resource internal_error network_error malformed_response ' +
    'malformed_function_call unexpected_tool_call missing_thought_signature too_many_tool_calls no_image image_other other',
};

const meanings = new Map(
  Object.entries(words).flatMap(([meaning, list]) =>
    list.split(' ').map((word) => [word, meaning as FinishMeaning] as const),
  ),
);

/** Upper and lower case mean the same, and so do `-` and `_`. */
const fold = (word: string): string => word.toLowerCase().replaceAll('-', '_');

/** Returns what a word means; null if it is in none of the lists. */
export function readFinishWord(word: string): FinishMeaning | null {
  return meanings.get(fold(word)) ?? null;
}
