/**
 * The dialect-independent form of a conversation. The same conversation gets the same response and token count in
 * every dialect.
 */
export interface Turn {
  /** `other`: system prompts and tool results. */
  readonly speaker: 'user' | 'model' | 'other';
  readonly text: string;
}

/**
 * Returns the latest user text. Consecutive user messages count as one text, because a dialect may merge them into one
 * message. Skips model turns after the text, and tool results and system prompts anywhere.
 */
export function findLastUserText(turns: readonly Turn[]): string {
  const texts: string[] = [];
  for (const { speaker, text } of turns.toReversed()) {
    if (speaker === 'model' && texts.length > 0) {
      break;
    }
    if (speaker === 'user' && text !== '') {
      texts.unshift(text);
    }
  }
  return texts.join(' ');
}

/** Joins the texts of one message. Skips images and files between them. */
export function joinTexts(texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join(' ');
}

/** Returns a tool's result as text. Some dialects send text, others an object, but the token count must be the same. */
export function readToolResult(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? JSON.stringify(value) : text;
  } catch {
    // Most tools return plain text.
    return text;
  }
}
