import { isRecord } from '../../encoding/json-record.ts';
import {
  bodyValues,
  FieldTexts,
  isDataUri,
  textFields,
  type BodyFacts,
  type LineFacts,
  type TextField,
} from './line-facts.ts';

/**
 * Reads a line that is parsed in one go.
 * @throws SyntaxError if it is not JSON
 * @returns null if it is no object
 */
export function readShortLine(text: string): LineFacts | null {
  const value: unknown = JSON.parse(text);
  if (!isRecord(value)) return null;
  const { custom_id, method, url, body } = value;
  return { custom_id, method, url, ...(body === undefined ? {} : { body: readBody(body) }) };
}

function readBody(body: unknown): BodyFacts | null {
  if (!isRecord(body)) return null;
  const facts: BodyFacts = { fields: {} };
  for (const name of bodyValues) facts[name] = body[name];
  for (const name of textFields) {
    if (body[name] !== undefined) facts.fields[name] = readTexts(body[name], name);
  }
  return facts;
}

/** Does not recurse, because the value may be nested as deep as its text is long. */
function readTexts(value: unknown, name: TextField): FieldTexts {
  const field = new FieldTexts();
  if (Array.isArray(value)) {
    field.elements = value.length;
    field.isTokenArray = typeof value[0] === 'number';
  }
  const remaining: unknown[] = [value];
  while (remaining.length > 0) {
    const one = remaining.pop();
    if (typeof one === 'string') {
      if (!isDataUri(one)) field.texts.push(one);
    } else if (typeof one === 'number') {
      if (name === 'input') field.tokenIds += 1;
    } else if (typeof one === 'object' && one !== null) {
      for (const inner of Object.values(one)) remaining.push(inner);
    }
  }
  return field;
}
