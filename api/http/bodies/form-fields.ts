import type { TSchema } from 'typebox';
import { invalidField } from '../../../shared/contract/errors.ts';
import type { JsonSchema } from '../../description/description.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';

/** `image`, `image[]`, `mask[image_url]`, `images[0][image_url]`: how OpenAI's clients encode lists and objects. */
const fieldName = /^([^[\]]{1,64})(?:\[([^[\]]{0,64})\](?:\[([^[\]]{1,64})\])?)?$/;
const listIndex = /^\d{0,4}$/;
const wholeNumber = /^-?\d{1,15}$/;

/** How to build the body from a form. */
export interface FormContract {
  /** Schema of the body. Texts are converted to the numbers and booleans that it requires. */
  readonly schema: TSchema;
  /** Fields whose parts may be files. */
  readonly files: readonly string[];
}

/** The parts of one field, grouped by the form of their names. Values are in order of arrival. */
interface Field {
  /** `name` and `name[]`. */
  readonly values: string[];
  isList: boolean;
  hasFile: boolean;
  /** `name[key]` and its subkeys. */
  readonly keyed: { readonly key: string; readonly inner: string | null; readonly value: string }[];
}

/**
 * Builds, from the parts of a form, the body that the same request would have as JSON. The hash of an Idempotency-Key
 * is computed from this body, so it must not depend on the order of the parts, except within a list, or on any other
 * detail of the encoding.
 */
export class FormFields {
  readonly #fields = new Map<string, Field>();

  /** @throws AppError if the name does not match `fieldName` */
  add(name: string | undefined, value: string, { isFile = false } = {}): void {
    const match = name === undefined ? null : fieldName.exec(name);
    if (match === null) {
      const what = name === undefined ? 'has a part without a name' : `has a part named ${shorten(name)}`;
      const msg = `The form ${what}. Name parts like the fields of the JSON body: image, image[], mask, prompt.`;
      throw invalidField(['body'], msg, { type: 'form_invalid' });
    }
    const [, root, key, inner = null] = match;
    const field = this.#open(root!);
    if (isFile) field.hasFile = true;
    if (key === undefined || (key === '' && inner === null)) {
      field.values.push(value);
      if (key === '') field.isList = true;
    } else {
      field.keyed.push({ key, inner, value });
    }
  }

  /**
   * @throws AppError if a field that does not accept files was sent as a file; its value in the body would be base64
   */
  toBody({ schema, files }: FormContract): Record<string, unknown> {
    const properties = (schema as JsonSchema).properties ?? {};
    const read = (name: string): [string, unknown] => {
      const field = this.#fields.get(name)!;
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
      if (field.hasFile && property !== undefined && !files.includes(name)) {
        const msg = 'was sent as a file. Send it as text, without a file name and a Content-Type.';
        throw invalidField(['body', name], msg, { type: 'form_invalid' });
      }
      return [name, readField(name, field, property)];
    };
    return Object.fromEntries([...this.#fields.keys()].toSorted().map(read));
  }

  #open(name: string): Field {
    let field = this.#fields.get(name);
    if (field === undefined) {
      field = { values: [], isList: false, hasFile: false, keyed: [] };
      this.#fields.set(name, field);
    }
    return field;
  }
}

function readField(name: string, field: Field, schema: JsonSchema | undefined): unknown {
  const { values, isList, keyed } = field;
  if (keyed.length > 0 && values.length > 0) {
    const msg = 'was sent both with and without a key in brackets. Use only one form.';
    throw invalidField(['body', name], msg, { type: 'form_invalid' });
  }
  if (keyed.length > 0) return readKeyed(field);
  const [first] = values;
  return isList || values.length > 1 ? values : readText(first!, schema);
}

/** Returns a list if every key is an index or empty, otherwise an object. */
function readKeyed({ keyed }: Field): unknown {
  if (!keyed.every(({ key }) => listIndex.test(key)))
    return Object.fromEntries(keyed.map(({ key, value }) => [key, value]));
  const items = new Map<number, unknown>();
  for (const { key, inner, value } of keyed) {
    const index = key === '' ? Math.max(-1, ...items.keys()) + 1 : Number(key);
    const before = items.get(index);
    if (inner === null) items.set(index, value);
    else items.set(index, { ...(typeof before === 'object' ? before : {}), [inner]: value });
  }
  return [...items].toSorted(([a], [b]) => a - b).map(([, item]) => item);
}

/** Text that does not match the schema's type stays text, and validation rejects it. */
function readText(text: string, schema: JsonSchema | undefined): unknown {
  const types = [schema?.type].flat();
  if (types.includes('integer') && wholeNumber.test(text)) return Number(text);
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}
