import { Lexer, type MarkedToken, type Token } from 'marked';

/** A longer text is shown as it is. */
const maxChars = 200_000;
/** A paragraph is read in the square of its length at worst, so a longer one stays plain. */
const maxParagraphChars = 4_000;
/** Quotes and lists within each other: each is an element within another. */
const maxDepth = 24;

/** The parser takes the square of the length for some texts, such as an item with many lines. Prefixes are read first. */
const firstPrefixChars = 4_000;
/** How long a prefix may take (ms): many times what ordinary texts take. Twice as much takes four times as long at worst. */
const patienceMs = (chars: number): number => 60 + chars / 500;
/** The beginning of a text that takes too long: it is not tried again while the text grows. */
let slowPrefix: string | null = null;

/**
 * Splits Markdown into tokens, in time that is proportional to its length. Returns null for what should be shown as it
 * is: it is too long, nested too deeply, or of a form that takes the parser too long.
 */
export function lexMarkdown(text: string): readonly Token[] | null {
  if (text.length > maxChars || hasDeepLine(text)) return null;
  if (slowPrefix !== null && text.startsWith(slowPrefix)) return null;
  for (let size = firstPrefixChars; size < text.length; size *= 2) {
    const startMs = performance.now();
    const prefix = text.slice(0, size);
    lex(prefix);
    if (performance.now() - startMs < patienceMs(size)) continue;
    slowPrefix = prefix;
    return null;
  }
  return lex(text);
}

function lex(text: string): readonly Token[] | null {
  const lexer = new Lexer({ gfm: true, breaks: true });
  try {
    const tokens = lexer.blockTokens(text.replaceAll(/\r\n?/g, '\n'), []);
    for (const { src, tokens: inline } of lexer.inlineQueue) {
      if (src.length <= maxParagraphChars) lexer.inlineTokens(src, inline);
      else inline.push({ type: 'escape', raw: src, text: src });
    }
    return isTooDeep(tokens) ? null : tokens;
  } catch {
    // The parser gives up on some texts, such as an endless quote. They can still be read.
    return null;
  }
}

const hasDeepLine = (text: string): boolean =>
  text.split('\n').some((line) => {
    const marks = /^[\s>*+-]*/.exec(line)![0].replaceAll(/\s/g, '');
    return marks.length > maxDepth && marks.includes('>');
  });

/** Lists become deep by their numbers and by their indents, too. */
const isTooDeep = (tokens: readonly Token[], depth = 0): boolean =>
  depth > maxDepth || tokens.some((token) => isTooDeep(listInner(token as MarkedToken), depth + 1));

function listInner(token: MarkedToken): readonly Token[] {
  if (token.type === 'list') return token.items.flatMap(({ tokens }) => tokens);
  return 'tokens' in token ? (token.tokens ?? []) : [];
}
