import { html, type Html } from '../../../shared/runtime/html.ts';

/** A key with its colon, a text, or a number or word of JSON. */
const token = /("(?:[^"\\]|\\.)*")(\s*:)?|(?<![\w.-])(-?\d[\d.eE+-]*|true|false|null)\b/g;

/** JSON, or a text with JSON in it, with its keys and values told apart. */
export function highlightJson(text: string): Html[] {
  const pieces: Html[] = [];
  let end = 0;
  for (const match of text.matchAll(token)) {
    const [whole, quoted, colon, plain] = match;
    pieces.push(html`${text.slice(end, match.index)}`);
    if (quoted === undefined) pieces.push(html`<span class="value">${plain ?? ''}</span>`);
    else if (colon === undefined) pieces.push(html`<span class="text">${quoted}</span>`);
    else pieces.push(html`<span class="key">${quoted}</span>${colon}`);
    end = match.index + whole.length;
  }
  pieces.push(html`${text.slice(end)}`);
  return pieces;
}
