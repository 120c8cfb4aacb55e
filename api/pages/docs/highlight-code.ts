import { html, type Html } from '../../../shared/platform/runtime/html.ts';

/** Matches a JSON key with its colon, a string, or a number, boolean or null. */
const token = /("(?:[^"\\]|\\.)*")(\s*:)?|(?<![\w.-])(-?\d[\d.eE+-]*|true|false|null)\b/g;

/** Highlights keys and values in JSON, or in a text that contains JSON. */
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
