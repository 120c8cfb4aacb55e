import { encryptResult } from './anthropic-messages.ts';
import type { ChatScript, ScriptedToolCall } from '../chat-script.ts';
import { signText } from '../signatures.ts';
import { findCitedFrom, SEARCH_RESULTS } from '../web-search.ts';

/** A content block: its complete form, and the start and deltas of a stream. */
export interface ResponseBlock {
  readonly whole: object;
  readonly start: object;
  readonly deltas: readonly object[];
}

export function buildBlocks(script: ChatScript, showsThoughts: boolean): readonly ResponseBlock[] {
  return [
    ...(script.reasoning.length > 0 ? [buildThinking(showsThoughts ? script.reasoning : [])] : []),
    ...(script.searchQuery === null ? [] : buildSearch(script.searchQuery)),
    ...buildTexts(script),
    ...script.toolCalls.map(buildToolUse),
  ];
}

/** Hidden thinking is signed, too, and is sent as an empty text. */
function buildThinking(pieces: readonly string[]): ResponseBlock {
  const thinking = pieces.join('');
  const signature = signText(thinking);
  return {
    whole: { type: 'thinking', thinking, signature },
    start: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...pieces.map((piece) => ({ type: 'thinking_delta', thinking: piece })),
      { type: 'signature_delta', signature },
    ],
  };
}

function buildToolUse({ number, name, input, argumentPieces }: ScriptedToolCall): ResponseBlock {
  return buildUse({ type: 'tool_use', id: `toolu_simulated_${number}`, name }, input, argumentPieces);
}

/** The first piece is empty. It is the only one if the tool has no input. */
function buildUse(head: object, input: unknown, pieces: readonly string[]): ResponseBlock {
  const sentPieces = pieces.join('') === '{}' ? [''] : ['', ...pieces];
  return {
    whole: { ...head, input },
    start: { ...head, input: {} },
    deltas: sentPieces.map((partial_json) => ({ type: 'input_json_delta', partial_json })),
  };
}

const SEARCH_ID = 'srvtoolu_simulated';

function buildSearch(query: string): readonly ResponseBlock[] {
  const results = {
    type: 'web_search_tool_result',
    tool_use_id: SEARCH_ID,
    content: SEARCH_RESULTS.map((result) => ({
      type: 'web_search_result',
      url: result.url,
      title: result.title,
      encrypted_content: encryptResult(result),
      page_age: null,
    })),
  };
  const use = { type: 'server_tool_use', id: SEARCH_ID, name: 'web_search' };
  return [
    buildUse(use, { query }, [JSON.stringify({ query })]),
    { whole: results, start: results, deltas: [] },
  ];
}

/** Text that is based on a source is a separate block. */
function buildTexts({ pieces, searchQuery }: ChatScript): readonly ResponseBlock[] {
  const citedFrom = searchQuery === null ? pieces.length : findCitedFrom(pieces);
  return [
    buildText(pieces.slice(0, citedFrom), []),
    buildText(pieces.slice(citedFrom), SEARCH_RESULTS),
  ].flat();
}

function buildText(
  pieces: readonly string[],
  sources: readonly { url: string; title: string; text: string }[],
): readonly ResponseBlock[] {
  if (pieces.length === 0) {
    return [];
  }
  const citations = sources.map(({ url, title, text }) => ({
    type: 'web_search_result_location',
    url,
    title,
    cited_text: text,
    encrypted_index: Buffer.from(url).toString('base64'),
  }));
  const isCited = citations.length > 0;
  return [
    {
      whole: { type: 'text', text: pieces.join(''), citations: isCited ? citations : null },
      start: { type: 'text', text: '', ...(isCited ? { citations: [] } : {}) },
      deltas: [
        ...citations.map((citation) => ({ type: 'citations_delta', citation })),
        ...pieces.map((text) => ({ type: 'text_delta', text })),
      ],
    },
  ];
}
