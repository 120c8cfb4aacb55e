import type { OperationObject } from '../../../description/description.ts';

/** An example of a request. */
export interface Call {
  readonly serverUrl: string;
  readonly method: string;
  readonly path: string;
  readonly operation: OperationObject;
  /** Undefined if the operation takes no body. */
  readonly body: unknown;
  /** The parts of a form, by name; `@` and a file name for a file. */
  readonly form?: Readonly<Record<string, string>> | undefined;
  /** Media type of the response. */
  readonly contentType: string;
  /** Whether to request a job. */
  readonly respondsAsync?: boolean;
}

/** Fills the path with its example values. Parameters without an example stay in braces. */
export function fillPath(path: string, { parameters = [] }: OperationObject): string {
  const query: string[] = [];
  let filled = path;
  for (const { name, in: location, example } of parameters) {
    if (location === 'header' || example === undefined) continue;
    const value = encodeURIComponent(String(example));
    if (location === 'path') filled = filled.replace(`{${name}}`, value);
    else query.push(`${name}=${value}`);
  }
  return query.length === 0 ? filled : `${filled}?${query.join('&')}`;
}

/** The names of the credentials that an operation takes: all that belong together of the first alternative. */
export function listSchemes({ security }: OperationObject): string[] {
  const alternatives = security.map((requirement) => Object.keys(requirement));
  const isSession = !alternatives.some((names) => names.includes('apiKey') || names.includes('adminToken'));
  return isSession ? alternatives.flat() : (alternatives[0] ?? []);
}

/** The environment variable with the bearer token of an operation; null if it takes none. */
export function findTokenVariable(operation: OperationObject): 'API_KEY' | 'ADMIN_TOKEN' | null {
  const schemes = listSchemes(operation);
  if (schemes.includes('adminToken')) return 'ADMIN_TOKEN';
  return schemes.includes('apiKey') ? 'API_KEY' : null;
}

export const setsCookies = ({ responses }: OperationObject): boolean =>
  Object.values(responses).some(({ headers }) => 'set-cookie' in headers);

/** Whether an operation uses the cookies of a session, which programs other than browsers rarely have. */
export const usesCookies = (operation: OperationObject): boolean =>
  setsCookies(operation) || listSchemes(operation).some((name) => name.startsWith('web'));

/** Lists the headers that a call must have for its kind of response, without the token. */
export function listHeaders({
  operation,
  contentType,
  respondsAsync = false,
}: Call): [name: string, value: string][] {
  const required = (operation.parameters ?? []).filter((one) => one.in === 'header' && one.required);
  return [
    ...(respondsAsync ? [['Prefer', 'respond-async'] as [string, string]] : []),
    // Where JSON is the usual form.
    ...(contentType === 'text/csv' ? [['Accept', contentType] as [string, string]] : []),
    ...required.map(({ name, example }): [string, string] => [name, String(example)]),
  ];
}
