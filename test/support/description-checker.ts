import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formatsPlugin from 'ajv-formats';
import type { Description, ResponseObject } from '../../api/description/description.ts';

/** Checks real responses against the schemas of an OpenAPI document. */
export class DescriptionChecker {
  readonly #description: Description;
  readonly #ajv = new Ajv2020({ strict: false, validateSchema: false, validateFormats: false });
  /** Compiled schemas by their path in the document, because compiling one takes far longer than using it. */
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(description: Description) {
    this.#description = description;
    (formatsPlugin as unknown as (instance: Ajv2020) => void)(this.#ajv);
    this.#ajv.addSchema(description, 'description');
  }

  /** Lists the differences between a response and its documentation. Reads the body. */
  async findFaults(path: string, method: string, response: Response): Promise<string[]> {
    const { status, headers } = response;
    const described = this.#description.paths[path]?.[method]?.responses[String(status)];
    if (described === undefined) return [`the status ${status} is not described: ${await response.text()}`];
    const differences = findHeaderFaults(described, headers);
    const contentType = (headers.get('content-type') ?? '').replace(/ *;.*/, '');
    if (Object.keys(described.content).length === 0) {
      return contentType === '' ? differences : [...differences, `a body of ${contentType} is not described`];
    }
    const range = Object.keys(described.content).find((one) => isWithin(contentType, one));
    if (range === undefined)
      return [...differences, `the type ${contentType} is not described for ${status}`];
    const body = await response.text();
    if (contentType !== 'application/json') return differences;
    const pointer = ['paths', path, method, 'responses', String(status), 'content', range, 'schema'];
    const schemaPath = pointer.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).join('/');
    const validate = this.#compile(`description#/${encodeURI(schemaPath)}`);
    if (validate(JSON.parse(body))) return differences;
    return [...differences, `the body of ${status}: ${this.#ajv.errorsText(validate.errors)}: ${body}`];
  }

  #compile($ref: string): ValidateFunction {
    const validate = this.#validators.get($ref) ?? this.#ajv.compile({ $ref });
    this.#validators.set($ref, validate);
    return validate;
  }
}

/** Lists headers added by the gateway that are sent but not described, or described but not sent. */
function findHeaderFaults({ headers, content }: ResponseObject, sent: Headers): string[] {
  // WWW-Authenticate is sent for a missing or wrong key, but not for a missing session. Both share one description.
  // Likewise, Retry-After is sent for a budget, but not for a balance.
  const errors = content['application/json']?.examples ?? {};
  const checked = [
    'x-request-id',
    'x-should-retry',
    ...('unauthenticated' in errors ? [] : ['www-authenticate']),
    ...('budget_exceeded' in errors ? [] : ['retry-after']),
  ];
  return checked
    .filter((name) => sent.has(name) !== name in headers)
    .map((name) => `the header ${name} is ${sent.has(name) ? 'sent' : 'described'} only`);
}

/** Whether a media type matches a range such as `image/*`. */
function isWithin(contentType: string, range: string): boolean {
  return range.endsWith('/*') ? contentType.startsWith(range.slice(0, -1)) : contentType === range;
}
