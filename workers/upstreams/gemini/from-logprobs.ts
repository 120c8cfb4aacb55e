import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray } from '../json-value.ts';

/** Converts a candidate's `logprobsResult` to the `logprobs` of an OpenAI choice; undefined if there is none. */
export function fromLogprobs(result: unknown): JsonRecord | undefined {
  if (!isRecord(result)) {
    return undefined;
  }
  const others = readArray(result['topCandidates']);
  const content = readArray(result['chosenCandidates']).map((chosen, position) => {
    const top = others[position];
    const candidates = isRecord(top) ? readArray(top['candidates']) : [];
    return { ...toToken(chosen), top_logprobs: candidates.map(toToken) };
  });
  return content.length === 0 ? undefined : { content, refusal: null };
}

/** Gemini does not report a token's bytes, and the bytes of a partial character cannot be derived from its text. */
function toToken(candidate: unknown): JsonRecord {
  const { token, logProbability } = isRecord(candidate) ? candidate : {};
  return {
    token: typeof token === 'string' ? token : '',
    // Zeros are omitted in this format, so a missing value means a probability of 1.
    logprob: typeof logProbability === 'number' ? logProbability : 0,
    bytes: null,
  };
}
