import { Ajv2020 } from 'ajv/dist/2020.js';
import formatsPlugin from 'ajv-formats';
import type { Description, ResponseObject } from '../../shared/contract/openapi/description.ts';

/** Holds real answers against a description, with the schemas of the description itself. */
export class DescriptionChecker {
  readonly #description: Description;
  readonly #ajv = new Ajv2020({ strict: false, validateSchema: false, validateFormats: false });

  constructor(description: Description) {
    this.#description = description;
    (formatsPlugin as unknown as (instance: Ajv2020) => void)(this.#ajv);
    this.#ajv.addSchema(description, 'description');
  }

  /** What about an answer is not as the description says; reads its body. */
  async findFaults(path: string, method: string, answer: Response): Promise<string[]> {
    const { status, headers } = answer;
    const described = this.#description.paths[path]?.[method]?.responses[String(status)];
    if (described === undefined) return [`the status ${status} is not described: ${await answer.text()}`];
    const faults = findHeaderFaults(described, headers);
    const contentType = (headers.get('content-type') ?? '').replace(/ *;.*/, '');
    if (Object.keys(described.content).length === 0) {
      return contentType === '' ? faults : [...faults, `a body of ${contentType} is not described`];
    }
    const range = Object.keys(described.content).find((one) => isWithin(contentType, one));
    if (range === undefined) return [...faults, `the type ${contentType} is not described for ${status}`];
    const body = await answer.text();
    if (contentType !== 'application/json') return faults;
    const pointer = ['paths', path, method, 'responses', String(status), 'content', range, 'schema'];
    const place = pointer.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).join('/');
    const validate = this.#ajv.compile({ $ref: `description#/${encodeURI(place)}` });
    if (validate(JSON.parse(body))) return faults;
    return [...faults, `the body of ${status}: ${this.#ajv.errorsText(validate.errors)}: ${body}`];
  }
}

/** Headers of the gateway's own that are sent and not described, or the other way round where they always come. */
function findHeaderFaults({ headers, content }: ResponseObject, sent: Headers): string[] {
  // How to send a key is told only to those who sent none that is right, and not to those without a session.
  const isForSome = 'unauthenticated' in (content['application/json']?.examples ?? {});
  const always = [
    'x-request-id',
    'retry-after',
    'x-should-retry',
    ...(isForSome ? [] : ['www-authenticate']),
  ];
  return always
    .filter((name) => sent.has(name) !== name in headers)
    .map((name) => `the header ${name} is ${sent.has(name) ? 'sent' : 'described'} only`);
}

/** Whether a type is within a range such as `image/*`. */
function isWithin(contentType: string, range: string): boolean {
  return range.endsWith('/*') ? contentType.startsWith(range.slice(0, -1)) : contentType === range;
}
