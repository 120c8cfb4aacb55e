import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readText } from '../json-value.ts';
import type { ChatEvent, WebSource } from '../upstream.ts';
import { toExtraContent, toSavedSignatures } from './thought-signatures.ts';
import { createToolCallId } from './tool-call-ids.ts';

export interface CandidateOptions {
  /** As in the route. Signatures saved with tool calls are only valid for this model. */
  readonly model: string;
  /**
   * Gemini has no `parallel_tool_calls`. If the caller turned parallel calls off, only the first call of a response is
   * passed on.
   */
  readonly oneCall: boolean;
}

/** One candidate of a response, as far as it has arrived. */
export interface Candidate {
  readonly index: number;
  /** The vendor's finish reason; null if the candidate has not finished. */
  readonly native: string | null;
  readonly hasCalls: boolean;
  /** Whether it contained anything besides thoughts. */
  readonly hasOutput: boolean;
  take(candidate: JsonRecord): ChatEvent[];
  /** Returns the opening delta of the response if it has not been sent. */
  open(): ChatEvent[];
}

type Delta = Extract<ChatEvent, { type: 'delta' }>;

const UNSPECIFIED = 'FINISH_REASON_UNSPECIFIED';

export function createCandidate(index: number, { model, oneCall }: CandidateOptions): Candidate {
  const seenUrls = new Set<string>();
  let isOpen = false;
  let native: string | null = null;
  let calls = 0;
  let hasOutput = false;

  function toDelta(delta: JsonRecord): Delta {
    const opening = isOpen ? {} : { role: 'assistant' };
    isOpen = true;
    return { type: 'delta', index, delta: { ...opening, ...delta } };
  }

  /** The probabilities cover all text of a chunk, so they are attached to its last text delta. */
  function addLogprobs(events: ChatEvent[], logprobs: JsonRecord): void {
    const last = events.findLastIndex((event) => event.type === 'delta' && 'content' in event.delta);
    const textDelta = last === -1 ? toDelta({ content: '' }) : events[last];
    events.splice(last === -1 ? events.length : last, 1, { ...(textDelta as Delta), logprobs });
  }

  function takePart(part: JsonRecord): ChatEvent[] {
    const text = readText(part['text']);
    if (part['thought'] === true) {
      // An image among the thoughts is a draft; the finished image follows in the response.
      return text === null ? [] : [toDelta({ reasoning_content: text })];
    }
    if (text !== null) {
      hasOutput = true;
      return [toDelta({ content: text })];
    }
    if (isRecord(part['functionCall'])) {
      hasOutput = true;
      return takeCall(part['functionCall'], readText(part['thoughtSignature']));
    }
    return isRecord(part['inlineData']) ? takeImage(part['inlineData']) : [];
  }

  function takeCall(call: JsonRecord, thoughtSignature: string | null): ChatEvent[] {
    if (oneCall && calls > 0) {
      return [];
    }
    const id = readText(call['id']) ?? createToolCallId();
    const toolCall = {
      index: calls,
      id,
      type: 'function',
      function: { name: readText(call['name']) ?? '', arguments: JSON.stringify(call['args'] ?? {}) },
    };
    calls += 1;
    if (thoughtSignature === null) {
      return [toDelta({ tool_calls: [toolCall] })];
    }
    return [
      toDelta({ tool_calls: [{ ...toolCall, extra_content: toExtraContent(thoughtSignature) }] }),
      { type: 'remember', index, toolCallId: id, value: toSavedSignatures(model, thoughtSignature) },
    ];
  }

  function takeImage(blob: JsonRecord): ChatEvent[] {
    const data = readText(blob['data']);
    const mimeType = readText(blob['mimeType']) ?? '';
    if (data === null || !mimeType.startsWith('image/')) {
      return [];
    }
    hasOutput = true;
    const url = `data:${mimeType};base64,${data}`;
    return [toDelta({ images: [{ type: 'image_url', image_url: { url } }] })];
  }

  /** Each chunk repeats the growing list of sources; each page is reported only once. */
  function takeSources(metadata: JsonRecord): ChatEvent[] {
    const sources: WebSource[] = [];
    for (const chunk of readArray(metadata['groundingChunks'])) {
      const web = isRecord(chunk) && isRecord(chunk['web']) ? chunk['web'] : {};
      const url = readText(web['uri']);
      if (url !== null && !seenUrls.has(url)) {
        seenUrls.add(url);
        sources.push({ url, title: readText(web['title']) });
      }
    }
    return sources.length === 0 ? [] : [{ type: 'sources', index, sources }];
  }

  return {
    index,

    get native() {
      return native;
    },

    get hasCalls() {
      return calls > 0;
    },

    get hasOutput() {
      return hasOutput;
    },

    take(candidate) {
      const content = isRecord(candidate['content']) ? candidate['content'] : {};
      const events = readArray(content['parts']).flatMap((part) => (isRecord(part) ? takePart(part) : []));
      const logprobs = fromLogprobs(candidate['logprobsResult']);
      if (logprobs !== undefined) {
        addLogprobs(events, logprobs);
      }
      if (isRecord(candidate['groundingMetadata'])) {
        events.push(...takeSources(candidate['groundingMetadata']));
      }
      const reason = readText(candidate['finishReason']);
      native = reason === null || reason === UNSPECIFIED ? native : reason;
      return events;
    },

    open: () => (isOpen ? [] : [toDelta({ content: '' })]),
  };
}

/** Converts a candidate's `logprobsResult` to the `logprobs` of an OpenAI choice; undefined if there is none. */
function fromLogprobs(result: unknown): JsonRecord | undefined {
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
