/**
 * What a conversation is in every dialect alike, so that the same one gets the same answer and is counted the same,
 * whichever it came in.
 */
export interface Turn {
  /** `other`: rules, and what tools answered. */
  readonly speaker: 'user' | 'model' | 'other';
  readonly text: string;
}

/**
 * What the user said since the model last spoke. A dialect may merge what stood in several messages, so all of them
 * count as one; tools' answers stand between without being anyone's word.
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

/** Texts of one message; pictures and files between them leave no trace. */
export function joinTexts(texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join(' ');
}

/** One dialect carries a tool's answer as text, another as an object: the same answer must be counted the same. */
export function readToolResult(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? JSON.stringify(value) : text;
  } catch {
    // Most tools answer in plain words.
    return text;
  }
}
