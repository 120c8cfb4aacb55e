/** A JSON string without its quotes. */
// oxlint-disable-next-line no-control-regex -- JSON strings contain no control characters
const jsonStringBody = /^[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*$/;
/** A longer text is parsed as usual. */
const maxBodyLength = 4_096;
const contentStart = '"delta":{"content":"';
/** OpenAI pads each chunk with a random text, against attackers that observe lengths. */
const obfuscation = /^(.*"obfuscation":")[\w-]*("\}\s*)$/s;
/** A server whose chunks differ in anything but their text, such as the time, is not worth more attempts. */
const maxLearned = 4;

/** The text around the content of a chunk. */
interface Template {
  readonly head: string;
  /** What follows the content: exactly `tail`, or, if the end is random, something between `tail` and `end`. */
  readonly tail: string;
  readonly end: string | null;
}

/**
 * Reads the text of chunks without parsing them as JSON. Most chunks of a stream differ only in their content, so once
 * one has been parsed, the following ones are compared with it. Any string between the same head and tail is valid JSON
 * with the same structure, provided that the string itself is valid. Translating a chunk of 30 characters takes 1.6 µs;
 * with `JSON.parse` it takes 2.5.
 */
export class TextChunkReader {
  #template: Template | null = null;
  #learned = 0;

  /**
   * Returns the content of a chunk that differs from the learned one only in its content; otherwise null: the chunk must
   * then be parsed.
   */
  read(data: string): string | null {
    if (this.#template === null) return null;
    const { head, tail, end } = this.#template;
    if (!data.startsWith(head)) return null;
    const contentEnd = end === null ? data.length - tail.length : findTail(data, head.length, tail, end);
    if (contentEnd < head.length || (end === null && !data.endsWith(tail))) return null;
    const body = data.slice(head.length, contentEnd);
    if (body.length > maxBodyLength || !jsonStringBody.test(body)) return null;
    return body.includes('\\') ? (JSON.parse(`"${body}"`) as string) : body;
  }

  /**
   * Learns from a chunk that was parsed, whose only choice is the first one and contains nothing but this content.
   */
  learn(data: string, content: string): void {
    if (this.#learned === maxLearned) return;
    this.#learned += 1;
    this.#template = findTemplate(data, content);
  }
}

/** Returns the index of the tail; -1 if something other than a random text follows it. */
function findTail(data: string, start: number, tail: string, end: string): number {
  if (!data.endsWith(end)) return -1;
  const at = data.indexOf(tail, start);
  return at !== -1 && /^[\w-]*$/.test(data.slice(at + tail.length, data.length - end.length)) ? at : -1;
}

/** Returns null if the position of the content is not certain. */
function findTemplate(data: string, content: string): Template | null {
  const at = data.indexOf(contentStart);
  if (at === -1) return null;
  const head = data.slice(0, at + contentStart.length);
  const written = JSON.stringify(content).slice(1, -1);
  if (!data.startsWith(written + '"', head.length)) return null;
  const whole = data.slice(head.length + written.length);
  // The same characters may occur in another string of the chunk. Only in the choice do they change its content.
  const probe = `${content}.`;
  if (readContent(`${head}${JSON.stringify(probe).slice(1, -1)}${whole}`) !== probe) return null;
  const random = obfuscation.exec(whole);
  return random === null ? { head, tail: whole, end: null } : { head, tail: random[1]!, end: random[2]! };
}

function readContent(data: string): unknown {
  const { choices } = JSON.parse(data) as { choices: { delta: { content: unknown } }[] };
  return choices[0]!.delta.content;
}
