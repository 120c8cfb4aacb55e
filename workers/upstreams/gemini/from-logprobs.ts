import { isRecord, type JsonRecord, readArray } from '../json-value.ts';

/** `logprobsResult` of a candidate as OpenAI's `logprobs` of a choice; undefined where there is none. */
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

/** Gemini does not tell a token's bytes, and those of half a character cannot be had from its text. */
function toToken(candidate: unknown): JsonRecord {
  const { token, logProbability } = isRecord(candidate) ? candidate : {};
  return {
    token: typeof token === 'string' ? token : '',
    // A zero is left out on this wire: what is certain has the probability 1.
    logprob: typeof logProbability === 'number' ? logProbability : 0,
    bytes: null,
  };
}
