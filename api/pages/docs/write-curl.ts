import type { OperationObject } from '../../../shared/contract/openapi/description.ts';

export interface Call {
  readonly serverUrl: string;
  readonly method: string;
  readonly path: string;
  readonly operation: OperationObject;
  /** Undefined where the operation takes none. */
  readonly body: unknown;
  /** Of the answer. */
  readonly contentType: string;
  /** A job is asked for. */
  readonly respondsAsync?: boolean;
}

/** Where the commands keep the cookies of a session, from one to the next. */
export const cookieFile = 'cookies.txt';

/** A curl command of this call, to be pasted into a shell that has `API_KEY` set, or for a session `CSRF_TOKEN`. */
export function writeCurl(call: Call): string {
  const { serverUrl, method, path, operation, body, contentType, respondsAsync = false } = call;
  const schemes = operation.security.flatMap((requirement) => Object.keys(requirement));
  const parts = [`curl ${quote(`${serverUrl}${fillPath(path, operation)}`)}`];
  if (method !== 'get' && !(method === 'post' && body !== undefined))
    parts.push(`-X ${method.toUpperCase()}`);
  if (contentType === 'text/event-stream') parts.push('--no-buffer');
  if (contentType.startsWith('image/')) parts.push('--remote-name');
  if (schemes.includes('apiKey')) parts.push('-H "Authorization: Bearer $API_KEY"');
  if (schemes.includes('webSession') || schemes.includes('webRefresh')) parts.push(`-b ${cookieFile}`);
  if (setsCookies(operation)) parts.push(`-c ${cookieFile}`);
  if (schemes.includes('csrfToken')) parts.push('-H "X-CSRF-Token: $CSRF_TOKEN"');
  if (respondsAsync) parts.push(`-H 'Prefer: respond-async'`);
  if (body !== undefined) {
    parts.push(`-H 'Content-Type: application/json'`, `-d ${quote(JSON.stringify(body, null, 2))}`);
  }
  return parts.join(' \\\n  ');
}

const setsCookies = ({ responses }: OperationObject): boolean =>
  Object.values(responses).some(({ headers }) => 'set-cookie' in headers);

/** The path with the values of its examples; a parameter without one stays in braces. */
function fillPath(path: string, { parameters = [] }: OperationObject): string {
  const query: string[] = [];
  let filled = path;
  for (const { name, in: place, example } of parameters) {
    if (place === 'header' || example === undefined) continue;
    const value = encodeURIComponent(String(example));
    if (place === 'path') filled = filled.replace(`{${name}}`, value);
    else query.push(`${name}=${value}`);
  }
  return query.length === 0 ? filled : `${filled}?${query.join('&')}`;
}

/** A word of a shell's command line, whatever is in it. */
function quote(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
