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
 * Returns the user's text after the last text of the model. A dialect may merge several messages, so all of them count
 * as one. Tool results in between belong to neither speaker.
 */
export function findLastUserText(turns: readonly Turn[]): string {
  const run: string[] = [];
  for (const { speaker, text } of turns.toReversed()) {
    if (speaker === 'model' && run.length > 0) {
      break;
    }
    if (speaker === 'user' && text !== '') {
      run.unshift(text);
    }
  }
  return run.join(' ');
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
